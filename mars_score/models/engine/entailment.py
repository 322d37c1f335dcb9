"""Classifiers for natural language inference: what they make of a premise and a hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from mars_score.errors import UnsupportedModelError
from mars_score.models.torch_modes import exclusive, ordinary_mode

Model = tuple[Any, Any]  # a sequence classifier and its tokenizer
Pair = tuple[str, str]  # premise and hypothesis
BATCH_SIZE = 16


def classify(
    model: Model, pairs: Sequence[Pair], done: Callable[[Pair, list[float]], None], batch_size: int | None = None
) -> None:
    """The probabilities of a classifier's classes.

    Args:
        model: a sequence classifier and its tokenizer.
        pairs: in any order; those of similar length are read together. Of a pair beyond the model's window the end
            of the longer text is left out.
        done: called with each pair and its probabilities in the order of the model's classes.
        batch_size: pairs per forward pass; None: ``BATCH_SIZE``.
    """
    classifier, tokenizer = model
    size, most = batch_size or BATCH_SIZE, _window(classifier, tokenizer)
    ordered = sorted(pairs, key=lambda pair: -len(pair[0]) - len(pair[1]))
    with exclusive(classifier), ordinary_mode():
        for start in range(0, len(ordered), size):
            batch = ordered[start : start + size]
            texts = [premise for premise, _ in batch], [hypothesis for _, hypothesis in batch]
            tokens = tokenizer(*texts, padding=True, truncation=True, max_length=most, return_tensors="pt")
            found = torch.softmax(classifier(**tokens.to(classifier.device)).logits.double(), -1).tolist()
            for pair, probabilities in zip(batch, found, strict=True):
                done(pair, probabilities)


def contradiction_class(model: Model) -> int:
    """The number of the class "contradiction" among a classifier's labels.

    Raises:
        UnsupportedModelError: none of them is called so.
    """
    labels = model[0].config.id2label
    for number, label in labels.items():
        if "contradict" in str(label).lower():
            return int(number)
    raise UnsupportedModelError(
        f"entailment_model has no class named contradiction, but {', '.join(map(str, labels.values()))}; choose a "
        "model for natural language inference, or name its classes in config.id2label"
    )


def _window(classifier: Any, tokenizer: Any) -> int:
    """Tokens of a pair at most; the positions of RoBERTa begin after that of padding."""
    config = classifier.config
    positions = int(getattr(config, "max_position_embeddings", 512))
    if "roberta" in config.model_type:
        positions -= config.pad_token_id + 1
    return min(int(tokenizer.model_max_length), positions)
