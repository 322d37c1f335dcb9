"""A table in LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re

from mars_score.report.contents import Table, showable

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
