"""``mars train`` learns a correction of MARS's score from human ratings."""

import argparse

from mars_score.cli.arguments import (
    Commands,
    add_rated_options,
    add_scorer_options,
    rated_columns,
    scorer_arguments,
)
from mars_score.cli.printing import print_line, print_notices, scoring
from mars_score.progress import progress_bars


def add_parser(commands: Commands) -> None:
    """Add the command to argparse's subparsers."""
    text = "Learn a correction of MARS's score from human ratings; mars score --learned FOLDER then uses it."
    example = "example: mars train rated.jsonl --preset mini --variant plus --out head"
    parser = commands.add_parser("train", help=text, description=text, epilog=example)
    parser.add_argument("files", metavar="FILE", nargs="+", help="rated candidates, as for mars meta")
    text = "folder of the head; an older one is replaced"
    parser.add_argument("--out", required=True, metavar="FOLDER", help=text)
    add_rated_options(parser)
    add_scorer_options(parser, without=("learned",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, save and print. :func:`mars_score.cli.main` reports errors."""
    from mars_score.scorer import MarsScorer
    from mars_score.training import read_training_sets, train_terms

    task = getattr(args, "task", None)
    sets = read_training_sets(args.files, rated_columns(args), within_groups=args.within_groups, task=task)
    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        scorer = MarsScorer(progress=progress, **scorer_arguments(args))
        saved = train_terms(scorer, args.out, sets)
    print_notices(notices)
    count = sum(len(data.rows) for data in sets)
    print_line(f"{saved.path}: {saved.fingerprint}, learned from {count} ratings")
