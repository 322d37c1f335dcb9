"""Experiments with the trained encoder and with LS_Score, small enough for one core (docs/learning.md).

    python -m research.encoder drift DATA --out DIR       learned from worse candidates than it is tested on
    python -m research.encoder ablation DATA --out DIR    pre-trained without one of the signals
    python -m research.encoder newsroom DATA --out DIR    LS_Score by aspect of Newsroom

``DATA`` is a folder of rated sets. What is finished is kept in ``DIR``; a run that was stopped goes on there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from mars_score import MarsScorer
from mars_score.data.rated import RatedSet, read_rated_set
from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.learning.contrastive import LsHead, fit_contrast
from mars_score.learning.encoder import EncoderHead
from mars_score.learning.pairs import Pair, Source, generator, infillers, make_pairs, references_of, with_sentences
from mars_score.learning.pretraining import DAMAGE, pretrain
from mars_score.learning.ratings import TrainingSet, training_sets
from mars_score.learning.signals import SIGNALS, Signals, read_signals
from mars_score.learning.training import TrainingSettings
from mars_score.meta.metrics import make_metric
from mars_score.meta.metrics.base import Models
from mars_score.scoring.head_folder import read_head
from mars_score.scoring.heads import Example, LearnedHead
from mars_score.scoring.result import weighted_sum
from mars_score.settings import resolve_settings
from mars_score.store.location import store_folder
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime
from research.learned import drifted

FOLDS = (  # sets of one family are left out together
    ("bagel", "sfhot", "sfres", "usr_personachat", "usr_topicalchat", "grade_convai2", "huse_gigaword"),
    ("evouna_nq", "evouna_tq", "union_roc", "openmeva_roc", "mohler_asag", "simplicity_da", "asset_human"),
    ("newsroom", "summeval", "realsumm", "dialsummeval", "qa_feedback", "qgeval"),
)
DRIFTING = ("mohler_asag", "sfres")
SKEWS = (0.0, 1.5, 3.0)
TESTED = 100  # rows of a set, about
SETTINGS = resolve_settings("mini", "fast", max_context_tokens=64)
ASPECTS = ("coherence", "fluency", "informativeness", "relevance")

Floats = NDArray[np.float64]


class Pretraining(NamedTuple):
    """What is learned before there are ratings.

    Attributes:
        pairs: synthetic pairs.
        epochs: at most.
        share: of the texts, that the language model infills (and reads, unless that is left out).
        without: signals that are left out.
    """

    pairs: int
    epochs: int
    share: float
    without: Sequence[str]

    @classmethod
    def of(cls, args: argparse.Namespace) -> Pretraining:
        """From the options of the command line."""
        return cls(args.pairs, args.epochs, args.share, args.without)


def run_drift(data: Path, out: Path, runtime: Runtime, pretraining: Pretraining, rows: int) -> None:
    """The encoder with and without pre-training, and MARS, where learning and test differ in quality."""
    scorer, synthetic = MarsScorer("mini", variant="plus", progress=report), Synthetic(data, runtime, pretraining)
    for name in DRIFTING:
        fold = next(number for number, names in enumerate(FOLDS) if name in names)
        start = pretrained(synthetic, out, fold)
        (whole,) = training_sets([sample(data, name, 8 * rows)])
        for skew in SKEWS:
            taught, test = (
                whole.take(each.tolist()) for each in drifted(whole.ratings, np.array(whole.groups), skew, 0)
            )
            found = {"plus": scorer.score(*map(list, zip(*test.rows, strict=True))).scores}
            for title, saved in (("encoder", None), ("encoder, pre-trained", start)):
                folder = out / f"drift-{name}-{skew:g}{'-pretrained' if saved else ''}"
                head = kept(folder, runtime, partial(fit_on, start=saved, sets=[taught]))
                found[title] = scores_of(head, test.rows)
            figures = {title: float(pearsonr(scores, test.ratings)[0]) for title, scores in found.items()}
            print(json.dumps({"set": name, "skew": skew, "rows": len(test.rows), **figures}), flush=True)


def fit_on(head: EncoderHead, start: Path | None, sets: Sequence[TrainingSet]) -> None:
    """Train on ratings, from a saved head where there is one."""
    if start:
        head.start_from(read_head(start))
    head.fit(sets, [examples(one.rows) for one in sets])


class Synthetic:
    """Synthetic pairs of the texts of each set, and their signals; made when first needed."""

    def __init__(self, data: Path, runtime: Runtime, how: Pretraining) -> None:
        self._data, self._runtime, self._how = data, runtime, how

    @cached_property
    def _pairs_and_signals(self) -> tuple[list[str], list[Pair], Signals]:
        """The set of each pair; the pairs; their signals."""
        runtime, (count, _, share, without) = self._runtime, self._how
        names = [name for fold in FOLDS for name in fold]
        by = infillers(SETTINGS, runtime)
        sets: list[str] = []
        pairs: list[Pair] = []
        for name in names:
            sources = short_sources(read_rated_set(self._data / f"{name}.jsonl"))
            pairs += make_pairs(sources, count // len(names), 0, by, share=share)
            sets += [name] * (len(pairs) - len(sets))
        return sets, pairs, read_signals(pairs, SETTINGS, runtime, without=without, share=share)

    def pretrained(
        self, folder: Path, sets: Sequence[str], weights: Mapping[str, float] | None = None
    ) -> EncoderHead:
        """An encoder that was pre-trained on the texts of some sets, kept in a folder."""

        def train(head: EncoderHead) -> None:
            of_pairs, pairs, signals = self._pairs_and_signals
            rows = [row for row, name in enumerate(of_pairs) if name in sets]
            pretrain(
                head, [pairs[row] for row in rows], {name: one[rows] for name, one in signals.items()}, weights
            )

        return kept(folder, self._runtime, train, epochs=self._how.epochs)


def short_sources(data: RatedSet) -> list[Source]:
    """References with short contexts, and the sentences of contexts, each given the one before it."""
    found = [
        Source(reference.strip(), context.strip())
        for _, references, context in data.rows
        for reference in references
        if len(context.split()) <= 100 and 4 <= len(reference.split()) <= 40
    ]
    for context in dict.fromkeys(context for _, _, context in data.rows):
        of_context = [one for one in sentences(context) if 4 <= len(one.split()) <= 25]
        found += [Source(one, of_context[i - 1] if i else "") for i, one in enumerate(of_context)]
    return list(dict.fromkeys(found))


def teaching(fold: int) -> list[str]:
    """The sets of the other folds."""
    return [name for number, names in enumerate(FOLDS) if number != fold for name in names]


def pretrained(synthetic: Synthetic, out: Path, fold: int) -> Path:
    """The folder of an encoder that was pre-trained on the texts of the other folds."""
    folder = out / f"pretrained-without-{fold}"
    synthetic.pretrained(folder, teaching(fold))
    return folder


def run_ablation(data: Path, out: Path, runtime: Runtime, how: Pretraining) -> None:
    """What pre-training alone makes of the sets of a fold that it has not seen, without each of the signals."""
    synthetic, fold = Synthetic(data, runtime, how), 0
    tests = [sample(data, name, TESTED) for name in FOLDS[fold]]
    saved = read_head(pretrained(synthetic, out, fold))
    heads = {"untrained": EncoderHead(SETTINGS, runtime), "all": EncoderHead.load(saved, SETTINGS, runtime)}
    for signal in (*(name for name in SIGNALS[:5] if name not in how.without), DAMAGE):
        title = f"without {signal}"
        heads[title] = synthetic.pretrained(out / title.replace(" ", "-"), teaching(fold), {signal: 0.0})
    for title, head in heads.items():
        found = {one.name: float(pearsonr(scores_of(head, one.rows), one.ratings)[0]) for one in tests}
        print(json.dumps({"signals": title, "mean": float(np.mean(list(found.values()))), **found}), flush=True)


def run_newsroom(data: Path, out: Path, runtime: Runtime, texts: int) -> None:
    """LS_Score before training, trained on Newsroom's own texts and on those of other news, and its ablation."""
    news = training_sets([read_rated_set(data / f"{name}.jsonl") for name in ("newsroom", "summeval", "realsumm")])
    own = _some(with_sentences(references_of(news[:1])), texts)
    of_others = {(reference, row[2]) for one in news[1:] for row in one.rows for reference in row[1]}
    others = _some([Source(*one) for one in of_others], texts)
    test = read_rated_set(data / "newsroom.jsonl")
    lines = [json.loads(line) for line in (data / "newsroom.jsonl").read_text(encoding="utf-8").splitlines()]
    overall = np.array(test.ratings)
    length = np.array(make_metric("length", _models(runtime)).score(test.rows, test.corpus))

    def of_head(folder: str, sources: Sequence[Source], cls: type[EncoderHead] = LsHead) -> list[float]:
        return scores_of(kept(out / folder, runtime, lambda head: fit_contrast(head, sources), cls, 2), test.rows)

    def of_metric(name: str) -> list[float]:
        return list(make_metric(name, _models(runtime)).score(test.rows, test.corpus))

    makers: dict[str, Callable[[], list[float]]] = {
        "length": partial(of_metric, "length"),
        "context_cosine": partial(of_metric, "context_cosine"),
        "context_sentences_cosine": partial(of_metric, "context_sentences_cosine"),
        "LS_Score, untrained": lambda: scores_of(LsHead(SETTINGS, runtime), test.rows),
        "LS_Score, Newsroom's texts": partial(of_head, "ls-own", own),
        "LS_Score, others' texts": partial(of_head, "ls-others", others),
        "encoder + linear, others' texts": partial(of_head, "linear", others, EncoderHead),
    }
    for name, make in makers.items():
        scores = np.array(make())
        found = {
            aspect: float(spearmanr(scores, [row["ratings"][aspect] for row in lines])[0]) for aspect in ASPECTS
        }
        found["overall, Pearson"] = float(pearsonr(scores, overall)[0])
        if name != "length":
            found["the same, given the length"] = partial_correlation(scores, overall, length)
        print(json.dumps({"score": name, **found}), flush=True)


