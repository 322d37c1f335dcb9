"""What heads of kind "terms" (``mars train``) add to the score that they correct.

    python -m research.heads DATA/*.jsonl --variant plus

Prints the mean difference of Pearson's r on sets whose sources taught nothing, and on the rest of each set after
50, 100 and 200 of its own ratings; groups are never split.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mars_score import MarsScorer
from mars_score.learning.heads import TermFeatures, TermsHead
from mars_score.learning.ratings import TrainingSet, learn_weights, term_features, training_set
from mars_score.rows import weighted_sum
from research.agreement import drawn, pearson
from research.sets import read_sets

# Sets that were made from the same texts teach each other nothing.
SOURCES = (("usr_",), ("evouna_",), ("bagel", "sfhot", "sfres"), ("union_roc", "openmeva_roc"))
RATINGS = (50, 100, 200)
DRAWS = 10


class Rated(NamedTuple):
    """Ratings with the features of their rows."""

    data: TrainingSet
    features: Sequence[TermFeatures]

    def part(self, indices: Sequence[int]) -> "Rated":
        """Take some of the rows; their ratings are standardised anew."""
        ratings = self.data.ratings[indices]
        data = replace(
            self.data,
            rows=tuple(self.data.rows[index] for index in indices),
            ratings=(ratings - ratings.mean()) / ratings.std(),
            groups=tuple(self.data.groups[index] for index in indices),
        )
        return Rated(data, [self.features[index] for index in indices])


def main() -> None:
    """Score, or take what the store has, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="rated candidates, as for mars meta")
    options.add_argument("--variant", default="plus")
    options.add_argument("--rows", type=int, default=300, help="candidates of a set, about (default: 300)")
    args = options.parse_args()
    scorer = MarsScorer("mini", variant=args.variant)
    sets = []
    for one in (drawn(rated, args.rows) for rated in read_sets(args.files)):
        data = training_set(one.name, one.rows, one.ratings, one.groups)
        sets.append(Rated(data, term_features(scorer, data)))
    gains = {}
    for tested in sets:
        others = [other for other in sets if source(other.data.name) != source(tested.data.name)]
        gains[tested.data.name] = gain(scorer, others, tested)
    print(f"taught by other sources: {summary(gains)}")
    for count in RATINGS:
        own = {}
        for rated in sets:
            if len(rated.data.rows) >= 1.5 * count:
                draws = [own_gain(scorer, rated, count, seed) for seed in range(DRAWS)]
                own[rated.data.name] = float(np.mean(draws))
        if own:
            print(f"taught by {count} ratings of its own: {summary(own)}")


def source(name: str) -> str:
    """Return what a set was made from."""
    return next((group[0] for group in SOURCES if name.startswith(group)), name)


def gain(scorer: MarsScorer, taught: Iterable[Rated], tested: Rated) -> float:
    """Return Pearson's r of the score that some sets correct, minus that of the score itself."""
    data, features = zip(*taught, strict=True)
    head = TermsHead(learn_weights(data, features), scorer.settings, scorer.calls)
    own = np.array([weighted_sum(terms) for terms, _ in tested.features])
    corrected = np.array([weighted_sum(terms) for terms in head.score(tested.features)])
    return pearson(corrected, tested.data.ratings) - pearson(own, tested.data.ratings)


def own_gain(scorer: MarsScorer, rated: Rated, count: int, seed: int) -> float:
    """Return the gain on the groups that are left when a head has learned about ``count`` ratings of a set."""
    groups = rated.data.groups
    order = np.random.default_rng(seed).permutation(sorted(set(groups))).tolist()
    taught: set[str] = set()
    while sum(group in taught for group in groups) < count:
        taught.add(order.pop())
    learned, tested = (
        rated.part([index for index, group in enumerate(groups) if (group in taught) is wanted])
        for wanted in (True, False)
    )
    return gain(scorer, [learned], tested)


def summary(gains: Mapping[str, float]) -> str:
    """Write the mean, how many are better, and the worst."""
    worst = min(gains, key=lambda name: gains[name])
    better = sum(value > 0 for value in gains.values())
    mean = np.mean(list(gains.values()))
    return f"{mean:+.3f}, better on {better} of {len(gains)} sets, worst {worst} {gains[worst]:+.3f}"


if __name__ == "__main__":
    main()
