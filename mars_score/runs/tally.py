"""The summary of a run's scores, gathered row by row."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field
from fractions import Fraction

from mars_score.data.validation import Row
from mars_score.errors import Notices
from mars_score.runs.input import Part
from mars_score.scoring.result import mean_of
from mars_score.scoring.rows import ScoredRow, flags_of
from mars_score.stats.labels import ContextLabels
from mars_score.stats.means import mean_interval

SHOWN = 3  # lowest, and highest, rows in the summary


@dataclass(frozen=True, order=True)
class Shown:
    """A row of the summary: its score, its number in the file from 0, and its texts."""

    score: float
    number: int
    row: Row


@dataclass
class Tally:
    """The summary of the rows so far."""

    explained: int = 0  # rows of the lowest scores to keep, for explanations
    rows: int = 0  # their number
    # The rows with the lowest scores, by rising score, then by number.
    lowest: list[Shown] = field(default_factory=list)
    highest: list[Shown] = field(default_factory=list)  # ``SHOWN`` rows of the highest scores, likewise
    notices: Notices = field(default_factory=Notices)  # of blank and shortened texts
    _total: Fraction = Fraction()
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _contexts: array[int] = field(default_factory=lambda: array("q"))

    def add(self, part: Part, scored: list[ScoredRow]) -> None:
        """The next rows."""
        scores = [row.score.score for row in scored]
        shown = list(map(Shown, scores, part.file.numbers, part.rows))
        self.rows += len(shown)
        self.lowest = heapq.nsmallest(max(2 * SHOWN, self.explained), [*self.lowest, *shown])
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *shown])[::-1]
        self.notices.add(part.file.numbers, flags_of(scored))
        self._total = sum(map(Fraction, scores), self._total)
        self._scores.extend(scores)
        self._contexts.extend(self._labels.of([context for _, _, context in part.rows]))

    @property
    def mean(self) -> float:
        """The mean score; 0.0 for no rows."""
        return mean_of(self._total, self.rows)

    @property
    def interval(self) -> list[float] | None:
        """The 95 % interval of the mean, by resampling contexts; None with fewer than ten contexts."""
        return mean_interval(self._scores, self._contexts).ends

    @property
    def shown(self) -> list[Shown]:
        """Rows to show, by rising score: all if they are few, else the first and the last."""
        return self.lowest[: self.rows] if self.rows <= 2 * SHOWN else self.lowest[:SHOWN] + self.highest
