"""A trained encoder, alone and joined with terms, measured on sets that taught neither (docs/learning.md).

    python -m research.joined DATA FEATURES.jsonl... --out DIR

``DATA`` is a folder of rated sets, ``FEATURES`` are theirs by ``research.features --likelihood``; what is finished
is kept in ``DIR``, so that a stopped run goes on. The sets are in three folds. Those of a fold are scored by an
encoder trained on both others. The weight of the encoder's term is learned from the scores of the two other
folds: their encoders have seen ratings of the sets left out, so one number, the weight, may know of them. "Not
left out": weights from the sets that they are measured on, which bounds what could be gained. All figures are of
the rows that are both among the scored and in the features.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mars_score.data.rated import RatedSet
from mars_score.learning.ratings import training_sets
from mars_score.learning.terms import PENALTY, Part
from mars_score.store.location import store_folder
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime
from research.encoder import (
    FOLDS,
    TESTED,
    Pretraining,
    Synthetic,
    add_options,
    few,
    fit_on,
    kept,
    pretrained,
    report,
    sample,
    scores_of,
    teaching,
)
from research.forms import V3_LM, FeatureSet, read
from research.learned import features as of_terms
from research.learned import learn, table

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
        self._data, self._out, self._rows = data, out, rows
        self._runtime = Runtime(store=ResultStore(store_folder()), progress=report)
        self._synthetic = Synthetic(data, self._runtime, pretraining)

    def scored(self, name: str) -> RatedSet:
        """The part of a set that is scored."""
        return sample(self._data, name, TESTED)

    def left_out(self, warm: bool) -> Scores:
        """Scores of each set by an encoder that saw texts and ratings of other folds only.

        Args:
            warm: whether the encoders are pre-trained.
        """
        return {name: scores for fold in range(len(FOLDS)) for name, scores in self._scores(fold, warm).items()}

    def _scores(self, fold: int, warm: bool) -> Scores:
        folder = self._out / f"taught-without-{fold}{'-pretrained' if warm else ''}"
        files = {name: folder / f"{name}.json" for name in FOLDS[fold]}
        missing = [name for name, file in files.items() if not file.is_file()]
        if missing:
            samples = [sample(self._data, name, self._rows) for name in teaching(fold)]
            sets = [few(one, self._rows) for one in training_sets(samples)]
            start = pretrained(self._synthetic, self._out, fold) if warm else None
            head = kept(folder, self._runtime, partial(fit_on, start=start, sets=sets))
            for name in missing:
                files[name].write_text(json.dumps(scores_of(head, self.scored(name).rows)))
        return {name: json.loads(file.read_text()) for name, file in files.items()}


def run(encoders: Encoders, features: Sequence[str]) -> None:
    """Print the table."""
    alone = {"encoder": encoders.left_out(warm=False), "encoder, pre-trained": encoders.left_out(warm=True)}
    names = [name for fold in FOLDS for name in fold]
    rows_of = {one.name: one for one in read(features, [])}
    found = {name: among(rows_of[name], encoders.scored(name)) for name in names}

    def part(name: str, scores: Scores | None) -> Part:
        one, places = found[name]
        columns = [of_terms(one.items, TERMS)]
        if scores is not None:
            columns.append(np.array(scores[name])[places, None])
        ratings, groups = np.array([row["rating"] for row in one.rows]), [row["group"] for row in one.rows]
        return Part(np.hstack(columns), V3_LM(one.items), ratings, groups, within_groups=False)

    def learned(penalty: float, encoder: Scores | None, *, own: bool = False) -> list[Floats]:
        """Scores of each set, with the weights that the other folds teach, or its own.

        Args:
            penalty: see :class:`mars_score.learning.terms.TermsHead`.
            encoder: its scores; None: terms alone.
            own: whether the set's own fold teaches the weights.
        """
        scores = []
        for fold in FOLDS:
            weights = learn(
                [part(name, encoder) for name in names if (name in fold) == own],
                JOINED if encoder else TERMS,
                penalty,
            )
            print(f"weights for {fold[0]}, ..., penalty {penalty:g}: {weights.round(3).tolist()}")
            scores += [one.scores + one.features @ weights for one in (part(name, encoder) for name in fold)]
        return scores

    warm = alone["encoder, pre-trained"]
    mars = [part(name, None).scores for name in names]
    rows = [("plus", mars), ("terms", learned(PENALTY, None))]
    for title, encoder in alone.items():
        rows.append((title, [np.array(encoder[name])[found[name][1]] for name in names]))
    rows += [(f"joined, penalty {one:g}", learned(one, warm)) for one in PENALTIES]
    rows.append((f"terms, not left out, penalty {FREER:g}", learned(FREER, None, own=True)))
    rows.append((f"joined, not left out, penalty {FREER:g}", learned(FREER, warm, own=True)))
    table([found[name][0] for name in names], mars, rows, names)


def among(features: FeatureSet, scored: RatedSet) -> tuple[FeatureSet, list[int]]:
    """Those rows of features that are among some items, and the places of their items."""
    places: dict[tuple[str, str, float], list[int]] = {}
    for place, item in enumerate(scored.items):
        places.setdefault((item.group, item.system, item.rating), []).append(place)
    both = [
        (row, found.pop(0))
        for row in features.rows
        if (found := places.get((row["group"], row["system"], row["rating"])))
    ]
    return replace(features, rows=[row for row, _ in both]), [place for _, place in both]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("features", nargs="+")
    args = parser.parse_args()
    run(Encoders(args.data, args.out, args.rows, Pretraining.of(args)), args.features)


if __name__ == "__main__":
    main()
