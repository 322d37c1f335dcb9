"""Natural language inference (NLI): does a premise entail or contradict a hypothesis, and which words not?"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mars_score.errors import UnsupportedModelError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit
from mars_score.rows import Entailment
from mars_score.text import MARKS_AROUND

Sentences = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16
_PACKED_TOKENS = 384  # Most tokens of hypotheses in a sequence with their premise.
_PADDING = -1  # Block of padding.
MIN_UNSUPPORTED = 0.5  # A word with this probability is told.
_WORD = re.compile(r"\S+")


class NliModel:
    """A sequence classifier or a :class:`PrefixClassifier`, and its tokenizer.

    Raises:
        UnsupportedModelError: the model has no classes named entailment and contradiction.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model, self._tokenizer = model, tokenizer
        self._is_prefix = isinstance(model, PrefixClassifier)
        encoder = model.encoder if self._is_prefix else model
        self._classes = _class_ids(dict(enumerate(model.labels)) if self._is_prefix else model.config.id2label)
        self._window = min(int(tokenizer.model_max_length), position_limit(encoder) or sys.maxsize)
        self._batch = BatchSize(batch_size or BATCH_SIZE)

    def entails(self, pairs: Iterable[Sentences]) -> Iterator[tuple[Sentences, Entailment]]:
        """Yield each different pair with its probabilities; a pair that is too long for the window is cut.

        The end of the longer text is left out. For a prefix classifier a premise has at most three quarters of the
        window, so that it is the same for all hypotheses, and a hypothesis has the rest.
        """
        different = dict.fromkeys(pairs)
        if not self._is_prefix:
            yield from self._batch.map(self._classify, different, lambda pair: len(pair[0]) + len(pair[1]))
            return
        with exclusive(self.model):
            groups = self._groups(different)
        for group, entailments in self._batch.map(self._classify_groups, groups, lambda group: group.tokens):
            yield from zip(group.pairs, entailments, strict=True)

    def _classify(self, pairs: list[Sentences]) -> list[Entailment]:
        premises, hypotheses = map(list, zip(*pairs, strict=True))
        options = {"padding": True, "truncation": True, "max_length": self._window, "return_tensors": "pt"}
        with exclusive(self.model), ordinary_mode():
            tokens = self._tokenizer(premises, hypotheses, **options)
            logits = self.model(**tokens.to(self.model.device)).logits
        return [Entailment(*row) for row in self._probabilities(logits)]

    def _probabilities(self, logits: Tensor) -> list[tuple[float, float]]:
        """Return the probabilities of entailment and contradiction of each pair."""
        probabilities = torch.softmax(logits.double(), -1)[:, self._classes].tolist()
        return [(entailment, contradiction) for entailment, contradiction in probabilities]

    def _groups(self, pairs: Iterable[Sentences]) -> list[_Group]:
        """Group different pairs by premise; many hypotheses of a premise make several groups."""
        groups: list[_Group] = []
        for premise, same_premise in groupby(sorted(pairs), key=lambda pair: pair[0]):
            ids = self._tokens(premise, 3 * self._window // 4).ids
            for pair in same_premise:
                hypothesis = self._tokens(pair[1], self._window - len(ids))
                last = groups[-1] if groups and groups[-1].pairs[0][0] == premise else None
                if last is None or last.tokens - len(ids) + len(hypothesis.ids) > _PACKED_TOKENS:
                    last = _Group([], ids, [])
                    groups.append(last)
                last.pairs.append(pair)
                last.hypotheses.append(hypothesis)
        return groups

    def _tokens(self, text: str, most: int) -> _Tokens:
        """Return the tokens of a text without unknown ones, of which the model has learned nothing."""
        found = self._tokenizer(text, truncation=True, max_length=most, return_offsets_mapping=True)
        known = [
            (one, span)
            for one, span in zip(found["input_ids"], found["offset_mapping"], strict=True)
            if one != self._tokenizer.unk_token_id
        ]
        return _Tokens([one for one, _ in known], [span for _, span in known])

    def _classify_groups(self, groups: list[_Group]) -> list[list[Entailment]]:
        with exclusive(self.model), ordinary_mode():
            device = next(self.model.parameters()).device
            packed = pack(
                [(group.premise, [one.ids for one in group.hypotheses]) for group in groups],
                self._tokenizer.pad_token_id,
                device,
            )
            logits = self.model(packed)
        probabilities = iter(self._probabilities(logits.classes))
        if logits.words is None:
            return [[Entailment(*next(probabilities)) for _ in group.pairs] for group in groups]
        of_tokens = torch.sigmoid(logits.words.double()).tolist()
        starts = iter(packed.starts.tolist())
        return [
            [
                _with_words(pair[1], tokens, next(probabilities), of_tokens, next(starts))
                for pair, tokens in zip(group.pairs, group.hypotheses, strict=True)
            ]
            for group in groups
        ]


def _with_words(
    text: str,
    tokens: _Tokens,
    probabilities: tuple[float, float],
    of_tokens: Sequence[Sequence[float]],
    start: Sequence[int],
) -> Entailment:
    """Return the classes of a hypothesis and its unsupported words.

    Args:
        text: the hypothesis.
        tokens: of the text.
        probabilities: of entailment and contradiction.
        of_tokens: probabilities that a token is unsupported, (sequences, tokens).
        start: sequence and index of the first token.
    """
    sequence, first = start
    words = [match.span() for match in _WORD.finditer(text)]
    largest = [0.0] * len(words)
    for number, (begin, end) in enumerate(tokens.spans):
        if begin < end:
            word = bisect_right(words, (begin, len(text))) - 1
            largest[word] = max(largest[word], of_tokens[sequence][first + number])
    told = tuple(
        text[slice(*span)].strip(MARKS_AROUND)
        for span, probability in zip(words, largest, strict=True)
        if probability >= MIN_UNSUPPORTED
    )
    return Entailment(*probabilities, max(largest, default=0.0), told)


class _Tokens(NamedTuple):
    """Token ids of a text, and the span of characters of each; an empty one for special tokens."""

    ids: list[int]
    spans: list[tuple[int, int]]


class _Group(NamedTuple):
    """Pairs of the same premise, with tokens."""

    pairs: list[Sentences]
    premise: list[int]
    hypotheses: list[_Tokens]

    @property
    def tokens(self) -> int:
        """Number of all tokens."""
        return len(self.premise) + sum(len(one.ids) for one in self.hypotheses)


def _class_ids(labels: Any) -> list[int]:
    """Return the ids of the classes entailment and contradiction."""
    ids_by_name = {str(label).lower(): int(number) for number, label in labels.items()}
    stems = ("entail", "contradict")
    ids = [ids_by_name[name] for stem in stems for name in ids_by_name if name.startswith(stem)]
    if len(ids) != len(stems):
        raise UnsupportedModelError(
            "entailment_model has no classes named entailment and contradiction, but "
            f"{', '.join(ids_by_name)}; choose a model for natural language inference, or name its classes in "
            "config.id2label"
        )
    return ids


class Packed(NamedTuple):
    """Sequences of a premise and its hypotheses.

    Attributes:
        ids: token ids, (sequences, tokens).
        blocks: 0 for a token of the premise, the number from 1 of a token's hypothesis, or -1 for padding.
        positions: positions of the tokens, from 0.
        starts: sequence and index of each hypothesis's first token, (hypotheses, 2), in the order of the groups.
    """

    ids: Tensor
    blocks: Tensor
    positions: Tensor
    starts: Tensor


class Logits(NamedTuple):
    """What a :class:`PrefixClassifier` computes.

    Attributes:
        classes: of each hypothesis, (hypotheses, classes).
        words: that the premise does not support a token of a hypothesis, (sequences, tokens); those of the
            premise and of padding mean nothing; None for a model that does not read words.
    """

    classes: Tensor
    words: Tensor | None


def pack(
    groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]], pad_id: int, device: Any = "cpu"
) -> Packed:
    """Pack each premise and its hypotheses (token ids with special tokens) into a sequence."""
    length = max(len(premise) + sum(map(len, hypotheses)) for premise, hypotheses in groups)
    ids = torch.full((len(groups), length), pad_id)
    blocks = torch.full_like(ids, _PADDING)
    positions = torch.zeros_like(ids)
    starts = []
    for number, (premise, hypotheses) in enumerate(groups):
        start = 0
        for block, tokens in enumerate([premise, *hypotheses]):
            inside = slice(start, start + len(tokens))
            first = len(premise) if block else 0
            ids[number, inside] = torch.tensor(list(tokens))
            blocks[number, inside] = block
            positions[number, inside] = torch.arange(first, first + len(tokens))
            if block:
                starts.append((number, start))
            start += len(tokens)
    return Packed(*(part.to(device) for part in (ids, blocks, positions, torch.tensor(starts))))


