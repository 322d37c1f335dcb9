"""What heads of kind "terms" (``mars train``) add to the score that they correct.

    python -m research.heads DATA/*.jsonl --variant plus
    python -m research.heads DATA/*.jsonl --variant plus --drift

Prints the mean difference of Pearson's r for heads trained on sets from other sources, and for heads trained on
50, 100 and 200 ratings of the same set and tested on the rest. Groups are never split. With ``--drift`` (BLEURT,
section 5.2 and appendix B.3) a head is trained on bad candidates and tested on good ones of other groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mars_score import MarsScorer
from mars_score.heads import TermFeatures, TermsHead
from mars_score.rows import weighted_sum
from mars_score.stats.resampling import Floats
from mars_score.training import TrainingSet, learn_weights, term_features, training_set
from research.agreement import drawn, pearson
from research.sets import read_sets, set_options

# Prefixes of sets that were made from the same texts, none of which may train for another.
SOURCES = (("usr_",), ("evouna_",), ("bagel", "sfhot", "sfres"), ("union_roc", "openmeva_roc"))
RATINGS = (50, 100, 200)
DRAWS = 10
SKEWS = (0.0, 0.5, 1.0, 1.5, 3.0)
FEWEST = 20  # ratings that r needs to be meaningful


class Rated(NamedTuple):
    """Ratings with the features of their rows."""

    data: TrainingSet
    features: Sequence[TermFeatures]

    def part(self, indices: Sequence[int]) -> "Rated":
        """Return some of the rows, with their ratings standardised again."""
        ratings = self.data.ratings[indices]
        data = replace(
            self.data,
            rows=tuple(self.data.rows[index] for index in indices),
            ratings=(ratings - ratings.mean()) / ratings.std(),
            groups=tuple(self.data.groups[index] for index in indices),
        )
        return Rated(data, [self.features[index] for index in indices])

    def split(self, groups: set[str]) -> "tuple[Rated, Rated]":
        """Return the rows of some groups, and the others."""
        inside, outside = (
            [index for index, group in enumerate(self.data.groups) if (group in groups) is wanted]
            for wanted in (True, False)
        )
        return self.part(inside), self.part(outside)


def main() -> None:
    """Score the sets, train, and print."""
    options = set_options(__doc__)
    options.add_argument("--variant", default="plus")
    options.add_argument("--drift", action="store_true", help="train on bad candidates, test on good ones")
    args = options.parse_args()
    scorer = MarsScorer("mini", variant=args.variant)
    sets = []
    for whole in read_sets(args.files):
        sample = drawn(whole, args.rows)
        data = training_set(sample.name, sample.rows, sample.ratings, sample.groups)
        sets.append(Rated(data, term_features(scorer, data)))
    if args.drift:
        print_drift(scorer, sets)
        return
    gains = {}
    for tested in sets:
        others = [other for other in sets if source(other.data.name) != source(tested.data.name)]
        gains[tested.data.name] = gain(scorer, others, tested)
    print(f"taught by other sources: {summary(gains)}")
    for count in RATINGS:
        own_gains = {}
        for rated in sets:
            if len(rated.data.rows) >= 1.5 * count:
                draws = [own_gain(scorer, rated, count, seed) for seed in range(DRAWS)]
                own_gains[rated.data.name] = float(np.mean(draws))
        if own_gains:
            print(f"taught by {count} ratings of its own: {summary(own_gains)}")


def source(name: str) -> str:
    """Return what a set was made from."""
    return next((group[0] for group in SOURCES if name.startswith(group)), name)


def gain(scorer: MarsScorer, taught: Iterable[Rated], tested: Rated) -> float:
    """Return Pearson's r of the score corrected by a head trained on some sets, minus that of the score."""
    data, features = zip(*taught, strict=True)
    head = TermsHead(learn_weights(data, features), scorer.settings, scorer.calls)
    uncorrected = np.array([weighted_sum(terms) for terms, _ in tested.features])
    corrected = np.array([weighted_sum(terms) for terms in head.score(tested.features)])
    return pearson(corrected, tested.data.ratings) - pearson(uncorrected, tested.data.ratings)


def own_gain(scorer: MarsScorer, rated: Rated, count: int, seed: int) -> float:
    """Return the gain on the other groups of a head that is trained on about ``count`` ratings of a set."""
    groups = rated.data.groups
    order = np.random.default_rng(seed).permutation(sorted(set(groups))).tolist()
    taught: set[str] = set()
    while sum(group in taught for group in groups) < count:
        taught.add(order.pop())
    learned, tested = rated.split(taught)
    return gain(scorer, [learned], tested)


def print_drift(scorer: MarsScorer, sets: Sequence[Rated]) -> None:
    """Print the mean r over sets by skew of the test: of the score, and corrected after each skewed training."""
    print(f"| skew of the test | sets | score itself | {' | '.join(f'taught at {skew:g}' for skew in SKEWS)} |")
    print(f"|---|{'---:|' * (len(SKEWS) + 2)}")
    for test in SKEWS:
        rows = [drift(scorer, rated, test) for rated in sets]
        known = np.array([row for row in rows if not np.isnan(row).any()])
        if not len(known):
            raise ValueError("too few ratings for any set to be skewed: raise --rows, or give larger sets")
        print(f"| {test:g} | {len(known)} | {' | '.join(f'{mean:.3f}' for mean in known.mean(0))} |", flush=True)


def drift(scorer: MarsScorer, rated: Rated, test: float) -> list[float]:
    """Return r of the score and of heads trained at each of :data:`SKEWS`: means of draws, NaN for few ratings."""
    draws = []
    for seed in range(DRAWS):
        generator = np.random.default_rng(seed)
        order = generator.permutation(sorted(set(rated.data.groups)))
        first = set(order[: len(order) // 2].tolist())
        is_first = np.array([group in first for group in rated.data.groups])
        bins = np.digitize(rated.data.ratings, np.quantile(rated.data.ratings, np.arange(0.1, 1, 0.1))) + 1
        tested = _sample(rated, (11.0 - bins) ** -test * ~is_first, generator)
        taught = [_sample(rated, bins**-skew * is_first, generator) for skew in SKEWS]
        if tested is None or any(part is None for part in taught):
            continue
        uncorrected = np.array([weighted_sum(terms) for terms, _ in tested.features])
        r = pearson(uncorrected, tested.data.ratings)
        draws.append([r, *(r + gain(scorer, [part], tested) for part in taught if part is not None)])
    return np.mean(draws, axis=0).tolist() if draws else [float("nan")] * (len(SKEWS) + 1)


def _sample(rated: Rated, chances: Floats, generator: np.random.Generator) -> Rated | None:
    """Draw each row with its chance, or return None if there are too few or their ratings are all equal."""
    chosen = np.flatnonzero(generator.random(len(chances)) < chances)
    few = len(chosen) < FEWEST or rated.data.ratings[chosen].std() == 0
    return None if few else rated.part(chosen.tolist())


def summary(gains: Mapping[str, float]) -> str:
    """Write the mean gain, the number of sets that gain, and the worst set."""
    worst = min(gains, key=lambda name: gains[name])
    better = sum(value > 0 for value in gains.values())
    mean = np.mean(list(gains.values()))
    return f"{mean:+.3f}, better on {better} of {len(gains)} sets, worst {worst} {gains[worst]:+.3f}"


if __name__ == "__main__":
    main()
