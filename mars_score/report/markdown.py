"""Tables in GitHub's Markdown; texts are escaped, so that they read as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mars_score.report.contents import Table, showable

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