class PrefixClassifier(nn.Module):
    """A BERT or MPNet encoder with heads for the class of a hypothesis and perhaps for its unsupported words.

    The class is that of a hypothesis's first token. Each token has a probability that the premise does not support
    it (as in LettuceDetect, Kovacs and Recski 2025, https://arxiv.org/abs/2502.17125).

    Tokens of the premise attend to the premise alone; tokens of a hypothesis attend to the premise and to
    themselves. So the hypotheses of a premise share a sequence, and none affects the logits of another. The
    positions of each hypothesis follow those of the premise, which is encoded once.

    Args:
        encoder: a ``BertModel`` or ``MPNetModel``.
        labels: names of the classes.
        reads_words: whether there is a head for words.
    """

    def __init__(self, encoder: Any, labels: Sequence[str], *, reads_words: bool = True) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder, self.labels = encoder, tuple(labels)
        self._is_mpnet = hasattr(encoder.encoder, "relative_attention_bias")
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, len(labels))
        self.words = nn.Linear(size, 1) if reads_words else None

    def forward(self, packed: Packed) -> Logits:
        """Return the logits of the classes of each hypothesis, and that the premise does not support a token."""
        embeddings = self.encoder.embeddings
        first = embeddings.padding_idx + 1 if self._is_mpnet else 0
        hidden = embeddings(input_ids=packed.ids, position_ids=packed.positions + first)
        layers = [(layer, next(layer.parameters()).dtype) for layer in self.encoder.encoder.layer]
        masks = {dtype: self._attention_mask(packed, dtype) for _, dtype in layers}
        for layer, dtype in layers:
            output = layer(hidden.to(dtype), attention_mask=masks[dtype])
            hidden = output[0] if isinstance(output, tuple) else output
        sequences, tokens = packed.starts.T
        pooled = torch.tanh(self.dense(hidden[sequences, tokens].to(self.dense.weight.dtype)))
        words = self.words(hidden.to(self.words.weight.dtype)).squeeze(-1) if self.words else None
        return Logits(self.classifier(pooled), words)

    def set_number_type(self, dtype: torch.dtype) -> None:
        """Let the model compute in a number type, but its first layer and classifier at least in float32.

        These two are small, and their rounding changes probabilities most.
        """
        self.to(torch.promote_types(dtype, torch.float32))
        for layer in self.encoder.encoder.layer[1:]:
            layer.to(dtype)

    def _attention_mask(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Return the mask of unseen tokens, plus MPNet's bias by the distance of two tokens."""
        seeing, seen = packed.blocks[:, :, None], packed.blocks[:, None, :]
        unseen = ((seen != 0) & (seen != seeing))[:, None]
        mask = torch.zeros_like(unseen, dtype=dtype).masked_fill(unseen, torch.finfo(dtype).min)
        if not self._is_mpnet:
            return mask
        encoder = self.encoder.encoder
        distances = packed.positions[:, None, :] - packed.positions[:, :, None]
        bias: Tensor = encoder.relative_attention_bias(encoder.relative_position_bucket(distances))
        return mask + bias.permute(0, 3, 1, 2).to(dtype)
