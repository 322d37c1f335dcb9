"""Options and errands that the commands share which run over files of any length."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.cli.options import columns, scorer_arguments
from mars_score.cli.running import Progress, print_notices, progress_bars, scoring

ENGINES = ("processes", "ray")
CHUNK_SIZE = 256


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """How many processes or machines, and what a stop may cost."""
    group = parser.add_argument_group(
        "large files", "A run that was stopped goes on when the same command is given again, if it writes a file."
    )
    group.add_argument("--workers", type=_count, metavar="N", help="processes that work side by side (default: 1)")
    group.add_argument(
        "--engine", choices=ENGINES, default="processes", help="processes of this machine, or a Ray cluster"
    )
    group.add_argument("--ray-address", metavar="ADDRESS", help="the cluster (default: a new Ray on this machine)")
    group.add_argument(
        "--threads", type=_count, metavar="N", help="threads of each worker (default: the cores, shared out)"
    )
    group.add_argument(
        "--chunk-size",
        type=_count,
        default=CHUNK_SIZE,
        metavar="N",
        help=f"different references that are augmented, and kept, together (default: {CHUNK_SIZE})",
    )
    group.add_argument("--restart", action="store_true", help="forget what a stopped run has done")


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return number


def make_job(args: argparse.Namespace) -> Any:
    """The :class:`mars_score.runs.run.Job` that the options ask for.

    Raises:
        ValueError, TypeError: an unknown preset, or a setting out of range.
    """
    from mars_score.masking.idf import Idf
    from mars_score.runs.input import Input
    from mars_score.runs.run import Job
    from mars_score.runs.worker import Plan, usual_threads
    from mars_score.scorer import MarsScorer

    scorer = MarsScorer(**scorer_arguments(args))  # checks all of them; loads nothing
    workers = args.workers or 1
    threads = args.threads
    if threads is None and args.engine == "ray":
        threads = 1  # Ray shares out the cores of machines that we do not know
    elif threads is None and workers > 1:
        threads = max(1, usual_threads() // workers)
    plan = Plan(scorer.settings, Idf(0, {}), scorer.batch_size, scorer.device, scorer.store, threads)
    return Job(Input(args.file, columns(args), scorer.settings.masking), plan, args.chunk_size)


@contextmanager
def done_run(
    args: argparse.Namespace, work: Callable[[Any, Any], None], write: Callable[[Any, Path], Any]
) -> Iterator[tuple[Any, Path, dict[str, Any]]]:
    """The run when all is done that a stop left: reading, ``work(run, engine)`` and ``write(run, folder)``.

    Yields the run, its folder and what ``write`` told; at the end of the block, however it ends, ``args.out``
    takes its place.
    """
    job = make_job(args)
    from mars_score.runs.folder import finish
    from mars_score.runs.run import Run
    from mars_score.runs.writing import place

    with opened_run(args) as (folder, records):
        with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
            a_run = Run(job, records, progress)
            if not records.fact("complete"):
                a_run.read()
                with engine(args, a_run.plan, folder, progress) as workers:
                    work(a_run, workers)
                records.note("complete", write(a_run, folder).to_dict())
        print_notices(warned)
        try:
            yield a_run, folder, records.fact("complete")
        finally:  # also where nobody reads to the end, as in: mars score ... | head
            if args.out is not None:
                place(folder, args.out)
            finish(folder)


@contextmanager
def engine(args: argparse.Namespace, plan: Any, folder: Path, progress: Progress | None) -> Iterator[Any]:
    """Who does the work, until the block ends.

    Raises:
        ImportError: Ray is not installed.
    """
    from mars_score.runs.engines import OwnProcess, Processes

    made: Any
    if args.engine == "ray":
        from mars_score.runs.ray import RayEngine

        made = RayEngine(plan, args.workers, args.ray_address, folder)
    elif (args.workers or 1) > 1:
        made = Processes(plan, args.workers)
    else:
        made = OwnProcess(plan, progress)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def opened_run(args: argparse.Namespace) -> Iterator[tuple[Path, Any]]:
    """The folder of the run that writes ``args.out`` and its records; after a stop, what is done stays there."""
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
