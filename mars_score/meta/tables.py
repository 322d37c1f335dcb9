"""A table as every renderer sees it: titles and strings, nothing left to compute."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MISSING = "n/a"


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        title: a line.
        note: what a reader must know to read it, plain text; may be empty.
        columns: headings; the first column names the rows, the others are right-aligned.
        rows: one string a column; "n/a" where there is no value.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def number(value: float, digits: int = 3) -> str:
    """A coefficient or share: "0.123", "-0.045", "n/a"."""
    return MISSING if math.isnan(value) else f"{value:.{digits}f}"


def signed(value: float) -> str:
    """A difference: "+0.123", "n/a"."""
    return MISSING if math.isnan(value) else f"{value:+.3f}"


def p_value(value: float) -> str:
    """A p-value: "0.012", "n/a"."""
    return MISSING if math.isnan(value) else f"{value:.3f}"


def mean(values: Iterable[float]) -> float:
    """Over the values there are; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
