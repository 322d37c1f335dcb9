"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from mars_score.cli.options import FORMATS, USUAL, add_input_options, add_scorer_options
from mars_score.cli.running import print_notices
from mars_score.cli.runs import OUT, add_run_options, done_run
from mars_score.settings import SimilaritySettings
from mars_score.settings.fields import settings_of

if TYPE_CHECKING:
    from mars_score.runs.run import Run
    from mars_score.runs.worker import Executor


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
            "samples": "texts to draw for each context (default: 8; 0: none)",
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
    from mars_score.errors import Notices
    from mars_score.runs.writing import write_augmented

    def work(a_run: Run, workers: Executor) -> None:
        a_run.augment(workers)
        a_run.sample(workers)

    with done_run(args, work, write_augmented) as (_, told):
        notices = Notices(**told)
    print_notices(notices.sentences(lines=True))
    if not args.quiet:
        print(f"{notices.rows} rows with augmented references written to {args.out}", file=sys.stderr)
