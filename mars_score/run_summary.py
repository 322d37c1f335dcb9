"""The summary of a run: the mean score, notices, and the rows to show; other rows are not kept."""

from __future__ import annotations

import statistics
from array import array
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from mars_score.errors import Notices
from mars_score.findings import LABELS, label_of
from mars_score.stats.resampling import ContextLabels, mean_interval

if TYPE_CHECKING:
    from mars_score.runs import ResultRow

SHOWN = 3  # number of lowest rows in the summary, and of highest ones; twice as many of each finding


@dataclass
class Lowest:
    """The rows with the lowest values so far, lowest first, and of equal ones the first that came.

    Attributes:
        size: number of rows that are kept.
        pairs: (value, row) pairs.
    """

    size: int
    pairs: list[tuple[float, ResultRow]] = field(default_factory=list)

    def add(self, value: float, row: ResultRow) -> None:
        """Add the next row."""
        insort(self.pairs, (value, row), key=itemgetter(0))
        del self.pairs[self.size :]

    @property
    def rows(self) -> list[ResultRow]:
        """Return the rows that are kept."""
        return [row for _, row in self.pairs]


class Highest(Lowest):
    """The rows with the highest values so far, highest last, and of equal ones the last that came."""

    def add(self, value: float, row: ResultRow) -> None:
        """Add the next row."""
        insort(self.pairs, (value, row), key=itemgetter(0))
        del self.pairs[: -self.size]


@dataclass
class Listed:
    """The rows with one label, of which the summary keeps the lowest and the highest.

    Attributes:
        count: of all of them.
        lowest: those with the lowest scores.
        highest: those with the highest scores.
    """

    count: int = 0
    lowest: Lowest = field(default_factory=lambda: Lowest(2 * SHOWN))
    highest: Highest = field(default_factory=lambda: Highest(SHOWN))

    def add(self, row: ResultRow) -> None:
        """Add the next row."""
        self.count += 1
        self.lowest.add(row.score.score, row)
        self.highest.add(row.score.score, row)


@dataclass
class Summary:
    """The summary of the rows so far.

    Attributes:
        lowest: the rows with the lowest scores.
        scores: of all rows.
        by_label: the rows by what was found in them first.
        notices: counted over all rows.
        supported: of the summaries among them.
        unchecked: number of rows of which no contradiction can be told, by the reason.
    """

    lowest: Lowest = field(default_factory=lambda: Lowest(0))
    scores: array[float] = field(default_factory=lambda: array("d"))
    by_label: dict[str, Listed] = field(default_factory=lambda: {label: Listed() for label in LABELS})
    notices: Notices = field(default_factory=Notices)
    supported: array[float] = field(default_factory=lambda: array("d"))
    unchecked: Counter[str] = field(default_factory=Counter)
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _contexts: array[int] = field(default_factory=lambda: array("q"))  # their labels, by row

    def add(self, row: ResultRow) -> None:
        """Add the next row."""
        score = row.score
        self.scores.append(score.score)
        self.lowest.add(score.score, row)
        self.by_label[label_of(score)].add(row)
        self.notices.add(row.number, score.notices)
        if score.aspects.supported is not None:
            self.supported.append(score.aspects.supported)
        if not score.checked:
            self.unchecked[score.unchecked] += 1
        self._contexts.extend(self._labels.of([row.row.prompt]))

    @property
    def mean(self) -> float:
        """Return the mean score."""
        return statistics.mean(self.scores)

    @property
    def faithfulness(self) -> float | None:
        """Return the mean over summaries of the probability that the context says a sentence; None without any."""
        return statistics.mean(self.supported) if self.supported else None

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of the mean by resampling contexts, or None with fewer than ten contexts."""
        return mean_interval(self.scores, self._contexts).ends

    @property
    def shown(self) -> dict[str, list[ResultRow]]:
        """Return the rows to show, by rising score: by label the lowest, and the highest without findings."""
        shown = {label: listed.lowest.rows for label, listed in self.by_label.items()}
        others = self.by_label[""]
        if others.count > 2 * SHOWN:
            shown[""] = [*others.lowest.rows[:SHOWN], *others.highest.rows]
        return shown
