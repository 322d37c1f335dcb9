"""What the commands share that process files of any length: options, and a run from beginning to end."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.cli.options import columns, scorer_arguments
from mars_score.cli.running import print_notices, scoring
from mars_score.store.progress import progress_bars

ENGINES = ("processes", "ray")
CHUNK_SIZE = 256
STANDARD_INPUT = "-"
OUT = (
    "write each row with {}; by the name's end as JSONL, .csv, .tsv or .parquet (.gz: compressed), - to standard "
    "output as JSONL"
)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options for workers and for stopped runs."""
    group = parser.add_argument_group(
        "large files", "A stopped run that writes a file goes on when the same command is given again."
    )
    group.add_argument("--workers", type=count, metavar="N", help="parallel processes (default: 1)")
    group.add_argument(
        "--engine", choices=ENGINES, default="processes", help="processes of this machine, or a Ray cluster"
    )
    group.add_argument("--ray-address", metavar="ADDRESS", help="the cluster (default: a new Ray on this machine)")
    group.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help="threads per worker (default: cores / workers)",
    )
    group.add_argument(
        "--chunk-size",
        type=count,
        default=CHUNK_SIZE,
        metavar="N",
        help=f"references augmented, or rows scored, together (default: {CHUNK_SIZE})",
    )
    group.add_argument("--restart", action="store_true", help="discard what a stopped run has done")


def count(text: str) -> int:
    """A positive integer from an option's text."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return number


def make_spec(args: argparse.Namespace) -> Any:
    """The :class:`mars_score.runs.run.RunSpec` that the options ask for.

    Raises:
        ValueError, TypeError: an unknown preset, or a setting out of range.
    """
    from mars_score.augment.masking.idf import Idf
    from mars_score.runs.input import Input
    from mars_score.runs.run import RunSpec
    from mars_score.runs.worker import Plan, usual_threads
    from mars_score.scorer import MarsScorer

    scorer = MarsScorer(**scorer_arguments(args))  # checks all of them; loads nothing
    names = columns(args)
    settings = scorer.settings.given(names.reference)
    workers = args.workers or 1
    threads = args.threads
    if threads is None and args.engine == "ray":
        threads = 1  # the machines are not known; Ray divides their cores among the workers
    elif threads is None and workers > 1:
        threads = max(1, usual_threads() // workers)
    runtime = scorer.runtime
    plan = Plan(
        settings,
        Idf(0, {}),
        runtime.batch_size,
        runtime.device,
        runtime.store.folder,
        threads,
        runtime.encoder_batch_size,
        scorer.head_folder,
    )
    return RunSpec(Input(args.file, names, settings.masking), plan, args.chunk_size)


@contextmanager
def done_run(
    args: argparse.Namespace, work: Callable[[Any, Any], None], write: Callable[[Any, Path], Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A complete run: what an earlier process has not done of ``work(run, executor)`` and ``write(run, folder)``.

    Yields the run and what ``write`` returned, as plain data. At the end of the block, however it ends,
    the output is moved into its place and the folder removed.
    """
    with readable_again(args):
        spec = make_spec(args)
        from mars_score.runs.folder import finish
        from mars_score.runs.run import Run
        from mars_score.runs.writing import place

        with opened_run(args) as (folder, records):
            with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
                a_run = Run(spec, records, progress)
                if not records.fact("complete"):
                    a_run.read()
                    with executor(args, a_run) as workers:
                        work(a_run, workers)
                    records.note("complete", write(a_run, folder).to_dict())
            print_notices(warned)
            try:
                yield a_run, records.fact("complete")
            finally:  # also where nobody reads to the end, as in: mars score ... | head
                if args.out is not None:
                    place(folder, args.out)
                finish(folder)


@contextmanager
def readable_again(args: argparse.Namespace) -> Iterator[None]:
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


@contextmanager
def executor(args: argparse.Namespace, a_run: Any) -> Iterator[Any]:
    """The workers, until the block ends.

    Raises:
        ImportError: Ray is not installed.
    """
    from mars_score.runs.executors import ProcessExecutor, SerialExecutor

    made: Any
    if args.engine == "ray":
        from mars_score.runs.ray import RayExecutor

        made = RayExecutor(a_run.plan, args.workers, args.ray_address)
    elif (args.workers or 1) > 1:
        made = ProcessExecutor(a_run.plan, args.workers)
    else:
        made = SerialExecutor(a_run.plan, None if args.quiet else a_run.chunk_progress)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def opened_run(args: argparse.Namespace) -> Iterator[tuple[Path, Any]]:
    """The folder of the run that writes ``args.out``, and its records; they stay after a stop."""
    from mars_score.runs.folder import finish, run_folder
    from mars_score.runs.records import Records

    with run_folder(args.out, restart=args.restart) as folder, Records(folder) as records:
        try:
            yield folder, records
        except BaseException as error:
            if not records.worked:
                finish(folder)
            elif isinstance(error, (KeyboardInterrupt, OSError, MemoryError)) and args.out and folder.exists():
                print(
                    f"mars: what is done is kept in {folder}; the same command goes on from there", file=sys.stderr
                )
            raise
