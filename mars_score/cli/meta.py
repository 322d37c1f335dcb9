"""``mars meta``: how well MARS and other metrics agree with human ratings."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mars_score.cli.options import USUAL, add_scorer_options, scorer_arguments
from mars_score.cli.rated import add_rated_options, rated_columns, set_names
from mars_score.cli.running import print_line, scoring
from mars_score.data.files import row_line, whole_file
from mars_score.data.rated import read_rated_sets
from mars_score.meta.metrics import METRICS, parse_names
from mars_score.settings.fields import TASKS
from mars_score.store.progress import progress_bars


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Measure how well MARS and other metrics agree with human ratings."
    parser = commands.add_parser(
        "meta",
        help=text,
        description=f"{text} A run that was stopped continues where it was if it has the same store.",
    )
    parser.add_argument(
        "files", metavar="FILE.jsonl", nargs="+", help="one rated candidate per line, a JSON object"
    )
    add_rated_options(parser)
    parser.add_argument(
        "--metrics",
        type=_metrics,
        default=list(METRICS),
        metavar="A,B,...",
        help=f"among {', '.join(METRICS)}; mars[setting=value,...]; evaluate:NAME_OR_PATH (default: all)",
    )
    parser.add_argument(
        "--groups", type=int, metavar="N", help="a sample: at most N groups per file, chosen by their hash"
    )
    parser.add_argument("--no-attacks", action="store_true", help="leave out Reorder and Retrieve")
    parser.add_argument(
        "--sweep-groups",
        type=int,
        default=0,
        metavar="N",
        help="also sweep settings that need the language model again, on N groups per file (default: 0, no sweep)",
    )
    parser.add_argument(
        "--worth",
        action="store_true",
        help="also measure the worth of augmentations in human references; rows with several are scored again",
    )
    parser.add_argument(
        "--task",
        dest="tasks",
        type=_tasks,
        default={},
        metavar="SET=TASK,...",
        help=f"what a candidate is to its context: {', '.join(TASKS)} (default: by the form of the context)",
    )
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="of intervals and tests")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of attacks, intervals and tests")
    parser.add_argument(
        "--published",
        type=_published,
        metavar="FILE.json",
        help='figures of others to show beside: {"data set": {"metric": {"system": Pearson\'s r}}}',
    )
    parser.add_argument(
        "--report", metavar="DIR", help="write index.html, report.md, results.json and the scores of every item"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser, without=("task",))
    parser.shorten_help(
        {
            "metrics": "names, listed by --help-all (default: all)",
            "rating_column": None,
            "groups": "a sample: at most N groups per file",
            "preset": USUAL["preset"],
            "report": "write a report as HTML and Markdown",
            "json": None,
        },
        [
            "mars meta rated.jsonl --preset mini --metrics mars,bertscore",
            "mars meta rated.jsonl --preset mini --report report",
        ],
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Evaluate, write and print; see :func:`mars_score.cli.main` for errors."""
    sets = read_rated_sets(args.files, rated_columns(args), args.groups, args.tasks)
    from mars_score.data.attacks import ATTACKS
    from mars_score.meta.evaluation import meta_evaluate
    from mars_score.meta.plain import to_dict
    from mars_score.meta.worth import CHOICES

    with progress_bars(quiet=args.quiet) as progress, scoring():
        found = meta_evaluate(
            sets,
            args.metrics,
            within_groups=args.within_groups,
            attacks=[] if args.no_attacks else list(ATTACKS),
            sweep_groups=args.sweep_groups,
            worth_choices=CHOICES if args.worth else 0,
            resamples=args.resamples,
            seed=args.seed,
            progress=progress,
            **scorer_arguments(args),
        )
    if args.report:
        _write(Path(args.report), found, args.published)
    if args.json:
        print(json.dumps(to_dict(found)))  # in ASCII: safe on any terminal
        return
    from mars_score.cli.tables import show_table
    from mars_score.meta.tables import main_table
    from mars_score.meta.worth_tables import worth_tables

    for table in (main_table(found), *worth_tables(found)):
        show_table(table)
    for failure in found.failures():
        print_line(f"skipped: {failure}")
    if args.report:
        print_line(f"report: {Path(args.report) / 'index.html'}")


def _write(folder: Path, found: Any, published: Mapping[str, Any] | None) -> None:
    """The report, its figures as JSON, and the scores of every item."""
    from mars_score.meta.plain import score_rows, to_dict
    from mars_score.meta.report import build_report
    from mars_score.report import write_report

    (folder / "scores").mkdir(parents=True, exist_ok=True)
    for name, one in found.sets.items():
        with whole_file(folder / "scores" / f"{name}.jsonl") as file:
            for row in score_rows(one):
                file.write(row_line(row))
    with whole_file(folder / "results.json") as file:
        file.write(json.dumps(to_dict(found), ensure_ascii=False, indent=1) + "\n")
    write_report(build_report(found, published), folder)


def _metrics(text: str) -> list[str]:
    try:
        return parse_names(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _tasks(text: str) -> dict[str, str]:
    pairs = [pair.rpartition("=") for pair in set_names(text)]
    if not all(name and task for name, _, task in pairs):
        raise argparse.ArgumentTypeError(f"not of the form SET=TASK,SET=TASK,...: {text!r}")
    return {name: task for name, _, task in pairs}


def _published(path: str) -> dict[str, dict[str, dict[str, float]]]:
    """Figures of others, checked."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return {
            str(name): {
                str(metric): {str(system): float(value) for system, value in systems.items()}
                for metric, systems in metrics.items()
            }
            for name, metrics in found.items()
        }
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise argparse.ArgumentTypeError(
            f'{path}: not of the form {{"data set": {{"metric": {{"system": 0.1}}}}}} ({error})'
        ) from None
