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

    def to_dict(self, score: float) -> dict[str, float]:
        """The anchors, and the place of a score between them in per cent: 0 unrelated, 100 identical."""
        percent = 100 * (score - self.unrelated) / (self.identical - self.unrelated)
        return {"percent": percent, "unrelated": self.unrelated, "identical": self.identical}


def anchor_rows(total: int) -> list[int]:
    """The rows that anchors are computed from: all, or ``ROWS`` of them, evenly spaced."""
    count = min(ROWS, total)
    return [number * total // count for number in range(count)]


def find_anchors(scorer: MarsScorer, references: Sequence[Sequence[str]], contexts: Sequence[str]) -> Anchors:
    """The anchors of some rows; of many rows at most ``ROWS``, evenly spaced.

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
    rows = [(list(references[row]), contexts[row]) for row in anchor_rows(len(references))]
    unrelated = [text for place in range(len(rows)) if (text := _unrelated(place, rows)) is not None]
    if len(unrelated) < len(rows):
        raise ValueError(
            "a scale needs rows that differ in their contexts and references; leave it out, or add some"
        )
    candidates = [*(texts[0] for texts, _ in rows), *unrelated]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)  # already issued with the rows' own scores
        scores = scorer.score(candidates, *map(list, zip(*rows * 2, strict=True))).scores
    anchors = Anchors(sum(scores[len(rows) :]) / len(rows), sum(scores[: len(rows)]) / len(rows))
    if anchors.identical <= anchors.unrelated:
        raise ValueError(f"no scale: references of other rows score as high as the reference itself ({anchors})")
    return anchors


def _unrelated(place: int, rows: Sequence[tuple[list[str], str]]) -> str | None:
    """A reference of the next row, in a circle, that has another context and no reference in common."""
    own, own_context = rows[place]
    for references, context in (*rows[place + 1 :], *rows[:place]):
        same_context = context == own_context and context.strip()
        if not same_context and not set(references) & set(own):
            return references[0]
    return None
