"""A run over the input file of a command, ``mars score`` or ``mars augment``; standard input as such a file."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.cli.arguments import input_columns, scorer_arguments
from mars_score.cli.printing import print_notices, scoring
from mars_score.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.runs import Run
    from mars_score.workers import Action


@contextmanager
def complete_run(args: argparse.Namespace, action: Action) -> Iterator[tuple[Run, Path]]:
    """Give a run that has computed everything, and its folder, which is removed at the end of the block."""
    from mars_score.data.writing import run_folder
    from mars_score.runs import Run

    with readable_again(args) as shown, run_folder(args.out) as folder:
        with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
            arguments = scorer_arguments(args)
            run = Run(args.file, input_columns(args), action, arguments, folder, args.chunk_size, progress)
            run.check(args.out)
            run.compute(args.workers)
        print_notices(map(shown, notices))
        yield run, folder


@contextmanager
def readable_again(args: argparse.Namespace) -> Iterator[Callable[[str], str]]:
    """Copy standard input, if it is the input, to a temporary file, which can be read several times.

    Gives a function that names standard input in a message instead of this file; in errors it is named by itself.
    """
    if args.file != "-":
        yield str
        return
    from mars_score.atomic import naming, temporary_folder

    with temporary_folder("mars-stdin-") as folder:
        args.file = path = str(folder / "rows")  # The first line tells the format.

        def shown(message: str) -> str:
            return message.replace(path, "standard input")

        with naming(path), open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield shown
        except (ValueError, TypeError) as error:
            raise type(error)(shown(str(error))) from None
