"""Natural language inference (NLI): entailment, contradiction and unsupported words of premises and hypotheses."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mars_score.errors import UnsupportedModelError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit
from mars_score.rows import Entailment
from mars_score.text import MARKS_AROUND

Sentences = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16
_PACKED_TOKENS = 384  # maximum tokens of the hypotheses that share a sequence with their premise
_PADDING = -1  # block of padding
MIN_UNSUPPORTED = 0.5  # probability from which a word is reported
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
        self._max_tokens = min(int(tokenizer.model_max_length), position_limit(encoder) or sys.maxsize)
        self._batch = BatchSize(batch_size or BATCH_SIZE)

    def entails(self, pairs: Iterable[Sentences]) -> Iterator[tuple[Sentences, Entailment]]:
        """Yield each different pair with its probabilities.

        Pairs that are too long are truncated: the end of the longer text is left out. With a prefix classifier, a
        premise keeps at most three quarters of the model's tokens, whatever its hypotheses are.
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
        options = {"padding": True, "truncation": True, "max_length": self._max_tokens, "return_tensors": "pt"}
        with exclusive(self.model), ordinary_mode():
            tokens = self._tokenizer(premises, hypotheses, **options)
            logits = self.model(**tokens.to(self.model.device)).logits
        return [Entailment(*row) for row in self._probabilities(logits)]

    def _probabilities(self, logits: Tensor) -> list[tuple[float, float]]:
        """Return the probabilities of entailment and contradiction of each pair."""
        probabilities = torch.softmax(logits.double(), -1)[:, self._classes].tolist()
        return [(entailment, contradiction) for entailment, contradiction in probabilities]

    def _groups(self, pairs: Iterable[Sentences]) -> list[_Group]:
        """Group different pairs by premise, splitting the hypotheses into groups of limited size."""
        groups: list[_Group] = []
        for premise, same_premise in groupby(sorted(pairs), key=lambda pair: pair[0]):
            ids = self._tokens(premise, 3 * self._max_tokens // 4).ids
            for pair in same_premise:
                hypothesis = self._tokens(pair[1], self._max_tokens - len(ids))
                last = groups[-1] if groups and groups[-1].pairs[0][0] == premise else None
                if last is None or last.tokens - len(ids) + len(hypothesis.ids) > _PACKED_TOKENS:
                    last = _Group([], ids, [])
                    groups.append(last)
                last.pairs.append(pair)
                last.hypotheses.append(hypothesis)
        return groups

    def _tokens(self, text: str, most: int) -> _Tokens:
        """Tokenize a text, without unknown tokens, on which the model was not trained."""
        found = self._tokenizer(text, truncation=True, max_length=most, return_offsets_mapping=True)
        known = [token != self._tokenizer.unk_token_id for token in found["input_ids"]]
        return _Tokens(list(compress(found["input_ids"], known)), list(compress(found["offset_mapping"], known)))

    def _classify_groups(self, groups: list[_Group]) -> list[list[Entailment]]:
        with exclusive(self.model), ordinary_mode():
            device = next(self.model.parameters()).device
            packed = pack(
                [(group.premise, [tokens.ids for tokens in group.hypotheses]) for group in groups],
                self._tokenizer.pad_token_id,
                device,
            )
            logits = self.model(packed)
        probabilities = iter(self._probabilities(logits.classes))
        unsupported = torch.sigmoid(logits.words.double()).tolist()
        starts = iter(packed.starts.tolist())
        entailments: list[list[Entailment]] = []
        for group in groups:
            entailments.append([])
            for (_, text), tokens in zip(group.pairs, group.hypotheses, strict=True):
                sequence, start = next(starts)
                words = _unsupported_words(text, tokens.spans, unsupported[sequence][start:])
                entailments[-1].append(Entailment(*next(probabilities), *words))
        return entailments


def _unsupported_words(
    text: str, spans: Sequence[tuple[int, int]], probabilities: Sequence[float]
) -> tuple[float, tuple[str, ...]]:
    """Return the largest probability that a word is unsupported, and the words that probably are.

    Args:
        text: the hypothesis.
        spans: characters of each of its tokens. A word has the largest probability of its tokens.
        probabilities: that a token is unsupported, from the first token of the text on.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    largest = [0.0] * len(words)
    for (begin, end), probability in zip(spans, probabilities, strict=False):
        if begin < end:
            word = bisect_right(words, (begin, len(text))) - 1
            largest[word] = max(largest[word], probability)
    unsupported = compress(words, (probability >= MIN_UNSUPPORTED for probability in largest))
    return max(largest, default=0.0), tuple(text[slice(*span)].strip(MARKS_AROUND) for span in unsupported)


class _Tokens(NamedTuple):
    """Token ids of a text, and the character span of each, which is empty for special tokens."""

    ids: list[int]
    spans: list[tuple[int, int]]


class _Group(NamedTuple):
    """Pairs of the same premise, and their tokens."""

    pairs: list[Sentences]
    premise: list[int]
    hypotheses: list[_Tokens]

    @property
    def tokens(self) -> int:
        """Count all tokens."""
        return len(self.premise) + sum(len(tokens.ids) for tokens in self.hypotheses)


def _class_ids(labels: Mapping[int, str]) -> list[int]:
    """Return the ids of the classes entailment and contradiction."""
    ids_by_name = {str(label).lower(): int(index) for index, label in labels.items()}
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
        blocks: 0 for tokens of the premise, 1, 2, ... for those of its hypotheses, and -1 for padding.
        positions: position ids, from 0.
        starts: sequence and index of each hypothesis's first token, (hypotheses, 2), in the order of the groups.
    """

    ids: Tensor
    blocks: Tensor
    positions: Tensor
    starts: Tensor


class Logits(NamedTuple):
    """The output of a :class:`PrefixClassifier`.

    Attributes:
        classes: of each hypothesis, (hypotheses, classes).
        words: that the premise does not support a token of a hypothesis, (sequences, tokens). Those of premises
            and padding are meaningless.
    """

    classes: Tensor
    words: Tensor


def pack(
    groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]],
    pad_id: int,
    device: torch.device | str = "cpu",
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
    """A BERT or MPNet encoder with heads for the class of a hypothesis and its unsupported words.

    The first token of a hypothesis gives its class. The second head gives for each token whether the premise does
    not support it (as LettuceDetect, Kovacs and Recski 2025, https://arxiv.org/abs/2502.17125).

    The hypotheses of a premise share a sequence, so the premise is encoded once. It attends to itself alone, and
    each hypothesis to the premise and itself. The positions of each hypothesis follow those of the premise.

    Args:
        encoder: a ``BertModel`` or ``MPNetModel``.
        labels: names of the classes.
    """

    def __init__(self, encoder: Any, labels: Sequence[str]) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder, self.labels = encoder, tuple(labels)
        self._is_mpnet = hasattr(encoder.encoder, "relative_attention_bias")
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, len(labels))
        self.words = nn.Linear(size, 1)

    def forward(self, packed: Packed) -> Logits:
        """Compute the logits of the classes of each hypothesis, and of unsupported tokens."""
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
        words = self.words(hidden.to(self.words.weight.dtype)).squeeze(-1)
        return Logits(self.classifier(pooled), words)

    def set_number_type(self, dtype: torch.dtype) -> None:
        """Convert the model to a number type, but its first layer and heads at least to float32.

        These are small, and their rounding changes probabilities most.
        """
        self.to(torch.promote_types(dtype, torch.float32))
        for layer in self.encoder.encoder.layer[1:]:
            layer.to(dtype)

    def _attention_mask(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Return the attention mask, plus MPNet's relative position bias."""
        seeing, seen = packed.blocks[:, :, None], packed.blocks[:, None, :]
        unseen = ((seen != 0) & (seen != seeing))[:, None]
        mask = torch.zeros_like(unseen, dtype=dtype).masked_fill(unseen, torch.finfo(dtype).min)
        if not self._is_mpnet:
            return mask
        encoder = self.encoder.encoder
        distances = packed.positions[:, None, :] - packed.positions[:, :, None]
        bias: Tensor = encoder.relative_attention_bias(encoder.relative_position_bucket(distances))
        return mask + bias.permute(0, 3, 1, 2).to(dtype)
