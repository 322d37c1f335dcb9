"""``mars train``: a learned head, from human ratings or from texts alone."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mars_score.cli.arguments import add_rated_options, add_scorer_options, count, rated_columns, scorer_arguments
from mars_score.cli.printing import print_line, print_notices, scoring
from mars_score.meta.sets import check_names, read_rated_sets
from mars_score.progress import progress_bars

KINDS = {"ratings": "terms", "pretrain": "encoder", "contrastive": "ls"}  # heads by objective
_OPTIONS = {"start": "from"}


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
    encoders.add_argument("--seed", type=int, metavar="N", help="of all that is drawn at random (default: 0)")
    add_scorer_options(parser, without=("learned",))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Train, save and print; see :func:`mars_score.cli.main` for errors."""
    learns_ratings = args.objective == "ratings"
    kind = args.head if args.head and learns_ratings else KINDS[args.objective]
    if args.head not in (None, kind):
        raise ValueError(f"--objective {args.objective} trains a head {kind}: leave --head {args.head} out")
    options = {name: getattr(args, name) for name in ("start", "pairs", "epochs", "seed")}
    options = {name: value for name, value in options.items() if value is not None}
    if kind == "terms" and options:
        given = ", ".join(f"--{_OPTIONS.get(name, name)}" for name in options)
        raise ValueError(f"{given}: of no effect on a head terms; leave them out, or name --head encoder")
    if "pairs" in options and args.objective != "pretrain":
        raise ValueError("--pairs has no effect without --objective pretrain; leave it out")
    from mars_score.scorer import MarsScorer

    data = _read_ratings(args) if learns_ratings else _read_texts(args)
    with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        scorer = MarsScorer(progress=progress, **scorer_arguments(args))
        train = _train_terms if kind == "terms" else _train_encoder
        saved = train(args, scorer, data, options)
    print_notices(notices)
    learned = f"{sum(len(one.rows) for one in data)} ratings" if learns_ratings else f"{len(data)} texts"
    print_line(f"{saved.path}: {saved.fingerprint}, learned from {learned}")


def _read_ratings(args: argparse.Namespace) -> list[Any]:
    from mars_score.learning.training import training_set

    task = getattr(args, "task", None)
    tasks = {Path(path).stem: task for path in args.files} if task else None
    sets = read_rated_sets(args.files, rated_columns(args), tasks=tasks)
    check_names("data set", args.within_groups, [one.name for one in sets])
    return [
        training_set(one.name, one.rows, one.ratings, one.groups, within_groups=one.name in args.within_groups)
        for one in sets
    ]


def _read_texts(args: argparse.Namespace) -> list[Any]:
    from research.learned_encoders.pairs import read_corpus

    columns = args.reference_column, args.context_column
    return [source for path in args.files for source in read_corpus(path, *columns)]


def _train_terms(args: argparse.Namespace, scorer: Any, sets: Sequence[Any], _: Mapping[str, Any]) -> Any:
    from mars_score.learning.training import train_terms

    return train_terms(scorer, args.out, sets)


def _train_encoder(args: argparse.Namespace, scorer: Any, data: Sequence[Any], options: Mapping[str, Any]) -> Any:
    from research.learned_encoders import train_encoders

    pairs = options.get("pairs", train_encoders.PAIRS)
    how = train_encoders.TrainingOptions(**{name: options[name] for name in options if name != "pairs"})
    if args.objective == "pretrain":
        return train_encoders.train_on_pairs(scorer, args.out, data, how, pairs)
    train = train_encoders.train_on_ratings if args.objective == "ratings" else train_encoders.train_on_contrasts
    return train(scorer, args.out, data, how)
