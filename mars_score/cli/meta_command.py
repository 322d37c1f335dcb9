"""``mars meta``: how well MARS and other metrics agree with human ratings."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mars_score.cli.arguments import (
    add_rated_options,
    add_scorer_options,
    rated_columns,
    scorer_arguments,
    split_names,
)
from mars_score.cli.printing import print_line, print_notices, scoring, show_table
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import METRICS, parse_names
from mars_score.meta.sets import read_rated_sets
from mars_score.progress import progress_bars
from mars_score.rows import TASKS


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Measure how well MARS and other metrics agree with human ratings."
    parser = commands.add_parser(
        "meta",
        help=text,
        description=f"{text} A run that was stopped continues where it was if it has the same store.",
        epilog="example: mars meta rated.jsonl --preset mini --metrics mars_plus,bertscore --report report",
    )
    parser.add_argument("files", metavar="FILE.jsonl", nargs="+", help="one rated candidate per line, as JSON")
    add_rated_options(parser)
    parser.add_argument(
        "--metrics",
        type=_metrics,
        default=list(METRICS),
        metavar="A,B,...",
        help=f"among {', '.join(METRICS)}; mars[setting=value,...]; naive[MODEL], MARS with infills of a masked "
        "language model (default: all but those with brackets)",
    )
    parser.add_argument(
        "--groups", type=int, metavar="N", help="a sample: at most N groups per file, chosen by their hash"
    )
    parser.add_argument("--no-attacks", action="store_true", help="leave out Reorder and Retrieve")
    parser.add_argument(
        "--task",
        dest="tasks",
        action="extend",
        type=_tasks,
        default=[],
        metavar="SET=TASK,...",
        help=f"what the contexts of a data set are: {', '.join(TASKS)} (default: as their type says)",
    )
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="of intervals and tests (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of attacks, intervals and tests (0)")
    parser.add_argument("--report", metavar="DIR", help="write report.md, results.json, and each item's scores")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser, without=("task",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Evaluate, write and print; see :func:`mars_score.cli.main` for errors."""
    with scoring() as notices:
        sets = read_rated_sets(args.files, rated_columns(args), args.groups, dict(args.tasks))
    print_notices(notices)
    from mars_score.meta.attacks import ATTACKS
    from mars_score.meta.evaluation import meta_evaluate

    options: dict[str, Any] = {name: getattr(args, name) for name in ("within_groups", "resamples", "seed")}
    options["attacks"] = () if args.no_attacks else tuple(ATTACKS)
    with progress_bars(quiet=args.quiet) as progress, scoring():
        found = meta_evaluate(sets, args.metrics, **options, progress=progress, **scorer_arguments(args))
    print_notices([*found.notices(), *(f"skipped: {failure}" for failure in found.failures())])
    if not found.titles:
        raise ModelUnavailableError("no metric gave a score; the notices say why")
    from mars_score.meta.meta_report import main_table, rater_lines, write_report

    path = write_report(found, args.report) if args.report else None
    if args.json:
        print(json.dumps(found.to_dict()))  # in ASCII: safe on any terminal
        return

    show_table(main_table(found))
    for line in rater_lines(found):
        print_line(line)
    if path:
        print_line(f"report: {path}")


def _metrics(text: str) -> list[str]:
    try:
        return parse_names(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _tasks(text: str) -> list[tuple[str, str]]:
    """Split ``SET=TASK,...`` into pairs; the names are checked with the data sets."""
    pairs = [pair.rpartition("=") for pair in split_names(text)]
    if not all(name and task for name, _, task in pairs):
        raise argparse.ArgumentTypeError(f"not of the form SET=TASK,SET=TASK,...: {text!r}")
    return [(name, task) for name, _, task in pairs]
