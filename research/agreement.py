"""Agreement with human ratings: Pearson's r of several metrics on many sets, and intervals of their differences.

    python -m research.agreement DATA/*.jsonl --preset mini

Prints Markdown tables: r by set, means with the difference from the first metric, and attacks. Whole groups (a
context with its candidates) are sampled until a set has about ``--rows`` candidates. Model outputs are taken from
the store if they are there, so a second call needs no models.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mars_score.meta.agreement import ATTACKS, attack
from mars_score.meta.metrics import Metric, Models, make_metric, parse_names
from mars_score.meta.sets import RatedSet
from mars_score.rows import Row
from mars_score.stats.resampling import Floats
from research.results import markdown
from research.sets import read_sets, set_options

METRICS = "mars_plus,mars_fast,mars_no_planning,bertscore,rouge_l,reference_cosine,context_cosine,length"
RESAMPLES = 1000


def main() -> None:
    """Score the sets and print the tables."""
    options = set_options(__doc__)
    options.add_argument("--metrics", default=METRICS, help=f"as for mars meta (default: {METRICS})")
    options.add_argument("--preset", default="mini")
    options.add_argument("--attacked", type=int, default=40, help="candidates of a set to attack (default: 40)")
    options.add_argument("--seed", type=int, default=0, help="of the resamples")
    args = options.parse_args()
    models = Models(preset=args.preset)
    metrics = [make_metric(name, models) for name in parse_names(args.metrics)]
    sets = [drawn(rated, args.rows) for rated in read_sets(args.files)]
    scores = {rated.name: {metric.title: scored(metric, rated.rows) for metric in metrics} for rated in sets}
    print(f"# Agreement with human ratings\n\n{by_set(sets, scores)}\n\n{means(sets, scores, args.seed)}\n")
    print(attacks(sets, metrics, args.attacked))


def drawn(rated: RatedSet, most: int) -> RatedSet:
    """Sample whole groups with about ``most`` candidates, always the same ones."""
    groups = len(set(rated.groups))
    return rated.sample(max(2, round(most * groups / len(rated.rows))))


def scored(metric: Metric, rows: Sequence[Row]) -> Floats:
    """Compute one score per row. A blank candidate gets the metric's minimum."""
    written = [index for index, row in enumerate(rows) if row.candidate]
    corpus = list(dict.fromkeys(text for row in rows for text in row.references))
    values = np.full(len(rows), metric.minimum)
    values[written] = metric.score([rows[index] for index in written], corpus)
    return values


def pearson(scores: Floats, ratings: Floats) -> float:
    """Return Pearson's r, or 0 if one side is constant."""
    return float(np.corrcoef(scores, ratings)[0, 1]) if scores.std() > 0 and ratings.std() > 0 else 0.0


def by_set(sets: Sequence[RatedSet], scores: Mapping[str, Mapping[str, Floats]]) -> str:
    """Write Pearson's r of each metric on each set."""
    rows = [["set", "candidates", *scores[sets[0].name]]]
    for rated in sets:
        cells = [f"{pearson(values, np.array(rated.ratings)):.3f}" for values in scores[rated.name].values()]
        rows.append([rated.name, str(len(rated.rows)), *cells])
    return markdown(rows)


def means(sets: Sequence[RatedSet], scores: Mapping[str, Mapping[str, Floats]], seed: int) -> str:
    """Write the mean of each metric over sets, the first metric's lead (95 % interval), and its sets ahead."""
    rng = np.random.default_rng(seed)
    resamples: dict[str, Floats] = {title: np.zeros(RESAMPLES) for title in scores[sets[0].name]}
    observed = {
        title: [pearson(scores[rated.name][title], np.array(rated.ratings)) for rated in sets]
        for title in resamples
    }
    for rated in sets:
        ratings = np.array(rated.ratings)
        members = [np.flatnonzero(np.array(rated.groups) == group) for group in dict.fromkeys(rated.groups)]
        for index in range(RESAMPLES):
            rows = np.concatenate([members[group] for group in rng.integers(len(members), size=len(members))])
            for title, values in resamples.items():
                values[index] += pearson(scores[rated.name][title][rows], ratings[rows]) / len(sets)
    first = next(iter(resamples))
    table = [[f"mean of {len(sets)} sets", "r", f"{first} minus this [95 %]", f"sets on which {first} is above"]]
    for title, values in resamples.items():
        mean = np.mean(observed[title])
        low, high = np.quantile(resamples[first] - values, [0.025, 0.975])
        above = sum(a > b for a, b in zip(observed[first], observed[title], strict=True))
        difference = np.mean(observed[first]) - mean
        lead = [f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]", f"{above} of {len(sets)}"]
        table.append([title, f"{mean:.3f}", *(["", ""] if title == first else lead)])
    return markdown(table)


def attacks(sets: Sequence[RatedSet], metrics: Sequence[Metric], most: int) -> str:
    """Write the share of attacked candidates that score below their originals, as means over the sets."""
    table = [["attack", "sets", *(metric.title for metric in metrics)]]
    for name in ATTACKS:
        shares: list[list[float]] = []
        for rated in sets:
            attacked = attack(name, rated.rows[:most])
            if attacked.indices:
                originals = [rated.rows[index] for index in attacked.indices]
                shares.append([float(np.mean(scored(m, attacked.rows) < scored(m, originals))) for m in metrics])
        cells = [f"{share:.3f}" for share in np.mean(shares, axis=0)] if shares else [""] * len(metrics)
        table.append([name, str(len(shares)), *cells])
    return markdown(table)


if __name__ == "__main__":
    main()
