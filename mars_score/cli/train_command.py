"""``mars train``: a learned head, from human ratings or from texts alone."""

import argparse
from typing import Any

from mars_score.cli.arguments import add_rated_options, add_scorer_options, count, rated_columns, scorer_arguments
from mars_score.cli.printing import print_line, print_notices, scoring
from mars_score.meta.rated import read_rated_sets
from mars_score.runtime import progress_bars

KINDS = {"ratings": "terms", "pretrain": "encoder", "contrastive": "ls"}  # heads by objective


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Train a learned head on human ratings; mars score --learned FOLDER then uses it."
    parser = commands.add_parser(
        "train",
        help=text,
        description=f"{text} A training that was stopped goes on when it is started again.",
        epilog="example: mars train rated.jsonl --preset mini --variant plus --out head",
    )
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", help="rated candidates, as for mars meta; or texts, also .txt")
    add("--out", required=True, metavar="FOLDER", help="folder of the head; an older one is replaced")
    add(
        "--head",
        choices=("terms", "encoder"),
        help="what learns ratings: terms (default), a correction of MARS's score by a few features; or encoder, a "
        "network over the texts",
    )
    add_rated_options(parser)
    encoders = parser.add_argument_group("encoders")
    encoders.add_argument(
        "--objective",
        choices=tuple(KINDS),
        default="ratings",
        help="ratings (default); pretrain: signals of synthetic pairs, before ratings; contrastive: prefer texts "
        "to their damaged versions (LS_Score). The latter two read references and contexts only",
    )
    encoders.add_argument("--from", dest="start", metavar="FOLDER", help="a trained encoder to start from")
    encoders.add_argument("--pairs", type=count, metavar="N", help="synthetic pairs (default: 1500)")
    encoders.add_argument("--epochs", type=count, metavar="N", help="at most (default: 3)")
    encoders.add_argument("--seed", type=int, metavar="N", help="of all that is drawn (default: 0)")
    add_scorer_options(parser, without=("learned",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, save and print; see :func:`mars_score.cli.main` for errors."""
    rated = args.objective == "ratings"
    kind = args.head if args.head and rated else KINDS[args.objective]
    if args.head not in (None, kind):
        raise ValueError(f"--objective {args.objective} trains a head {kind}: leave --head {args.head} out")
    if kind == "terms" and args.start:
        raise ValueError("--from starts an encoder from another: leave it out, or name --head encoder")
    from mars_score.learning.pairs import read_corpus
    from mars_score.learning.ratings import training_sets
    from mars_score.scorer import MarsScorer

    if rated:
        sets, sources = training_sets(read_rated_sets(args.files, rated_columns(args)), args.within_groups), []
    else:
        columns = args.reference_column, args.context_column
        sets, sources = [], [source for path in args.files for source in read_corpus(path, *columns)]
    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        scorer = MarsScorer(progress=progress, **scorer_arguments(args))
        if kind == "terms":
            from mars_score.learning.train_terms import train_terms

            saved = train_terms(scorer, args.out, sets)
        else:
            from mars_score.learning.train_encoders import train_encoder

            options = {name: getattr(args, name) for name in ("pairs", "epochs", "seed", "start")}
            options = {name: value for name, value in options.items() if value is not None}
            saved = train_encoder(scorer, args.out, args.objective, sets=sets, sources=sources, **options)
    print_notices(notices)
    learned = f"{sum(len(data.rows) for data in sets)} ratings" if rated else f"{len(sources)} texts"
    print_line(f"{saved.path}: {saved.fingerprint}, learned from {learned}")