def partial_correlation(x: Floats, y: Floats, given: Floats) -> float:
    """Pearson's correlation of what a line in ``given`` leaves of ``x`` and of ``y``."""
    left = [one - np.polyval(np.polyfit(given, one, 1), given) for one in (x, y)]
    return float(np.corrcoef(left[0], left[1])[0, 1])


def kept(
    folder: Path,
    runtime: Runtime,
    train: Callable[[Any], None],
    cls: type[EncoderHead] = EncoderHead,
    epochs: int = 3,
) -> EncoderHead:
    """A head from its folder, or trained and saved there."""
    if (folder / "head.json").is_file():
        return cls.load(read_head(folder), SETTINGS, runtime)
    folder.mkdir(parents=True, exist_ok=True)
    head = cls(SETTINGS, runtime, TrainingSettings(epochs), checkpoints=folder)
    train(head)
    head.save(folder)
    return head


def _models(runtime: Runtime) -> Models:
    return Models(SETTINGS, runtime, {"preset": "mini", "variant": "fast"})


def sample(data: Path, name: str, rows: int) -> RatedSet:
    """Groups of a set with about so many rows."""
    whole = read_rated_set(data / f"{name}.jsonl")
    return whole.sample(max(12, round(rows * len(set(whole.groups)) / len(whole.items))))


