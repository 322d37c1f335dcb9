"""``mars train``: a learned head from human ratings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mars_score.cli.encoders import add_encoder_options, train_encoder, wants_encoder
from mars_score.cli.options import add_scorer_options, scorer_arguments
from mars_score.cli.rated import add_rated_options, rated_columns
from mars_score.cli.running import print_line, print_notices, scoring
from mars_score.data.rated import read_rated_sets
from mars_score.learning import KINDS
from mars_score.store.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.learning.ratings import TrainingSet


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Train a learned head on human ratings; mars score --learned FOLDER then uses it."
    parser = commands.add_parser(
        "train", help=text, description=f"{text} A training that was stopped goes on when it is started again."
    )
    parser.add_argument("files", metavar="RATED.jsonl", nargs="+", help="rated candidates, as for mars meta")
    parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="folder of the head; an older one is replaced"
    )
    parser.add_argument(
        "--head",
        choices=KINDS,
        help="terms (default for ratings): a correction of MARS's score by a few features; encoder: a network "
        "over the texts; ls: one over candidate and context, which needs no ratings",
    )
    parser.add_argument(
        "--with",
        dest="joined",
        metavar="FOLDER",
        help="a trained encoder whose score becomes one more term (head terms); it must have learned from other "
        "ratings than these",
    )
    add_rated_options(parser)
    add_encoder_options(parser)
    add_scorer_options(parser, without=("learned",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, save and print; see :func:`mars_score.cli.main` for errors."""
    from mars_score.learning.ratings import training_sets

    def read_sets() -> list[TrainingSet]:
        return training_sets(read_rated_sets(args.files, rated_columns(args)), args.within_groups)

    if wants_encoder(args):
        if args.joined:
            raise ValueError("--with joins an encoder with head terms: leave it out, or --head and --objective")
        train_encoder(args, read_sets)
        return
    sets = read_sets()
    from mars_score.learning.fitting import train

    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        saved = train(
            sets, args.out, start=args.start, joined=args.joined, progress=progress, **scorer_arguments(args)
        )
    print_notices(notices)
    print_line(f"{saved.path}: {saved.fingerprint}, learned from {sum(len(one.rows) for one in sets)} ratings")
