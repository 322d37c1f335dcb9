"""Summarise a run: its mean score, its notices, the rows to show, and those that cannot be checked."""

from __future__ import annotations

import statistics
from array import array
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from mars_score.errors import Notice, Notices
from mars_score.findings import LABELS, label_of
from mars_score.language import may_be_english
from mars_score.rows import Row, RowScore, Unchecked
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


# Rows that cannot be checked


# Rows that cannot be checked, in singular and plural, by the reason.
_REASONS: dict[str, tuple[str, str]] = {
    Unchecked.DIALOGUE: ("dialogue", "dialogues"),
    Unchecked.RECORD: ("record", "records"),
    Unchecked.BLANK: ("blank candidate", "blank candidates"),
    Unchecked.NO_REFERENCE: ("row without references", "rows without references"),
    Unchecked.NO_CONTEXT: ("summary without a context", "summaries without a context"),
    Unchecked.NOT_ENGLISH: ("row that is not English", "rows that are not English"),
    Unchecked.FAR: ("row far from its references", "rows far from their references"),
    Unchecked.NOT_BY_CONTEXT: (
        "summary that this preset cannot judge by its context",
        "summaries that this preset cannot judge by their context",
    ),
    Unchecked.NOTHING_STATED: ("row that states nothing", "rows that state nothing"),
}
_TEXT = "whose task is text"
_REMEDIES: dict[str, str] = {  # what can check such rows, by the reason
    Unchecked.NOT_BY_CONTEXT: "--preset medium can judge these summaries",
    Unchecked.NO_REFERENCE: "--preset medium --task summary can judge candidates by their contexts alone",
    Unchecked.BY_MODEL: "the NLI models of --preset mini and medium can judge English rows",
    _TEXT: "--task summary checks candidates that are to follow from their contexts",
}


def why_unsupported_unchecked(row: Row, score: RowScore) -> str:
    """Return why a row cannot be checked for unsupported sentences, "" if it can."""
    if score.unsupported:
        return ""
    if score.unchecked in (Unchecked.BLANK, Unchecked.BY_SETTINGS, Unchecked.NOTHING_STATED):
        return score.unchecked
    if row.task not in ("summary", "data"):
        return Unchecked.DIALOGUE if row.task == "dialogue" else _TEXT
    if not row.context:
        return "without a context"
    is_foreign = Notice.NOT_ENGLISH in score.notices or not may_be_english(row)
    return Unchecked.NOT_ENGLISH if is_foreign else ""


def describe_unchecked(unchecked: Counter[str], rows: int, sought: str = "contradictions") -> str:
    """Say how many of all ``rows`` cannot be checked for something, why, and which options can check them."""
    parts = [
        f"{count} {_REASONS.get(reason, (f'row {reason}', f'rows {reason}'))[count > 1]}"
        for reason, count in unchecked.most_common()
    ]
    who = "no row" if unchecked.total() == rows else f"{unchecked.total()} of {rows} rows"
    can = "can be" if unchecked.total() == rows else "cannot be"
    remedies = [f"; {remedy}" for reason, remedy in _REMEDIES.items() if unchecked[reason]]
    return f"{who} {can} checked for {sought}: {', '.join(parts)}{''.join(remedies)}"


def unchecked_notice(unchecked: Counter[str], rows: int) -> str:
    """Describe unchecked rows if other options can check some, or if no row is checked despite the settings.

    Return "" otherwise.
    """
    has_remedy = any(unchecked[reason] for reason in _REMEDIES)
    has_none = unchecked.total() == rows and Unchecked.BY_SETTINGS not in unchecked
    return describe_unchecked(unchecked, rows) if has_remedy or has_none else ""
