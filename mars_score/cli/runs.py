"""What ``mars score`` and ``mars augment`` share: options, and a run over a file."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mars_score.cli.options import columns, scorer_arguments
from mars_score.cli.running import print_notices, scoring
from mars_score.store.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.runs.run import Run

CHUNK_SIZE = 256
STANDARD_INPUT = "-"
OUT = (
    "write each row with {}; by the name's end as JSONL, .csv, .tsv or .parquet (.gz: compressed), - to standard "
    "output as JSONL"
)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options for several workers."""
    group = parser.add_argument_group(
        "large files", "A stopped run goes on when the same command is given again: the store has what was done."
    )
    group.add_argument("--workers", type=count, default=1, metavar="N", help="parallel processes (default: 1)")
    group.add_argument(
        "--chunk-size",
        type=count,
        default=CHUNK_SIZE,
        metavar="N",
        help=f"rows scored together (default: {CHUNK_SIZE})",
    )


def count(text: str) -> int:
    """A positive integer from an option's text."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return number


@contextmanager
def complete_run(args: argparse.Namespace, task: Literal["score", "augment"]) -> Iterator[tuple[Run, Path]]:
    """A run whose work is done, and its folder, which is removed at the end of the block."""
    from mars_score.runs.output import run_folder
    from mars_score.runs.run import Run
    from mars_score.runs.workers import Work

    with _readable_again(args), run_folder(args.out) as folder:
        with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
            work = Work(task, scorer_arguments(args))
            run = Run(args.file, columns(args), work, folder, args.chunk_size, progress)
            run.read(args.out)
            run.do(args.workers)
        print_notices(warned)
        yield run, folder


@contextmanager
def _readable_again(args: argparse.Namespace) -> Iterator[None]:
    """Copy standard input, if it is the input, to a temporary file, as a run reads its input several times."""
    if args.file != STANDARD_INPUT:
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
