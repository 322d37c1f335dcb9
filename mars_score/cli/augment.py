"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mars_score.cli.options import FORMATS, USUAL, add_input_options, add_scorer_options
from mars_score.cli.running import print_notices
from mars_score.cli.runs import OUT, add_run_options, complete_run
from mars_score.settings import SimilaritySettings
from mars_score.settings.fields import settings_of


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    parser = commands.add_parser("augment", help=text, description=text)
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
    add_scorer_options(parser, unused=(*(one.name for one in settings_of(SimilaritySettings)), "encoder"))
    parser.shorten_help(
        {
            "file": FORMATS,
            "out": "write each row with its augmented references",
            **USUAL,
            "samples": "texts to draw for each context (default: 0)",
            "workers": None,
        },
        [
            "mars augment rows.jsonl --preset mini --out augmented.jsonl",
            "mars augment rows.csv --preset mini --out augmented.csv",
        ],
    )
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
