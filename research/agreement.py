"""Agreement with human ratings: Pearson's r of several metrics on many sets, and intervals of their differences.

    python -m research.agreement DATA/*.jsonl --preset mini

Prints a Markdown table by set, one of the means with the difference from the first metric, and one of attacks.
Whole groups (a context with its candidates) are taken until a set has about ``--rows`` candidates. Model outputs
come from the store where they are there, so that a second call needs no models.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mars_score.meta.agreement import ATTACKS, attack
from mars_score.meta.metrics import make_metric, parse_names
from mars_score.meta.metrics.base import Metric, Models
from mars_score.meta.sets import RatedSet
from mars_score.rows import Row
from research.sets import read_sets

METRICS = "mars_plus,mars_fast,mars_no_planning,bertscore,rouge_l,reference_cosine,context_cosine,length"
RESAMPLES = 1000
Floats = NDArray[np.float64]


def main() -> None:
    """Score the sets and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="rated candidates, as for mars meta")
    options.add_argument("--metrics", default=METRICS, help=f"as for mars meta (default: {METRICS})")
    options.add_argument("--preset", default="mini")
    options.add_argument("--rows", type=int, default=300, help="candidates of a set, about (default: 300)")
    options.add_argument("--attacked", type=int, default=40, help="candidates of a set to attack (default: 40)")
    options.add_argument("--seed", type=int, default=0, help="of the resamples")
    args = options.parse_args()
    models = Models(preset=args.preset)
    metrics = [make_metric(name, models) for name in parse_names(args.metrics)]
    sets = [drawn(one, args.rows) for one in read_sets(args.files)]
    scores = {one.name: {metric.title: scored(metric, one.rows) for metric in metrics} for one in sets}
    print(f"# Agreement with human ratings\n\n{by_set(sets, scores)}\n\n{means(sets, scores, args.seed)}\n")
    print(attacks(sets, metrics, args.attacked))


def drawn(rated: RatedSet, most: int) -> RatedSet:
    """Take about ``most`` candidates of a set: whole groups, always the same."""
    groups = len(set(rated.groups))
    return rated.sample(max(2, round(most * groups / len(rated.rows))))


def scored(metric: Metric, rows: Sequence[Row]) -> Floats:
    """Compute one score per row; a blank candidate has the metric's lowest value."""
    written = [index for index, row in enumerate(rows) if row.candidate]
    corpus = list(dict.fromkeys(text for row in rows for text in row.references))
    values = np.full(len(rows), metric.minimum)
    values[written] = metric.score([rows[index] for index in written], corpus)
    return values


def pearson(scores: Floats, ratings: Floats) -> float:
    """Return Pearson's r; 0 where one side is constant."""
    return float(np.corrcoef(scores, ratings)[0, 1]) if scores.std() > 0 and ratings.std() > 0 else 0.0


def by_set(sets: Sequence[RatedSet], scores: Mapping[str, Mapping[str, Floats]]) -> str:
    """Write Pearson's r of each metric on each set."""
    titles = list(scores[sets[0].name])
    lines = [f"| set | candidates | {' | '.join(titles)} |", f"|---|---:|{'---:|' * len(titles)}"]
    for one in sets:
        cells = [f"{pearson(scores[one.name][title], np.array(one.ratings)):.3f}" for title in titles]
        lines.append(f"| {one.name} | {len(one.rows)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def means(sets: Sequence[RatedSet], scores: Mapping[str, Mapping[str, Floats]], seed: int) -> str:
    """Write the mean over sets of each metric, what the first has more (95 % interval), and where it is above."""
    rng = np.random.default_rng(seed)
    resamples: dict[str, Floats] = {title: np.zeros(RESAMPLES) for title in scores[sets[0].name]}
    observed = {
        title: [pearson(scores[one.name][title], np.array(one.ratings)) for one in sets] for title in resamples
    }
    for one in sets:
        ratings = np.array(one.ratings)
        members = [np.flatnonzero(np.array(one.groups) == group) for group in dict.fromkeys(one.groups)]
        for number in range(RESAMPLES):
            rows = np.concatenate([members[group] for group in rng.integers(len(members), size=len(members))])
            for title, values in resamples.items():
                values[number] += pearson(scores[one.name][title][rows], ratings[rows]) / len(sets)
    first = next(iter(resamples))
    lines = [
        f"| mean of {len(sets)} sets | r | {first} minus this [95 %] | sets on which {first} is above |",
        "|---|---:|---:|---:|",
    ]
    for title, values in resamples.items():
        mean = np.mean(observed[title])
        if title == first:
            lines.append(f"| {title} | {mean:.3f} | | |")
            continue
        low, high = np.quantile(resamples[first] - values, [0.025, 0.975])
        above = sum(a > b for a, b in zip(observed[first], observed[title], strict=True))
        difference = np.mean(observed[first]) - mean
        lines.append(
            f"| {title} | {mean:.3f} | {difference:+.3f} [{low:+.3f}, {high:+.3f}] | {above} of {len(sets)} |"
        )
    return "\n".join(lines)


def attacks(sets: Sequence[RatedSet], metrics: Sequence[Metric], most: int) -> str:
    """Write the share of attacked candidates below their originals, mean of the sets; ties are failures."""
    lines = [f"| attack | sets | {' | '.join(metric.title for metric in metrics)} |"]
    lines.append(f"|---|---:|{'---:|' * len(metrics)}")
    for name in ATTACKS:
        shares: list[list[float]] = []
        for one in sets:
            attacked = attack(name, one.rows[:most])
            if attacked.indices:
                originals = [one.rows[index] for index in attacked.indices]
                shares.append([float(np.mean(scored(m, attacked.rows) < scored(m, originals))) for m in metrics])
        cells = " | ".join(f"{share:.3f}" for share in np.mean(shares, axis=0)) if shares else ""
        lines.append(f"| {name} | {len(shares)} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
