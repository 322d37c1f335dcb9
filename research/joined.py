"""A trained encoder, alone and joined with terms, measured on sets that taught neither (docs/learning.md).

    python -m research.joined DATA --out DIR

``DATA`` is a folder of rated sets; what is finished is kept in ``DIR``, so that a stopped run goes on. The sets
are in three folds. Those of a fold are scored by an encoder trained on both others. The weight of the encoder's
term is nested: of these two, each is scored by an encoder trained on the other. "Not left out": weights from the
sets that they are measured on, which bounds what could be gained.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mars_score import MarsScorer
from mars_score.learning.heads import Example
from mars_score.learning.ratings import TrainingSet, training_sets
from mars_score.learning.terms import PENALTY, TermsHead
from mars_score.result import Term, weighted_sum
from mars_score.runtime import Runtime
from mars_score.store.location import store_folder
from mars_score.store.results import ResultStore
from research.encoder import (
    FOLDS,
    TESTED,
    Pretraining,
    add_options,
    few,
    fit_on,
    kept,
    pretrained,
    report,
    sample,
    scores_of,
)
from research.forms import FeatureSet
from research.learned import table

Floats = NDArray[np.float64]
Scores = Mapping[str, Sequence[float]]  # an encoder's, by set
TERMS = ("repetition", "length")
JOINED = (*TERMS, "encoder")
FREER = 1.0  # penalty
PENALTIES = (PENALTY, FREER, 3.0, 30.0)


class Encoders:
    """Encoders trained on some sets, and their scores of others.

    Args:
        data: folder of rated sets.
        out: folder of the encoders and their scores.
        rows: ratings of each set that teach an encoder, about.
        pretraining: what is learned before ratings.
    """

    def __init__(self, data: Path, out: Path, rows: int, pretraining: Pretraining) -> None:
        self._data, self._out, self._rows, self._pretraining = data, out, rows, pretraining
        self._runtime = Runtime(store=ResultStore(store_folder()), progress=report)

    def scored(self, name: str) -> TrainingSet:
        """The part of a set that is scored."""
        return training_sets([sample(self._data, name, TESTED)])[0]

    def nested(self, warm: bool) -> Iterator[tuple[Scores, Scores]]:
        """For each fold, scores of the sets that teach weights and of those that are left out.

        Args:
            warm: whether the encoders are pre-trained.
        """
        for number, left_out in enumerate(FOLDS):
            one, other = (each for each in range(len(FOLDS)) if each != number)
            teaching = {**self._scores([one], FOLDS[other], warm), **self._scores([other], FOLDS[one], warm)}
            yield teaching, self._scores([one, other], left_out, warm)

    def _scores(self, folds: Sequence[int], names: Sequence[str], warm: bool) -> Scores:
        folder = self._out / f"taught-by-{'-'.join(map(str, folds))}{'-pretrained' if warm else ''}"
        files = {name: folder / f"{name}.json" for name in names}
        missing = [name for name, file in files.items() if not file.is_file()]
        if missing:
            teaching = [name for fold in folds for name in FOLDS[fold]]
            sets = [few(training_sets([sample(self._data, name, self._rows)])[0], self._rows) for name in teaching]
            start = pretrained(self._data, self._out, self._runtime, self._pretraining) if warm else None
            head = kept(folder, self._runtime, partial(fit_on, start=start, sets=sets))
            for name in missing:
                files[name].write_text(json.dumps(scores_of(head, self.scored(name).rows)))
        return {name: json.loads(file.read_text()) for name, file in files.items()}


def run(encoders: Encoders) -> None:
    """Print the tables."""
    of_folds = {
        "encoder, pre-trained": list(encoders.nested(warm=True)),
        "encoder": list(encoders.nested(warm=False)),
    }
    scorer = MarsScorer("mini", progress=report)

    @cache
    def read(name: str) -> tuple[TrainingSet, list[Example]]:
        found = encoders.scored(name)
        return found, scorer.examples(found.rows)

    def with_encoder(name: str, scores: Scores) -> list[Example]:
        both = zip(read(name)[1], scores[name], strict=True)
        return [replace(one, features={**one.features, "encoder": score}) for one, score in both]

    def left_out(folds: Sequence[tuple[Scores, Scores]], features: Sequence[str], penalty: float) -> list[Floats]:
        """Scores of each set, with the weights that the other fold teaches."""
        found = []
        for teaching, tested in folds:
            head = TermsHead(scorer.settings, penalty=penalty, features=features)
            head.fit([read(name)[0] for name in teaching], [with_encoder(name, teaching) for name in teaching])
            print(f"{', '.join(features)}; penalty {penalty:g}: {head.weights}")
            found += [_sums(head.score(with_encoder(name, tested))) for name in tested]
        return found

    plain = of_folds["encoder"]
    names = [name for _, tested in plain for name in tested]
    mars = [_sums([one.terms for one in read(name)[1]]) for name in names]
    rows = [("v3-lm", mars), ("terms", left_out(plain, TERMS, PENALTY))]
    for name, folds in of_folds.items():
        rows.append((name, [np.array(scores) for _, tested in folds for scores in tested.values()]))
        for penalty in PENALTIES:
            rows.append((f"terms and {name}, penalty {penalty:g}", left_out(folds, JOINED, penalty)))
        own = [(tested, tested) for _, tested in folds]
        rows.append((f"the same, not left out, penalty {FREER:g}", left_out(own, JOINED, FREER)))
    rows.append((f"terms, not left out, penalty {FREER:g}", left_out(own, TERMS, FREER)))
    sets = [_rated(read(name)[0]) for name in names]
    table(sets, mars, rows, names)


def _sums(rows: Sequence[Sequence[Term]]) -> Floats:
    return np.array(list(map(weighted_sum, rows)))


def _rated(one: TrainingSet) -> FeatureSet:
    both = zip(one.ratings.tolist(), one.groups, strict=True)
    return FeatureSet(one.name, "items", [{"rating": rating, "group": group} for rating, group in both], {})


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    args = parser.parse_args()
    run(Encoders(args.data, args.out, args.rows, Pretraining.of(args)))


if __name__ == "__main__":
    main()
