"""What a report consists of: everything is computed and ordered already, for the renderers to show."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from mars_score.data.values import whole

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")  # XML and browsers refuse most of them

MISSING = "n/a"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: a line.
        note: what a reader must know to read it, plain text; may be empty.
        columns: headings; the first column names the rows, the others are right-aligned.
        rows: one string per column; "n/a" where there is no value.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Scatter:
    """The points of one metric on one data set, as in Figure 3 of Liu et al. (ACL 2021).

    Neighbours in a section that share a title are shown as one block of small charts.

    Attributes:
        title: what the block shows, such as the data set.
        metric: names the chart.
        x: scores; a point with a value that is not finite is left out.
        y: ratings, one per score.
        coefficient: the agreement as text: "r = 0.43".
    """

    title: str
    metric: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    coefficient: str


@dataclass(frozen=True)
class Bars:
    """Values with confidence intervals, one bar each, from the top in the given order.

    Attributes:
        title: a line.
        labels: names of the bars.
        values: one per label; NaN shows as "n/a".
        lows: lower ends of the intervals; NaN: no interval is drawn.
        highs: upper ends.
        highlighted: indices of the bars that stand out.
    """

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    highlighted: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Disagreement:
    """A row on which metric and people disagree, with the texts that explain it.

    Attributes:
        data_set: its name.
        item: id of the item within the data set.
        system: what wrote the candidate.
        rating: the human rating as text.
        score: the metric's score as text.
        residual: how far the score lies above (+) or below (-) what the rating led one to expect.
        context: what the text was generated from.
        references: the human references.
        augmentations: (label, similarity with the candidate, text) of each.
        candidate: the text that was rated.
    """

    data_set: str
    item: str
    system: str
    rating: str
    score: str
    residual: float
    context: str
    references: tuple[str, ...]
    augmentations: tuple[tuple[str, float, str], ...]
    candidate: str


Part = Table | Scatter | Bars | Disagreement


@dataclass(frozen=True)
class Section:
    """A chapter: title, plain text to read it by (may be empty), and parts in order."""

    title: str
    note: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Report:
    """A whole report.

    Attributes:
        title: a line.
        summary: the findings, one line each.
        notices: what limits them, one line each.
        sections: in order.
    """

    title: str
    summary: tuple[str, ...]
    notices: tuple[str, ...]
    sections: tuple[Section, ...]


def together(parts: Iterable[Part]) -> Iterator[tuple[str, list[Part]]]:
    """Neighbours that are shown under one title: scatters that share it, and disagreements of one data set."""

    def title(numbered: tuple[int, Part]) -> tuple[str, int | type]:
        place, part = numbered
        if isinstance(part, Disagreement):
            return part.data_set, Disagreement
        return part.title, Scatter if isinstance(part, Scatter) else place

    for (shown, _), found in groupby(enumerate(parts), key=title):
        yield shown, [part for _, part in found]


def showable(text: str) -> str:
    """``text`` as UTF-8 files and browsers accept it: unpaired surrogates and control characters become U+FFFD,
    carriage returns become newlines.
    """
    return _UNSHOWABLE.sub("\ufffd", whole(text).replace("\r\n", "\n").replace("\r", "\n"))


def shortened(text: str, length: int) -> str:
    """``text`` itself, or its start and an ellipsis, ``length`` characters in all."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def true_minus(number: str) -> str:
    """``number`` with a minus sign in place of the hyphen."""
    return number.replace("-", "\u2212")


def number(value: float, digits: int = 3) -> str:
    """A coefficient, share or p-value: "0.123", "-0.045", "n/a"."""
    return f"{value:.{digits}f}" if math.isfinite(value) else MISSING


def signed(value: float, digits: int = 3) -> str:
    """A difference: "+0.123", "n/a"."""
    return f"{value:+.{digits}f}" if math.isfinite(value) else MISSING


def mean(values: Iterable[float]) -> float:
    """The mean of the values that are not NaN; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
