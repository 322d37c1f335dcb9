"""A row to be scored, the terms of its score, and the row as learned heads see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mars_score.augment.augmented import AugmentedReference


@dataclass(frozen=True)
class ScorableRow:
    """A candidate with all that it is compared with.

    Attributes:
        candidate: without outer whitespace.
        references: with their augmentations; none where the candidate is blank or is scored without references.
        context: blank for none.
        task: what the candidate is to the context; see :mod:`mars_score.augment.sampling.prompts`.
        samples: drawn given the context.
    """

    candidate: str
    references: tuple[AugmentedReference, ...]
    context: str
    task: str = ""
    samples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Term:
    """A part of a row's score.

    Attributes:
        name: ``"references"``, ``"sentences"``, ``"context"``, ``"samples"``, ``"likelihood"``, ``"repetition"``
            ``"entailment"`` or ``"contradiction"``.
        value: similarity with the references, the context or the samples, in [-1, 1]; nats per token for
            ``"likelihood"``.
        weight: the factor of the value in the score.
    """

    name: str
    value: float
    weight: float


def weighted_sum(terms: Iterable[Term]) -> float:
    """The score that terms make."""
    return sum(term.weight * term.value for term in terms)


@dataclass(frozen=True)
class Example:
    """A row to learn from or to score; its texts have no outer whitespace.

    Attributes:
        candidate: not blank.
        references: may be none.
        context: blank for none.
        terms: those of MARS's own score.
        features: what else MARS knows of the row, by name.
    """

    candidate: str
    references: tuple[str, ...]
    context: str
    terms: tuple[Term, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
