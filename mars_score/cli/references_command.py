"""``mars references``: what the references of a data set are like, before anyone scores with them."""

import argparse
import json
from typing import Any

from mars_score.cli.arguments import add_input_options, add_scorer_options, input_columns, scorer_arguments
from mars_score.cli.printing import print_line, print_notices, scoring, show_table
from mars_score.runtime import progress_bars

SAMPLES = 4  # unless --sample-count says otherwise: they show how open-ended a row is


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Look at the references of a file: number, length, diversity, overlap with the context, odd ones."
    example = "example: mars references rows.jsonl --preset mini --suggest 5"
    parser = commands.add_parser("references", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--suggest",
        type=int,
        default=0,
        metavar="N",
        help="show the N rows where one more reference would help most, with samples as drafts",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the numbers of every row")
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Look, write and print; see :func:`mars_score.cli.main` for errors."""
    if args.suggest < 0:
        raise ValueError(f"--suggest must be at least 0, got {args.suggest}")
    from mars_score.data.files import read_rows
    from mars_score.meta.reference_survey import suggestion_table, survey_references
    from mars_score.scorer import MarsScorer

    names = input_columns(args)
    rows = names.rows(read_rows(args.file))
    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        arguments = {"variant": "plus", "sample_count": SAMPLES, **scorer_arguments(args)}
        scorer = MarsScorer(**arguments, progress=progress)
        contexts = [row.context for row in rows] if names.context else None
        found = survey_references(scorer, [row.references for row in rows], contexts)
    print_notices(notices)
    suggested = found.suggest(args.suggest)
    if args.json:
        print(json.dumps({**found.to_dict(), "suggested": [row.row for row in suggested]}))
        return
    for table in (*found.tables(), *([suggestion_table(suggested)] if suggested else [])):
        show_table(table)
    print_line(f"signature {found.signature}")
