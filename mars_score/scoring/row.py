"""A row to be scored, the terms of its score, and the row as learned heads see it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mars_score.data.words import is_english
from mars_score.infilling.augmented import AugmentedReference
from mars_score.scoring.entailment import Premises, premises


@dataclass(frozen=True)
class ScorableRow:
    """A candidate with all that it is compared with; its texts have no outer whitespace."""

    candidate: str
    # With their augmentations; none where the candidate is blank or is scored without references.
    references: tuple[AugmentedReference, ...]
    context: str  # blank for none
    task: str = ""  # what the candidate is to the context; see mars_score.sampling.prompts
    samples: tuple[str, ...] = ()  # texts that others wrote for the context, or that a language model drew
    notices: frozenset[str] = frozenset()  # those that concern it before anything is read of it

    @cached_property
    def premises(self) -> list[Premises]:
        """What the candidate's sentences are compared with; the candidate is not blank."""
        return premises(self.candidate, [one.reference for one in self.references], self.context)

    @cached_property
    def english(self) -> bool:
        """Whether its references and its context may be English; data in a context is of no language."""
        texts = [one.reference for one in self.references] + [self.context] * (self.task != "data")
        return is_english(" ".join(texts))


@dataclass(frozen=True)
class Term:
    """A part of a row's score.

    Attributes:
        name: ``"references"``, ``"sentences"``, ``"context"``, ``"samples"``, ``"likelihood"``, ``"repetition"``
            or ``"contradiction"``.
        value: similarity with the references or the context, in [-1, 1]; for ``"samples"`` what the nearest of
            them has more than the references; nats per token for ``"likelihood"``.
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
    """A row to learn from or to score; its texts have no outer whitespace, and the candidate is not blank."""

    candidate: str
    references: tuple[str, ...]
    context: str
    terms: tuple[Term, ...] = ()  # of MARS's own score
    features: Mapping[str, float] = field(default_factory=dict)  # what else MARS knows of the row, by name
