"""Summarise a run: its mean score, its notices, and the rows to show. Other rows are not kept."""

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

SHOWN = 3  # lowest rows that are shown, and highest ones; of rows with findings twice as many


@dataclass
class Lowest:
    """The rows with the lowest values so far, lowest first. Of equal rows the first ones are kept."""

    size: int  # number of rows that are kept
    pairs: list[tuple[float, ResultRow]] = field(default_factory=list)  # (value, row) pairs

    def add(self, value: float, row: ResultRow) -> None:
        """Add the next row."""
        insort(self.pairs, (value, row), key=itemgetter(0))
        del self.pairs[self.size :]

    @property
    def rows(self) -> list[ResultRow]:
        """Return the rows that are kept."""
        return [row for _, row in self.pairs]


class Highest(Lowest):
    """The rows with the highest values so far, highest last. Of equal rows the last ones are kept."""

    def add(self, value: float, row: ResultRow) -> None:
        """Add the next row."""
        insort(self.pairs, (value, row), key=itemgetter(0))
        del self.pairs[: -self.size]


@dataclass
class Listed:
    """The rows with one label: their number, and those with the lowest and the highest scores."""

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
    """The summary of the rows so far."""

    lowest: Lowest = field(default_factory=lambda: Lowest(0))  # the rows with the lowest scores
    scores: array[float] = field(default_factory=lambda: array("d"))  # of all rows
    # the rows by the label of their first finding, "" for none
    by_label: dict[str, Listed] = field(default_factory=lambda: {label: Listed() for label in LABELS})
    notices: Notices = field(default_factory=Notices)  # counted over all rows
    # mean probability of support, for each summary among the rows
    supported: array[float] = field(default_factory=lambda: array("d"))
    # number of rows that cannot be checked for contradictions, by the reason
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
        """Return the mean over summaries of the probability that the context entails a sentence; None for none."""
        return statistics.mean(self.supported) if self.supported else None

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of the mean, from a bootstrap over contexts; None for fewer than ten."""
        return mean_interval(self.scores, self._contexts).ends

    @property
    def shown(self) -> dict[str, list[ResultRow]]:
        """Return the rows to show by label, by rising score: the lowest, and without findings also the highest."""
        shown = {label: listed.lowest.rows for label, listed in self.by_label.items()}
        others = self.by_label[""]
        if others.count > 2 * SHOWN:
            shown[""] = [*others.lowest.rows[:SHOWN], *others.highest.rows]
        return shown
