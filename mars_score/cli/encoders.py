"""The part of ``mars train`` that concerns encoders."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mars_score.cli.options import scorer_arguments
from mars_score.cli.running import print_line, scoring
from mars_score.cli.runs import count
from mars_score.learning import OBJECTIVES, PAIRS, SHARE
from mars_score.store.progress import progress_bars

if TYPE_CHECKING:
    from mars_score.learning.pairs import Source
    from mars_score.learning.ratings import TrainingSet


def add_encoder_options(parser: argparse.ArgumentParser) -> None:
    """What an encoder learns from, and how long."""
    group = parser.add_argument_group("encoders")
    group.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="ratings",
        help="ratings (default); pretrain: signals of synthetic pairs; contrastive: prefer texts to their damaged "
        "versions (head ls, unless another is named). The latter two read texts and contexts only",
    )
    group.add_argument(
        "--corpus", metavar="FILE", help="texts, also .txt (default: references and contexts of the files)"
    )
    group.add_argument("--from", dest="start", metavar="FOLDER", help="a trained head to start from")
    group.add_argument("--pairs", type=count, metavar="N", help=f"synthetic pairs (default: {PAIRS:,})")
    group.add_argument(
        "--share",
        type=_share,
        metavar="S",
        help=f"of their texts that the language model fills and reads (default: {SHARE})",
    )
    group.add_argument(
        "--translators", type=_two, metavar="THERE,BACK", help="translation models, for back-translation"
    )
    group.add_argument("--entailment", metavar="MODEL", help="a sequence classifier with three classes")
    group.add_argument(
        "--signal-weights", type=_weights, metavar="NAME=W,...", help="of losses; 0: left out (default: 1)"
    )
    group.add_argument("--epochs", type=count, metavar="N", help="at most (default: 3)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is drawn")


def wants_encoder(args: argparse.Namespace) -> bool:
    """Whether an encoder is to be trained."""
    return args.head in ("encoder", "ls") or args.objective != "ratings"


def train_encoder(args: argparse.Namespace, read_sets: Callable[[], Sequence[TrainingSet]]) -> None:
    """Train, save and print; see :func:`mars_score.cli.main` for errors.

    Args:
        args: with the options of :func:`add_encoder_options`, ``files``, ``head`` (None: by the objective) and
            ``out``.
        read_sets: reads the files as rated sets.
    """
    if args.head == "terms":
        raise ValueError(f"--objective {args.objective} trains an encoder: name --head encoder or ls, or none")
    from mars_score.learning.objectives import EncoderTraining
    from mars_score.learning.training import TrainingSettings
    from mars_score.scorer import MarsScorer

    given: dict[str, Any] = {"pairs": args.pairs, "share": args.share, "weights": args.signal_weights}
    training = EncoderTraining(
        args.objective,
        args.head or ("ls" if args.objective == "contrastive" else "encoder"),
        args.start,
        translators=args.translators,
        entailment=args.entailment,
        training=TrainingSettings(args.epochs or TrainingSettings.epochs, seed=args.seed),
        **{name: value for name, value in given.items() if value is not None},
    )
    rated = args.objective == "ratings"
    sets, sources = (read_sets(), []) if rated else ([], _sources(args))
    with progress_bars(quiet=args.quiet) as progress, scoring():
        scorer = MarsScorer(progress=progress, **scorer_arguments(args))
        saved = training.run(args.out, scorer.settings, scorer.runtime, sets, sources)
    learned = f"{sum(len(one.rows) for one in sets)} ratings" if rated else f"{len(sources)} texts"
    print_line(f"{os.fspath(saved.path)}: {saved.fingerprint}, learned from {learned}")


def _sources(args: argparse.Namespace) -> list[Source]:
    """The texts of the corpus or of the files; for pre-training also the sentences of their contexts."""
    from mars_score.learning.pairs import read_corpus, with_sentences

    columns = args.reference_column, args.context_column
    found = [one for path in ([args.corpus] if args.corpus else args.files) for one in read_corpus(path, *columns)]
    return with_sentences(found) if args.objective == "pretrain" else found


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"not a share from 0 to 1: {text!r}")
    return found


def _two(text: str) -> tuple[str, str]:
    there, _, back = text.partition(",")
    if not (there and back) or "," in back:
        raise argparse.ArgumentTypeError(f"not two models, THERE,BACK: {text!r}")
    return there, back


def _weights(text: str) -> dict[str, float]:
    try:
        pairs = [pair.rpartition("=") for pair in text.split(",")]
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"not of the form NAME=WEIGHT,...: {text!r}") from None
