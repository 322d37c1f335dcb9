"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.running import print_notices, progress_bars, scoring
from mars_score.cli.runs import add_run_options, engine, make_job, opened_run


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    parser = commands.add_parser("augment", help=text, description=text)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        metavar="AUGMENTED.jsonl",
        required=True,
        help='write each row with "augmented_references" (its references and what they became, as plain strings) '
        'and "augmentations" (with templates and mask ratios)',
    )
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    job = make_job(args)
    from mars_score.notices import Notices
    from mars_score.runs.folder import finish
    from mars_score.runs.run import Run
    from mars_score.runs.writing import place, write_augmented

    with opened_run(args) as (folder, records):
        with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
            a_run = Run(job, records, progress)
            if not records.fact("complete"):
                a_run.read()
                with engine(args, a_run.plan, folder, progress) as workers:
                    a_run.augment(workers)
                records.note("complete", write_augmented(a_run, folder).to_dict())
        notices = Notices(**records.fact("complete"))
        place(folder, args.out)
        finish(folder)
    print_notices([*warned, *notices.sentences()])
    print(f"{notices.rows} rows with augmented references written to {args.out}", file=sys.stderr)
