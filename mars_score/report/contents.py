"""What is shown to people: tables and charts, computed and ordered already."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True)
class Scatters:
    """Scores of metrics against the same ratings, a small plot each, as in Figure 3 of Liu et al. (ACL 2021)."""

    title: str  # what the plots show, such as the data set
    names: tuple[str, ...]  # of the plots
    # The scores of each plot; a point with a value that is not finite is left out.
    x: tuple[tuple[float, ...], ...]
    y: tuple[float, ...]  # ratings, as many as each plot has scores


@dataclass(frozen=True)
class Bars:
    """Values with confidence intervals, one bar each, from the top in the given order."""

    title: str  # a line
    labels: tuple[str, ...]  # names of the bars
    values: tuple[float, ...]  # one per label; NaN shows as "n/a"
    lows: tuple[float, ...]  # lower ends of the intervals; NaN: no interval is drawn
    highs: tuple[float, ...]  # upper ends
    highlighted: frozenset[int] = frozenset()  # indices of the bars that stand out


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


_WIDTH = 32  # characters that cells are padded to at most
_MARKUP = re.compile(r"[\\`*_~<|$]|\](?=[(\[:])|&(?=[#\w])|!(?=\[)")
_START = re.compile(r"^(?=[#>=]|[-+](?:[\s-]|$))|(?<=^\d)(?=[.)](?:\s|$))")


def table_to_markdown(table: Table) -> str:
    """A table with its title and note."""
    note = [line_to_markdown(table.note)] if table.note else []
    return showable("\n\n".join([f"**{line_to_markdown(table.title)}**", *note, _grid(table.columns, table.rows)]))


def line_to_markdown(text: str) -> str:
    """``text`` as a line that may start a paragraph, its markup escaped."""
    return _START.sub(r"\\", _escaped(" ".join(text.split())))


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, padded so that it can be read as it is."""
    cells = [[_escaped(text).replace("\n", "<br>") for text in row] for row in (columns, *rows)]
    widths = [min(_WIDTH, max(3, *map(len, column))) for column in zip(*cells, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def _escaped(text: str) -> str:
    """``text`` with a backslash before what GitHub would take for markup, HTML or mathematics."""
    return _MARKUP.sub(lambda found: "\\" + found[0], showable(text))


_COMMANDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _COMMANDS)))
_MINUS = re.compile(r"(?<![\w.])-(?=\.?\d)")  # of a number


def table_to_latex(table: Table) -> str:
    """A ``tabular``; title and note stand above it as comments, for the caption."""
    comments = [f"% {line}" for line in (table.title, *table.note.splitlines())]
    heading, *rows = [" & ".join(map(_cell, row)) + r" \\" for row in (table.columns, *table.rows)]
    lines = [
        *comments,
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        heading,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return showable("\n".join(lines))


def _cell(text: str) -> str:
    """``text`` as LaTeX prints it, on one line."""
    escaped = _SPECIAL.sub(lambda found: _COMMANDS[found[0]], " ".join(text.split()))
    return _MINUS.sub("$-$", escaped)
