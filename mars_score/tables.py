"""Tables for people, computed and ordered already, and their markup."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mars_score.data.values import whole

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")  # XML and browsers refuse most of them
_MARKUP = re.compile(r"[\\`*_~<|$]|\](?=[(\[:])|&(?=[#\w])|!(?=\[)")
_START = re.compile(r"^(?=[#>=]|[-+](?:[\s-]|$))|(?<=^\d)(?=[.)](?:\s|$))")

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


def table_to_markdown(table: Table) -> str:
    """A table with its title and note."""
    note = [line_to_markdown(table.note)] if table.note else []
    heading, *rows = (
        [_escaped(text).replace("\n", "<br>") for text in row] for row in (table.columns, *table.rows)
    )
    rule = [":--", *["--:"] * (len(heading) - 1)]
    grid = "\n".join(f"| {' | '.join(row)} |" for row in (heading, rule, *rows))
    return "\n\n".join([f"**{line_to_markdown(table.title)}**", *note, grid])


def line_to_markdown(text: str) -> str:
    """``text`` as a line that may start a paragraph, its markup escaped."""
    return _START.sub(r"\\", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    """``text`` with a backslash before what GitHub would take for markup, HTML or mathematics."""
    return _MARKUP.sub(lambda found: "\\" + found[0], showable(text))


def table_to_latex(table: Table) -> str:
    """A ``tabular``; title and note stand above it as comments, for the caption."""
    import pandas as pd

    rows = [[" ".join(showable(text).split()) for text in row] for row in (table.columns, *table.rows)]
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    comments = "".join(f"% {showable(text)}\n" for text in (table.title, *table.note.splitlines()))
    return comments + str(frame.to_latex(index=False, escape=True, column_format="l" + "r" * (len(rows[0]) - 1)))
