"""What people read: a table on a terminal, plain lines elsewhere."""

import shutil
import sys

from mars_score.cli.running import print_line
from mars_score.data.values import one_line
from mars_score.report.contents import Table


def fitted(text: str, indent: int = 0) -> str:
    """``text`` as an indented line, cut to the width of the terminal (80 without one)."""
    return " " * indent + one_line(text, shutil.get_terminal_size().columns - indent)


def show_table(table: Table, form: str = "text") -> None:
    """Print a table to standard output: drawn on a terminal, aligned text of any width elsewhere.

    ``form`` is ``"text"``, ``"markdown"`` or ``"latex"``.
    """
    if form != "text":
        from mars_score.report.markup import table_to_latex, table_to_markdown

        print_line((table_to_markdown if form == "markdown" else table_to_latex)(table) + "\n")
        return
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
