"""``mars train``: a learned head, from human ratings."""

from __future__ import annotations

import argparse
from typing import Any

from mars_score.cli.options import add_scorer_options, scorer_arguments
from mars_score.cli.rated import add_rated_options, rated_columns
from mars_score.cli.running import print_line, print_notices, scoring
from mars_score.data.rated import read_rated_sets
from mars_score.store.progress import progress_bars


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Train a learned head on human ratings; mars score --learned FOLDER then uses it."
    example = "example: mars train rated.jsonl --preset mini --variant plus --out head"
    parser = commands.add_parser("train", help=text, description=text, epilog=example)
    parser.add_argument("files", metavar="FILE", nargs="+", help="rated candidates, as for mars meta")
    parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="folder of the head; an older one is replaced"
    )
    add_rated_options(parser)
    add_scorer_options(parser, without=("learned",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, save and print; see :func:`mars_score.cli.main` for errors."""
    from mars_score.learning.ratings import training_sets
    from mars_score.learning.terms import train_terms

    sets = training_sets(read_rated_sets(args.files, rated_columns(args)), args.within_groups)
    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        saved = train_terms(sets, args.out, progress=progress, **scorer_arguments(args))
    print_notices(notices)
    count = sum(len(data.rows) for data in sets)
    print_line(f"{saved.path}: {saved.fingerprint}, learned from {count} ratings")
