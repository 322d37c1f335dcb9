"""Classifiers for natural language inference: how probable each relation of a premise and a hypothesis is."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mars_score.errors import UnsupportedModelError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit

Model = tuple[Any, Any]  # a sequence classifier and its tokenizer
Pair = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16


def classify(
    model: Model, pairs: Sequence[Pair], done: Callable[[Pair, list[float]], None], batch_size: int | None = None
) -> None:
    """Calls ``done`` with each pair and the probabilities of the classifier's classes, in their order.

    Of a pair beyond the model's window the end of the longer text is left out. A forward pass reads at most
    ``batch_size`` pairs (None: ``BATCH_SIZE``), fewer where memory runs out.
    """
    classifier, tokenizer = model
    window = min(int(tokenizer.model_max_length), position_limit(classifier) or sys.maxsize)

    def probabilities(batch: list[Pair]) -> list[list[float]]:
        premises, hypotheses = zip(*batch, strict=True)
        tokens = tokenizer(
            list(premises), list(hypotheses), padding=True, truncation=True, max_length=window, return_tensors="pt"
        )
        logits = classifier(**tokens.to(classifier.device)).logits
        return list(torch.softmax(logits.double(), -1).tolist())

    with exclusive(classifier), ordinary_mode():
        BatchSize(batch_size or BATCH_SIZE).map(
            probabilities, pairs, lambda pair: len(pair[0]) + len(pair[1]), done
        )


def classes(model: Model) -> tuple[int, int]:
    """The numbers of the classes for entailment and contradiction among a classifier's labels.

    Raises:
        UnsupportedModelError: there are no labels with these names.
    """
    labels = {str(label).lower(): int(number) for number, label in model[0].config.id2label.items()}
    stems = ("entail", "contradict")
    numbers = [labels[label] for stem in stems for label in labels if label.startswith(stem)]
    if len(numbers) != len(stems):
        raise UnsupportedModelError(
            f"entailment_model has no classes named entailment and contradiction, but {', '.join(labels)}; choose "
            "a model for natural language inference, or name its classes in config.id2label"
        )
    return numbers[0], numbers[1]
