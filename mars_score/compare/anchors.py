"""A scale for a score: what an unrelated text and the reference itself reach on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mars_score.errors import MarsWarning

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

ROWS = 256  # scored for anchors at most: more do not change a mean by what can be told apart


@dataclass(frozen=True)
class Anchors:
    """Two mean scores of the same rows and models.

    Attributes:
        unrelated: of a reference of another row, with another context.
        identical: of each row's first reference itself.
    """

    unrelated: float
    identical: float

    def percent(self, score: float) -> float:
        """Where a score lies between them, in per cent: 0 unrelated, 100 identical; outside where it is beyond."""
        return 100 * (score - self.unrelated) / (self.identical - self.unrelated)

    def to_dict(self, score: float) -> dict[str, float]:
        """The place of a score and the two anchors, as plain data."""
        return {"percent": self.percent(score), "unrelated": self.unrelated, "identical": self.identical}


def anchor_rows(total: int) -> list[int]:
    """The rows that anchors are found from: all, or ``ROWS`` of them, evenly spaced."""
    count = min(ROWS, total)
    return [number * total // count for number in range(count)]


def find_anchors(scorer: MarsScorer, references: Sequence[Sequence[str]], contexts: Sequence[str]) -> Anchors:
    """The anchors of some rows; of many rows at most ``ROWS``, evenly spaced.

    Samples and vectors come from the scorer's store where they are there.

    Args:
        scorer: of the settings that the rows are scored with.
        references: of each row, at least one.
        contexts: of each row.

    Raises:
        ValueError: a row has no references, no two rows differ in context and references, or the reference
            itself scores no higher than an unrelated one.
    """
    if not all(references):
        raise ValueError("a scale needs references: leave it out where candidates are scored given contexts alone")
    kept = anchor_rows(len(references))
    count = len(kept)
    own = [list(references[row]) for row in kept]
    around = [contexts[row] for row in kept]
    others = [_other(place, own, around) for place in range(count)]
    if None in others:
        raise ValueError(
            "a scale needs rows that differ in their contexts and references; leave it out, or add some"
        )
    candidates = [*(row[0] for row in own), *(own[other][0] for other in others if other is not None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)  # already issued with the rows' own scores
        scores = scorer.score(candidates, own * 2, around * 2).scores
    found = Anchors(unrelated=sum(scores[count:]) / count, identical=sum(scores[:count]) / count)
    if found.identical <= found.unrelated:
        raise ValueError(f"no scale: references of other rows score as high as the reference itself ({found})")
    return found


def _other(place: int, references: Sequence[Sequence[str]], contexts: Sequence[str]) -> int | None:
    """The next row, in a circle, with another context and no reference in common."""
    count = len(contexts)
    for number in range(place + 1, place + count):
        other = number % count
        same_context = contexts[other] == contexts[place] and contexts[place].strip()
        if not same_context and not set(references[other]) & set(references[place]):
            return other
    return None
