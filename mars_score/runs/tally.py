"""The summary of a run's scores, gathered row by row."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mars_score.errors import Notices
from mars_score.scoring.result import mean_of

SHOWN = 3  # lowest, and highest, rows in the summary
Shown = tuple[float, int, str]  # score, row, candidate


@dataclass
class Tally:
    """The summary of the rows so far.

    Attributes:
        rows: their number.
        total: the exact sum of their scores.
        lowest: twice ``SHOWN`` rows of the lowest scores, by rising score, then by row.
        highest: ``SHOWN`` rows of the highest scores, likewise.
        notices: of blank and shortened texts.
    """

    rows: int = 0
    total: Fraction = Fraction()
    lowest: list[Shown] = field(default_factory=list)
    highest: list[Shown] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)

    def add(
        self,
        numbers: Sequence[int],
        candidates: Sequence[str],
        scores: Sequence[float],
        flags: Mapping[str, Sequence[bool]],
    ) -> None:
        """The next rows, with their numbers in the file."""
        some = list(zip(scores, numbers, candidates, strict=True))
        self.rows += len(some)
        self.total = sum(map(Fraction, scores), self.total)
        self.lowest = heapq.nsmallest(2 * SHOWN, [*self.lowest, *some])
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *some])[::-1]
        self.notices.add(numbers, flags)

    @property
    def mean(self) -> float:
        """Of the scores; 0.0 for no rows."""
        return mean_of(self.total, self.rows)

    @property
    def shown(self) -> list[Shown]:
        """Rows to show, by rising score: all if they are few, else the first and the last."""
        return self.lowest[: self.rows] if self.rows <= 2 * SHOWN else self.lowest[:SHOWN] + self.highest

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": self.rows,
            "total": str(self.total),
            "lowest": self.lowest,
            "highest": self.highest,
            "notices": self.notices.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """What :meth:`to_dict` gave."""
        return cls(
            data["rows"],
            Fraction(data["total"]),
            [(score, row, text) for score, row, text in data["lowest"]],
            [(score, row, text) for score, row, text in data["highest"]],
            Notices(**data["notices"]),
        )
