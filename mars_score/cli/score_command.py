"""``mars score`` scores the candidates of a file. ``mars augment`` augments its references."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.cli.arguments import (
    OUT,
    Commands,
    add_input_options,
    add_run_options,
    add_scorer_options,
    count,
    readable_again,
    run_options,
)
from mars_score.cli.baseline import Baseline, SameRows, read_baseline
from mars_score.cli.gates import add_gate_options, make_gates
from mars_score.cli.printing import print_error, print_notices, scoring
from mars_score.errors import Notices
from mars_score.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.runs import Action, Reader, Results, RunOptions

_COLUMNS = (
    'its score as "mars", its "aspects", the sentences that are "contradicted" (with probability, premise and '
    'source), how far a summary is "supported", its "unsupported" sentences, and the "mars_signature"'
)
# settings that augmentation does not depend on
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
def _computed(
    action: Action, options: RunOptions, baseline: Baseline | None = None, *, quiet: bool
) -> Iterator[tuple[Results, Path]]:
    """Yield the results of all rows and the folder of the run, which is removed when the block ends.

    Rows and settings are compared with those of ``baseline`` before anything is computed.
    """
    from mars_score.data.writing import run_folder
    from mars_score.runs import check_file

    same = SameRows(baseline) if baseline else None
    with readable_again(options.path) as (path, rename), run_folder(options.out) as folder:
        options = replace(options, path=path)
        with progress_bars(quiet=quiet) as progress, scoring() as notices:
            checked = check_file(action, options, folder, progress, same.add if same else None)
            notices += same.check(checked.signature) if same else ()
            results = checked.compute(options.workers)
        print_notices(map(rename, notices))
        yield results, folder


def _score(args: argparse.Namespace) -> int:
    """Score, write and print. Return exit code 3 if a gate fails, else 0.

    :func:`mars_score.cli.main` reports errors.
    """
    from mars_score.cli.score_report import JsonReport, TextReport
    from mars_score.data.writing import STDOUT
    from mars_score.runs import OutputFile

    _check_printing(args)
    options, baseline = run_options(args), None
    if args.fail_under_baseline:
        baseline = read_baseline(args.fail_under_baseline, options.columns, options.arguments.get("task"))
    gates = make_gates(args, baseline)
    with _computed("score", options, baseline, quiet=args.quiet) as (results, folder):
        form = JsonReport if args.json else TextReport
        report = form(results, folder, detailed=args.detailed, explained=args.explain)
        output = OutputFile(results, options.out, folder) if options.out else None
        readers: list[Reader | None] = [report, *gates, output]
        results.read(filter(None, readers))
        explanations = results.explain(report.summary.lowest.rows)
        failures = [line for gate in gates for line in gate.failures()]
        unchecked = [line for gate in gates if (line := gate.unchecked()) not in ("", *failures)]
        notices = report.notices(told=[*unchecked, *failures])
        for line in dict.fromkeys(unchecked):
            print_error(line)
        if output:
            output.finish()
        if options.out == STDOUT:
            print_notices([*results.readings.lines(), *notices])
        else:
            report.print(notices, explanations)
    for line in failures:
        print_error(line)
    return 3 if failures else 0


def _check_printing(args: argparse.Namespace) -> None:
    """Raise ValueError if rows are written to standard output and another option prints there."""
    for option in ("json", "detailed", "explain"):
        if args.out == "-" and getattr(args, option):
            raise ValueError(f"--{option} and --out - both write to standard output; give one of them")


def _augment(args: argparse.Namespace) -> None:
    """Augment and write. :func:`mars_score.cli.main` reports errors."""
    from mars_score.runs import OutputFile

    notices = Notices()
    with _computed("augment", run_options(args), quiet=args.quiet) as (results, folder):
        output = OutputFile(results, args.out, folder)
        for row in results:
            output.add(row)
            notices.add(row.number, row.notices)
        output.finish()
    print_notices([*notices.sentences(lines=True).values(), *results.readings.warnings()])
    if not args.quiet:
        print_error(f"{notices.rows} rows with augmented references written to {args.out}")
