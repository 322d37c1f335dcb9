"""What people read: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys

from mars_score.cli.running import print_line
from mars_score.meta.tables import Table


def one_line(text: str, whole: bool) -> str:
    """``text`` without line breaks and control characters, shortened unless ``whole``."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if whole or len(line) <= 80 else line[:79] + "…"


def show_table(table: Table) -> None:
    """Print a table of a report to standard output: drawn on a terminal, aligned text elsewhere."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
        for line in (table.title, *table.note.splitlines()):
            print_line(line)
        for row in (table.columns, *table.rows):
            first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            cells = [cell.strip().rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            print_line("  ".join([first, *cells]).rstrip())
        return
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=table.title, caption=table.note)
    for index, column in enumerate(table.columns):
        drawn.add_column(Text(column), justify="right" if index else "left")
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)
