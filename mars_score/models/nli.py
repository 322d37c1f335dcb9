"""Classifiers for natural language inference (NLI): does a premise entail or contradict a hypothesis?"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from mars_score.errors import UnsupportedModelError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit

Pair = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16


class Entailment(NamedTuple):
    """The probabilities that a premise entails and that it contradicts a hypothesis; the rest is neutral."""

    entailment: float
    contradiction: float


class NliModel:
    """A sequence classifier and its tokenizer.

    Raises:
        UnsupportedModelError: the classes of the model are not named entailment and contradiction.
    """

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model, self._tokenizer = model, tokenizer
        self._classes = _class_ids(model)
        self._window = min(int(tokenizer.model_max_length), position_limit(model) or sys.maxsize)
        self._batch = BatchSize(batch_size or BATCH_SIZE)

    def entails(
        self, pairs: Sequence[Pair], done: Callable[[Pair, Entailment], None] | None = None
    ) -> list[Entailment]:
        """Classify pairs; of a pair beyond the model's window the end of the longer text is left out."""
        with exclusive(self.model), ordinary_mode():
            return self._batch.map(self._classify, pairs, lambda pair: len(pair[0]) + len(pair[1]), done)

    def _classify(self, pairs: list[Pair]) -> list[Entailment]:
        premises, hypotheses = map(list, zip(*pairs, strict=True))
        options = {"padding": True, "truncation": True, "max_length": self._window, "return_tensors": "pt"}
        tokens = self._tokenizer(premises, hypotheses, **options)
        logits = self.model(**tokens.to(self.model.device)).logits
        probabilities = torch.softmax(logits.double(), -1)[:, self._classes]
        return [Entailment(*row) for row in probabilities.tolist()]


def _class_ids(model: Any) -> list[int]:
    """Return the ids of the classes entailment and contradiction."""
    labels = {str(label).lower(): int(number) for number, label in model.config.id2label.items()}
    stems = ("entail", "contradict")
    ids = [labels[label] for stem in stems for label in labels if label.startswith(stem)]
    if len(ids) != len(stems):
        raise UnsupportedModelError(
            f"entailment_model has no classes named entailment and contradiction, but {', '.join(labels)}; choose "
            "a model for natural language inference, or name its classes in config.id2label"
        )
    return ids
