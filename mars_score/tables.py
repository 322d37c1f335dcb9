"""Write tables in Markdown and LaTeX."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mars_score.text import without_surrogates

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")  # XML and browsers refuse most of these.
_MARKUP = re.compile(r"[\\`*_~<|$]|\](?=[(\[:])|&(?=[#\w])|!(?=\[)")
_START = re.compile(r"^(?=[#>=]|[-+](?:[\s-]|$))|(?<=^\d)(?=[.)](?:\s|$))")
_RANGE = re.compile(r"(?<=\d) \.\. (?=-?\d)")
_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\u2013": "--",
        "\u2212": "$-$",
    }
)

MISSING = "n/a"


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str  # one line of text
    note: str  # plain text that explains the table; "" for none
    columns: tuple[str, ...]  # headings; the first column names the rows, the others are right-aligned
    rows: tuple[tuple[str, ...], ...]  # cells of each row, "n/a" for a missing value


def showable(text: str) -> str:
    """Replace unpaired surrogates and control characters by U+FFFD, because files or browsers refuse them."""
    return _UNSHOWABLE.sub("\ufffd", without_surrogates(text).replace("\r\n", "\n").replace("\r", "\n"))


def number(value: float, digits: int = 3) -> str:
    """Write a coefficient, share or p-value, such as "0.123", "-0.045" or "n/a"."""
    return f"{value:.{digits}f}" if math.isfinite(value) else MISSING


def signed(value: float, digits: int = 3) -> str:
    """Write a difference, such as "+0.123" or "n/a"."""
    return f"{value:+.{digits}f}" if math.isfinite(value) else MISSING


def mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def table_to_markdown(table: Table) -> str:
    """Write a table with its title and note in GitHub's Markdown."""
    note = [line_to_markdown(table.note)] if table.note else []
    heading, *rows = (
        [_escaped(text).replace("\n", "<br>") for text in row] for row in (table.columns, *table.rows)
    )
    rule = [":--", *["--:"] * (len(heading) - 1)]
    grid = "\n".join(f"| {' | '.join(row)} |" for row in (heading, rule, *rows))
    return "\n\n".join([f"**{line_to_markdown(table.title)}**", *note, grid])


def line_to_markdown(text: str) -> str:
    """Write a text as a line of Markdown with escaped markup. It may start a paragraph."""
    return _START.sub(r"\\", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    """Escape what GitHub would take for markup, HTML or mathematics."""
    return _MARKUP.sub(lambda match: "\\" + match[0], showable(text))


def table_to_latex(table: Table) -> str:
    """Write a table in LaTeX, with its title as caption and its note as comments above."""
    import pandas as pd

    rows = [[_to_latex(text) for text in row] for row in (table.columns, *table.rows)]
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    comments = "".join(f"% {showable(text)}\n" for text in table.note.splitlines())
    layout = "l" + "r" * (len(rows[0]) - 1)
    latex = frame.to_latex(
        index=False, escape=False, column_format=layout, caption=_to_latex(table.title), position="t"
    )
    return comments + str(latex)


def _to_latex(text: str) -> str:
    """Escape a line for LaTeX. Ranges and differences get en dashes, and negative numbers minus signs."""
    line = _RANGE.sub("\u2013", " ".join(showable(text).split()))
    return _MINUS.sub("\u2212", line).replace(" - ", " \u2013 ").translate(_LATEX)
