"""Print notices to standard error, and lines and tables to standard output."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Literal

from mars_score.errors import MarsWarning
from mars_score.tables import Table, table_to_latex, table_to_markdown

TableFormat = Literal["text", "markdown", "latex"]


@contextmanager
def scoring() -> Iterator[list[str]]:
    """Send output of libraries to standard error, and collect MARS's warnings in the list that is yielded."""
    notices: list[str] = []
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(sys.stderr):
        warnings.simplefilter("always", MarsWarning)
        yield notices
    for warning in caught:
        if issubclass(warning.category, MarsWarning):
            notices.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_notices(notices: Iterable[str]) -> None:
    """Print each notice once to standard error."""
    for notice in dict.fromkeys(notices):
        print_error(f"notice: {notice}")


def print_error(line: str) -> None:
    """Print a line to standard error, without control characters."""
    print(f"mars: {_shown(line)}", file=sys.stderr)


def print_line(line: str) -> None:
    """Print a line to standard output without control characters. What cannot be encoded becomes "?"."""
    encoding = sys.stdout.encoding or "utf-8"
    print(_shown(line).encode(encoding, "replace").decode(encoding))


def _shown(text: str) -> str:
    """Replace control characters by spaces. Unpaired surrogates are left to the encoding."""
    return "".join(
        char if char.isprintable() or char == "\n" or "\ud800" <= char <= "\udfff" else " " for char in text
    )


def show_table(table: Table, form: TableFormat = "text") -> None:
    """Print a table to standard output. A text table has lines on a terminal, and aligned columns elsewhere."""
    if form == "text":
        _draw(table)
    else:
        print_line((table_to_markdown if form == "markdown" else table_to_latex)(table) + "\n")


def _draw(table: Table) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Drawn
    from rich.text import Text

    terminal = sys.stdout.isatty()
    title, note = escape(table.title), escape(table.note)
    drawn = Drawn(title=title, caption=note) if terminal else Drawn(box=None, pad_edge=False)
    for index, column in enumerate(table.columns):
        drawn.add_column(Text(column), justify="right" if index else "left", no_wrap=not terminal)
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    if terminal:
        Console().print(drawn)
        return
    console = Console(width=10_000)
    with console.capture() as captured:
        console.print(drawn)
    for line in (table.title, *table.note.splitlines(), *captured.get().splitlines()):
        print_line(line.rstrip())