def few(data: TrainingSet, rows: int) -> TrainingSet:
    """About so many rows, of as many groups."""
    return data.take(sorted(range(len(data.rows)), key=lambda i: generator(data.groups[i], i).random())[:rows])


def _some(sources: Sequence[Source], count: int) -> list[Source]:
    return sorted(sources, key=lambda one: generator(0, one).random())[:count]


def examples(rows: Sequence[Row]) -> list[Example]:
    """Rows as a trained encoder sees them."""
    return [Example(candidate.strip(), references, context.strip()) for candidate, references, context in rows]


def scores_of(head: LearnedHead, rows: Sequence[Row]) -> list[float]:
    """What a head makes of rows."""
    return list(map(weighted_sum, head.score(examples(rows))))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("drift", "ablation", "newsroom"))
    add_options(parser)
    parser.add_argument("--texts", type=int, default=60, help="for LS_Score to learn from")
    args = parser.parse_args()
    runtime = Runtime(store=ResultStore(store_folder()), progress=report)
    if args.experiment == "drift":
        run_drift(args.data, args.out, runtime, Pretraining.of(args), args.rows)
    elif args.experiment == "ablation":
        run_ablation(args.data, args.out, runtime, Pretraining.of(args))
    else:
        run_newsroom(args.data, args.out, runtime, args.texts)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The data, and how much is learned from."""
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=2400, help="synthetic pairs of all sets, about")
    parser.add_argument("--epochs", type=int, default=1, help="of pre-training")
    parser.add_argument("--share", type=float, default=0.15, help="of the texts, for the language model")
    parser.add_argument("--without", nargs="*", choices=SIGNALS, default=("likelihood",), help="signals")
    parser.add_argument("--rows", type=int, default=50, help="ratings of each set, about")


def report(stage: str, done: int, total: int) -> None:
    """Progress in lines on standard error."""
    if done % 20 == 0 or done == total:
        print(f"{time.strftime('%X')} {stage} {done}/{total}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
