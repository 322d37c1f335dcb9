"""``mars meta`` measures how well metrics agree with human ratings. ``mars references`` describes references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mars_score.cli.arguments import (
    Commands,
    add_input_options,
    add_rated_options,
    add_scorer_options,
    input_columns,
    rated_columns,
    readable_again,
    scorer_arguments,
    split_names,
)
from mars_score.cli.printing import print_line, print_notices, scoring, show_table
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import METRICS, parse_names
from mars_score.meta.sets import read_rated_sets
from mars_score.progress import progress_bars
from mars_score.rows import TASKS
from mars_score.settings import SETTING_NAMES

_SURVEYING = {"use_context", "encoder", "dtype"}  # settings that the description of references depends on


def add_parser(commands: Commands) -> None:
    """Add both commands to argparse's subparsers."""
    _add_meta(commands)
    _add_references(commands)


def _add_meta(commands: Commands) -> None:
    text = "Measure how well MARS and other metrics agree with human ratings."
    parser = commands.add_parser(
        "meta",
        help=text,
        description=f"{text} A run that was stopped continues where it was if it has the same store.",
        epilog="example: mars meta rated.jsonl --preset mini --metrics mars_plus,bertscore --report report",
    )
    add = parser.add_argument
    add("files", metavar="FILE.jsonl", nargs="+", help="one rated candidate per line, as JSON")
    add_rated_options(parser)
    text = f"among {', '.join(METRICS)}; mars[setting=value,...] (default: all but those with brackets)"
    add("--metrics", default=",".join(METRICS), metavar="A,B,...", help=text)
    add("--groups", type=int, metavar="N", help="a sample: at most N groups per file, chosen by their hash")
    add("--no-attacks", action="store_true", help="leave out Reorder and Retrieve")
    text = f"what the contexts are, of all data sets or of one: {', '.join(TASKS)} (default: as their type says)"
    add("--task", dest="tasks", action="extend", type=_tasks, default=[], metavar="[SET=]TASK,...", help=text)
    add("--resamples", type=int, default=1000, metavar="N", help="of intervals and tests (1000)")
    add("--seed", type=int, default=0, metavar="N", help="of attacks, intervals and tests (0)")
    add("--report", metavar="DIR", help="write report.md, results.json, and each item's scores")
    add("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser, without=("task",))
    parser.set_defaults(run=_evaluate)


def _tasks(text: str) -> list[tuple[str, str]]:
    """Split ``SET=TASK,...`` into pairs. The set of a task for all sets is ""."""
    return [pair.rpartition("=")[::2] for pair in split_names(text)]


def _task_by_set(args: argparse.Namespace) -> dict[str, str]:
    """Return the tasks of data sets, by the names of these."""
    tasks = dict(args.tasks)
    task = tasks.pop("", None)
    return tasks if task is None else {Path(path).stem: task for path in args.files} | tasks


def _add_references(commands: Commands) -> None:
    text = "Describe the references of a file: number, length, diversity, overlap with the context, odd ones."
    example = "example: mars references rows.jsonl --preset mini"
    parser = commands.add_parser("references", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    rated = parser.add_argument_group("ratings of references")
    text = "column of people's ratings of the references: a list per row, as long as theirs, null for no rating"
    rated.add_argument("--ratings", metavar="NAME", help=text)
    text = "write each row with the reference of the highest rating alone (the first of equals), as JSONL"
    rated.add_argument("--best", metavar="BEST.jsonl", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the figures of every row")
    add_scorer_options(parser, ("settings", "models"), without=set(SETTING_NAMES) - _SURVEYING)
    parser.set_defaults(run=_survey)


def _evaluate(args: argparse.Namespace) -> None:
    """Evaluate, write and print. :func:`mars_score.cli.main` reports errors."""
    metrics = parse_names(args.metrics)
    with scoring() as notices:
        sets = read_rated_sets(args.files, rated_columns(args), args.groups, _task_by_set(args))
    print_notices(notices)
    from mars_score.meta.evaluation import meta_evaluate
    from mars_score.meta.report import check_report, main_table, rater_lines, write_report

    if args.report:
        check_report(args.report, [data.name for data in sets])
    options: dict[str, Any] = {"attacks": ()} if args.no_attacks else {}
    options |= {name: getattr(args, name) for name in ("within_groups", "resamples", "seed")}
    with progress_bars(quiet=args.quiet) as progress, scoring():
        result = meta_evaluate(sets, metrics, **options, progress=progress, **scorer_arguments(args))
    print_notices([*result.notices(), *(f"skipped: {failure}" for failure in result.failures())])
    if not result.titles:
        raise ModelUnavailableError("no metric gave a score; the notices say why")
    path = write_report(result, args.report) if args.report else None
    if args.json:
        print(json.dumps(result.to_dict()))  # ASCII is safe on any terminal.
        return
    show_table(main_table(result))
    for line in rater_lines(result):
        print_line(line)
    if path:
        print_line(f"report: {path}")


def _survey(args: argparse.Namespace) -> None:
    """Describe the references and print. :func:`mars_score.cli.main` reports errors."""
    from mars_score.atomic import check_replaceable, write_whole
    from mars_score.data.columns import PlaceInFile
    from mars_score.data.reading import read_rows
    from mars_score.data.writing import row_line
    from mars_score.meta.reference_survey import survey_references
    from mars_score.scorer import MarsScorer

    if args.best and not args.ratings:
        raise ValueError("--best needs the ratings that decide: name their column with --ratings")
    if args.best:
        check_replaceable(args.best)
    columns, quiet = input_columns(args), args.quiet
    with readable_again(args.file) as (path, rename), progress_bars(quiet=quiet) as progress, scoring() as notices:
        file = columns.parse_cells(read_rows(path))
        names = columns.found_in(file)
        names.examples(file)  # for its errors, which name the line
        survey = survey_references(
            MarsScorer(**scorer_arguments(args), progress=progress),
            file.column(names.reference, "reference") if names.reference else None,
            file.column(names.context, "context") if names.context else None,
            file.column(args.ratings, "ratings") if args.ratings else None,
            PlaceInFile(file=file, names={"ratings": args.ratings or "ratings"}),
        )
    if args.best and names.reference:
        best = zip(file.rows, survey.rows, survey.best, strict=True)
        lines = [row_line({**row, names.reference: texts.references[index]}) for row, texts, index in best]
        write_whole(args.best, "".join(lines))
    print_notices(map(rename, notices))
    if args.json:
        print(json.dumps(survey.to_dict()))
        return
    for table in survey.tables():
        show_table(table)
    print_line(f"encoder {survey.encoder}")
