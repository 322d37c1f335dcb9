"""``mars score``: MARS of the candidates in a file."""

from __future__ import annotations

import argparse
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.running import print_notices, progress_bars, scoring
from mars_score.cli.runs import add_run_options, engine, make_job, opened_run


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Score the candidates of a file against their references and contexts."
    parser = commands.add_parser("score", help=text, description=text)
    add_input_options(parser, ("prediction", "reference", "context"))
    parser.add_argument("--out", metavar="SCORES.jsonl", help='write each row with its score as "mars"')
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--detailed", action="store_true", help="also show the augmented references of every row")
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Score, write and print; see :func:`mars_score.cli.main` for errors."""
    job = make_job(args)
    from mars_score.cli.results import show_json, show_text
    from mars_score.runs.folder import finish
    from mars_score.runs.run import Run
    from mars_score.runs.writing import place, write_scores

    with opened_run(args) as (folder, records):
        with progress_bars(quiet=args.quiet) as progress, scoring() as warned:
            a_run = Run(job, records, progress)
            if not records.fact("complete"):
                a_run.read()
                with engine(args, a_run.plan, folder, progress) as workers:
                    a_run.augment(workers)
                    a_run.embed(workers)
                tally = write_scores(a_run, folder, rows=args.out is not None)
                records.note("complete", tally.to_dict())
        print_notices(warned)
        try:
            show = show_json if args.json else show_text
            show(a_run, folder, detailed=args.detailed)
        finally:  # also where nobody reads to the end, as in: mars score ... | head
            if args.out is not None:
                place(folder, args.out)
            finish(folder)
