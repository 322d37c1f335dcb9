"""What the commands share: a run over a file, notices, and what they print."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mars_score.cli.arguments import columns, scorer_arguments
from mars_score.errors import MarsWarning
from mars_score.runtime import progress_bars
from mars_score.tables import Table

if TYPE_CHECKING:
    from mars_score.runs import Run


@contextmanager
def complete_run(args: argparse.Namespace, task: Literal["score", "augment"]) -> Iterator[tuple[Run, Path]]:
    """A run whose work is done, and its folder, which is removed at the end of the block."""
    from mars_score.data.writers import run_folder
    from mars_score.runs import Run

    with _readable_again(args), run_folder(args.out) as folder:
        with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
            arguments = scorer_arguments(args)
            run = Run(args.file, columns(args), task, arguments, folder, args.chunk_size, progress)
            run.read(args.out)
            run.do(args.workers)
        print_notices(warned)
        yield run, folder


@contextmanager
def _readable_again(args: argparse.Namespace) -> Iterator[None]:
    """Copy standard input, if it is the input, to a temporary file, as a run reads its input several times."""
    if args.file != "-":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="mars-stdin-") as folder:
        args.file = str(Path(folder) / "rows.jsonl")
        with open(args.file, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield
        except (ValueError, TypeError) as error:
            raise type(error)(str(error).replace(args.file, "standard input")) from None


@contextmanager
def scoring() -> Iterator[list[str]]:
    """Send the libraries' output to standard error, and collect MARS's warnings instead of showing them."""
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
    """Print to standard error."""
    for notice in dict.fromkeys(notices):
        print(f"mars: notice: {notice}", file=sys.stderr)


def print_line(line: str) -> None:
    """Print to standard output; characters that its encoding lacks become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding))


def show_table(table: Table, form: str = "text") -> None:
    """Print a table to standard output: drawn on a terminal, aligned text of any width elsewhere.

    ``form`` is ``"text"``, ``"markdown"`` or ``"latex"``.
    """
    if form != "text":
        from mars_score.tables import table_to_latex, table_to_markdown

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
