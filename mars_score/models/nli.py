"""Classifiers for natural language inference (NLI): does a premise entail or contradict a hypothesis?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch

from mars_score.errors import UnsupportedModelError
from mars_score.models.prefix_nli import PrefixClassifier, pack
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit
from mars_score.rows import Entailment

Pair = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16
_PACKED_TOKENS = 384  # of the hypotheses that stand in one sequence with their premise


class NliModel:
    """A classifier and its tokenizer: a sequence classifier, or one that encodes a premise once.

    Raises:
        UnsupportedModelError: the classes of the model are not named entailment and contradiction.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model, self._tokenizer = model, tokenizer
        self._is_prefix = isinstance(model, PrefixClassifier)
        encoder = model.encoder if self._is_prefix else model
        labels = dict(enumerate(model.labels)) if self._is_prefix else model.config.id2label
        self._classes = _class_ids(labels)
        self._window = min(int(tokenizer.model_max_length), position_limit(encoder) or sys.maxsize)
        self._batch = BatchSize(batch_size or BATCH_SIZE)

    def entails(
        self, pairs: Sequence[Pair], done: Callable[[Pair, Entailment], None] | None = None
    ) -> list[Entailment]:
        """Classify pairs; what is beyond the model's window is left out.

        That is the end of the longer text; of a premise that is encoded once what is beyond three quarters of the
        window, so that it does not depend on the hypothesis.
        """
        with exclusive(self.model), ordinary_mode():
            if self._is_prefix:
                return self._entails_by_premise(pairs, done)
            return self._batch.map(self._classify, pairs, lambda pair: len(pair[0]) + len(pair[1]), done)

    def _classify(self, pairs: list[Pair]) -> list[Entailment]:
        premises, hypotheses = map(list, zip(*pairs, strict=True))
        options = {"padding": True, "truncation": True, "max_length": self._window, "return_tensors": "pt"}
        tokens = self._tokenizer(premises, hypotheses, **options)
        return self._probabilities(self.model(**tokens.to(self.model.device)).logits)

    def _probabilities(self, logits: torch.Tensor) -> list[Entailment]:
        probabilities = torch.softmax(logits.double(), -1)[:, self._classes]
        return [Entailment(*row) for row in probabilities.tolist()]

    def _entails_by_premise(
        self, pairs: Sequence[Pair], done: Callable[[Pair, Entailment], None] | None
    ) -> list[Entailment]:
        found: dict[Pair, Entailment] = {}

        def report(group: _Group, results: list[Entailment]) -> None:
            for pair, result in zip(group.pairs, results, strict=True):
                found[pair] = result
                if done:
                    done(pair, result)

        self._batch.map(self._classify_groups, self._groups(pairs), lambda group: group.tokens, report)
        return [found[pair] for pair in pairs]

    def _groups(self, pairs: Sequence[Pair]) -> list[_Group]:
        """Group different pairs by premise; of many hypotheses each group has a part."""
        groups = []
        for premise, same in groupby(sorted(set(pairs)), key=lambda pair: pair[0]):
            chosen = list(same)
            first = self._ids(premise, 3 * self._window // 4)
            hypotheses = [self._ids(text, self._window - len(first)) for _, text in chosen]
            while chosen:
                count, size = 0, 0
                while count < len(chosen) and (not count or size + len(hypotheses[count]) <= _PACKED_TOKENS):
                    size += len(hypotheses[count])
                    count += 1
                groups.append(_Group(chosen[:count], first, hypotheses[:count], len(first) + size))
                chosen, hypotheses = chosen[count:], hypotheses[count:]
        return groups

    def _ids(self, text: str, most: int) -> list[int]:
        return list(self._tokenizer(text, truncation=True, max_length=most)["input_ids"])

    def _classify_groups(self, groups: list[_Group]) -> list[list[Entailment]]:
        device = next(self.model.parameters()).device
        packed = pack([(one.premise, one.hypotheses) for one in groups], self._tokenizer.pad_token_id, device)
        results = iter(self._probabilities(self.model(packed)))
        return [[next(results) for _ in group.pairs] for group in groups]


class _Group(NamedTuple):
    """Pairs of one premise, as token ids."""

    pairs: list[Pair]
    premise: list[int]
    hypotheses: list[list[int]]
    tokens: int


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
