"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.running import print_notices
from mars_score.cli.runs import OUT, add_run_options, complete_run

STAGES = ("masking", "planning", "infilling", "sampling", "models")


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        metavar="AUGMENTED.jsonl",
        required=True,
        help=OUT.format(
            '"augmented_references" (references, infills and samples, as plain strings), "augmentations" (infills '
            'with templates and mask ratios) and "samples"'
        ),
    )
    add_run_options(parser)
    add_scorer_options(parser, STAGES, without=("encoder", "entailment_model"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    from mars_score.runs.output import write

    with complete_run(args, "augment") as (a_run, folder):
        write(a_run.output(), folder, args.out)
        notices = a_run.augment_notices()
    print_notices(notices.sentences(lines=True))
    if not args.quiet:
        print(f"{notices.rows} rows with augmented references written to {args.out}", file=sys.stderr)
