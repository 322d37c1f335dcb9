"""``mars score`` and ``mars augment``: MARS of the candidates in a file, and its augmented references."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.cli.arguments import (
    OUT,
    Commands,
    add_input_options,
    add_run_options,
    add_scorer_options,
    count,
    input_columns,
    readable_again,
    scorer_arguments,
)
from mars_score.cli.baseline import Baseline, read_baseline
from mars_score.cli.gates import add_gate_options, failures, unchecked_notices
from mars_score.cli.printing import print_error, print_notices, scoring
from mars_score.cli.score_report import show_json, show_text
from mars_score.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.runs import Action, Run

_COLUMNS = (
    'its score as "mars", its "aspects", the sentences that are "contradicted" (with probability, premise and '
    'source), how far a summary is "supported", its "unsupported" sentences, and the "mars_signature"'
)
# Settings that an augmentation does not depend on.
_NOT_AUGMENTING = ("task", "clean", "learned", "encoder", "entailment_model", "q", "reference_aggregation")


def add_parser(commands: Commands) -> None:
    """Add both commands to argparse's subparsers."""
    _add_score(commands)
    _add_augment(commands)


def _add_score(commands: Commands) -> None:
    text = "Score the candidates of a file by their references and contexts, or by their contexts alone."
    example = "example: mars score rows.csv --out scores.csv"
    parser = commands.add_parser("score", help=text, description=text, epilog=example)
    add_input_options(parser, ("prediction", "reference", "context"))
    add = parser.add_argument
    add("--out", metavar="SCORES.jsonl", help=OUT.format(_COLUMNS))
    add("--json", action="store_true", help="print one JSON object")
    text = "also show the terms of every row, and what it was compared with"
    add("--detailed", action="store_true", help=text)
    text = "also explain the N lowest rows (without a number: 3): matches by word, nearest texts"
    add("--explain", type=count, nargs="?", const=3, default=0, metavar="N", help=text)
    add_gate_options(parser)
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=_score)


def _add_augment(commands: Commands) -> None:
    text = "Augment the references of a file in the light of their contexts, as variant paper does."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    text = OUT.format(
        '"augmented_references" (references and infills, as plain strings) and "augmentations" (infills with '
        "templates and mask ratios)"
    )
    parser.add_argument("--out", required=True, metavar="AUGMENTED.jsonl", help=text)
    add_run_options(parser)
    add_scorer_options(parser, ("settings", "models", "paper"), without=_NOT_AUGMENTING)
    parser.set_defaults(run=_augment, variant="paper")


@contextmanager
def _complete_run(
    args: argparse.Namespace, action: Action, baseline: Baseline | None = None
) -> Iterator[tuple[Run, Path]]:
    """Yield a run that has computed everything, and its folder, which the end of the block removes.

    Before anything is computed its rows and settings are compared with those of ``baseline``.
    """
    from mars_score.data.writing import run_folder
    from mars_score.runs import Run

    with readable_again(args) as rename, run_folder(args.out) as folder:
        with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
            arguments = scorer_arguments(args)
            run = Run(args.file, input_columns(args), action, arguments, folder, args.chunk_size, progress)
            run.check(args.out, baseline.see if baseline else None)
            notices += baseline.check(run.signature) if baseline else ()
            run.compute(args.workers)
        print_notices(map(rename, notices))
        yield run, folder


def _score(args: argparse.Namespace) -> int:
    """Score, write and print; see :func:`mars_score.cli.main` for errors.

    Returns:
        The exit code: 3 if scores are below their thresholds, else 0.
    """
    for option in ("json", "detailed", "explain"):
        if args.out == "-" and getattr(args, option):
            raise ValueError(f"--{option} and --out - both write to standard output; give one of them")
    from mars_score.atomic import naming
    from mars_score.data.writing import write

    baseline = _baseline(args)
    with _complete_run(args, "score", baseline) as (run, folder):
        summary = run.summary(args.explain)
        explanations = run.explain([row.row for row in summary.lowest[: args.explain]])
        failed = list(failures(run, summary, args, baseline))
        notices = [*summary.notices.sentences(lines=True), *unchecked_notices(run, summary, args)]
        shown, encoding = folder / "shown", sys.stdout.encoding or "utf-8"
        with naming(shown), shown.open("w", encoding=encoding, newline="") as file, redirect_stdout(file):
            if args.json:
                show_json(run, summary, explanations, notices, args.detailed)
            elif args.out != "-":
                show_text(run, summary, explanations, notices, args.detailed)
        if args.out == "-":
            print_notices([*run.readings.lines(), *notices])
        if args.out is not None:
            write(run.output(), folder, args.out)  # It may replace the input, which is not read again.
        with shown.open(encoding=encoding, newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    for line in failed:
        print_error(line)
    return 3 if failed else 0


def _baseline(args: argparse.Namespace) -> Baseline | None:
    if not args.fail_under_baseline:
        return None
    return read_baseline(args.fail_under_baseline, input_columns(args), getattr(args, "task", None))


def _augment(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    from mars_score.data.writing import write

    with _complete_run(args, "augment") as (run, folder):
        notices = run.notices()
        write(run.output(), folder, args.out)  # It may replace the input.
    print_notices([*notices.sentences(lines=True), *run.readings.warnings()])
    if not args.quiet:
        print_error(f"{notices.rows} rows with augmented references written to {args.out}")
