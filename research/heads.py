"""What heads of kind "terms" (``mars train``) add to the score that they correct.

    python -m research.heads DATA/*.jsonl --variant plus

Prints the mean difference of Pearson's r on sets whose sources taught nothing, and on the rest of each set after
50, 100 and 200 of its own ratings; groups are never split.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mars_score import MarsScorer
from mars_score.learning.heads import TermsHead
from mars_score.learning.ratings import TrainingSet, training_sets
from mars_score.learning.train_terms import learn_weights
from mars_score.meta.rated import read_rated_sets
from mars_score.scoring.row import Example, weighted_sum
from research.agreement import drawn, pearson

# Sets that were made from the same texts teach each other nothing.
SOURCES = (("usr_",), ("evouna_",), ("bagel", "sfhot", "sfres"), ("union_roc", "openmeva_roc"))
RATINGS = (50, 100, 200)
DRAWS = 10


def main() -> None:
    """Score, or take what the store has, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="rated candidates, as for mars meta")
    options.add_argument("--variant", default="plus")
    options.add_argument("--rows", type=int, default=300, help="candidates of a set, about (default: 300)")
    args = options.parse_args()
    scorer = MarsScorer("mini", variant=args.variant)
    sets = training_sets([drawn(rated, args.rows) for rated in read_rated_sets(args.files)])
    examples = [scorer.examples(data.rows) for data in sets]
    gains = {}
    for number, data in enumerate(sets):
        others = [other for other, rated in enumerate(sets) if source(rated.name) != source(data.name)]
        weights = learn_weights([sets[other] for other in others], [examples[other] for other in others])
        gains[data.name] = gain(weights, data, examples[number])
    print(f"taught by other sources: {summary(gains)}")
    for count in RATINGS:
        own = {}
        for data, of_set in zip(sets, examples, strict=True):
            if len(data.rows) >= 1.5 * count:
                own[data.name] = float(np.mean([own_gain(data, of_set, count, seed) for seed in range(DRAWS)]))
        print(f"taught by {count} ratings of its own: {summary(own)}")


def source(name: str) -> str:
    """What a set was made from."""
    return next((group[0] for group in SOURCES if name.startswith(group)), name)


def gain(weights: Mapping[str, float], data: TrainingSet, examples: Sequence[Example]) -> float:
    """Pearson's r of the corrected score minus that of the score itself."""
    own = np.array([weighted_sum(example.terms) for example in examples])
    corrected = np.array([weighted_sum(terms) for terms in TermsHead(weights).score(examples)])
    return pearson(corrected, data.ratings) - pearson(own, data.ratings)


def own_gain(data: TrainingSet, examples: Sequence[Example], count: int, seed: int) -> float:
    """The gain on the groups that are left when a head has learned from about ``count`` ratings of a set."""
    order = np.random.default_rng(seed).permutation(sorted(set(data.groups))).tolist()
    taught: set[str] = set()
    while sum(group in taught for group in data.groups) < count:
        taught.add(order.pop())
    learned, tested = (
        [number for number, group in enumerate(data.groups) if (group in taught) is wanted]
        for wanted in (True, False)
    )
    weights = learn_weights([part(data, learned)], [[examples[number] for number in learned]])
    return gain(weights, part(data, tested), [examples[number] for number in tested])


def part(data: TrainingSet, numbers: Sequence[int]) -> TrainingSet:
    """Some of the rows of a set, their ratings standardised anew."""
    ratings = data.ratings[numbers]
    return replace(
        data,
        rows=tuple(data.rows[number] for number in numbers),
        ratings=(ratings - ratings.mean()) / ratings.std(),
        groups=tuple(data.groups[number] for number in numbers),
    )


def summary(gains: Mapping[str, float]) -> str:
    """Mean, how many are better, and the worst."""
    worst = min(gains, key=lambda name: gains[name])
    better = sum(value > 0 for value in gains.values())
    mean = np.mean(list(gains.values()))
    return f"{mean:+.3f}, better on {better} of {len(gains)} sets, worst {worst} {gains[worst]:+.3f}"


if __name__ == "__main__":
    main()
