"""What is shown to people: tables, computed and ordered already."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mars_score.data.values import whole

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")  # XML and browsers refuse most of them

MISSING = "n/a"


@dataclass(frozen=True)
class Table:
    """A table."""

    title: str  # a line
    note: str  # what a reader must know to read it, plain text; may be empty
    columns: tuple[str, ...]  # headings; the first column names the rows, the others are right-aligned
    rows: tuple[tuple[str, ...], ...]  # one string per column; "n/a" where there is no value


def showable(text: str) -> str:
    """``text`` as UTF-8 files and browsers accept it: halves of characters and control characters are U+FFFD."""
    return _UNSHOWABLE.sub("\ufffd", whole(text).replace("\r\n", "\n").replace("\r", "\n"))


def shortened(text: str, length: int) -> str:
    """``text`` itself, or its start and an ellipsis, ``length`` characters in all."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


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
