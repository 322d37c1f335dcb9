"""Risk against coverage: which rows can v3-lm be trusted on, by what is known without ratings?

    python -m research.confidence FEATURES.jsonl...

Each order is tried on every set: Pearson's r of v3-lm with the ratings over the first 20, 40, ... 100 % of the
rows, the mean of the sets. Learned orders come from the other sets; their target is the product of a row's
standardised score and rating, whose mean over rows is Pearson's r. Rows of extreme scores alone raise r, however
good the score is: "corrected" is r over the first half if its scores had the standard deviation of all
(Thorndike's case 2), and "error" the mean square over the first half of what a line in the scores leaves of the
standardised ratings. Takes the files of ``research/features.py``; no model is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge

from research.forms import V3_LM, FeatureSet, Floats, options_of, read

COVERAGE = (0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
REFERENCES = ("number", "words", "closeness", "reached", "sampled")  # the same for all candidates of a row
CANDIDATE = ("recall and cosine differ", "references differ", "samples differ", "copied", "length", "longer")
MODELS: dict[str, RegressorMixin] = {
    "ridge": Ridge(alpha=10),
    "boosting": GradientBoostingRegressor(n_estimators=60, subsample=0.5, random_state=0),
}


def features(data: FeatureSet) -> dict[str, Floats]:
    """What is known of each row without ratings, (rows,) each."""
    items = data.items
    words, length = np.log1p(items["reference_words"]), np.log1p(items["candidate_words"])
    recalls = [[one[0] for one in row.get("recalls") or [[0.0]]] for row in data.rows]
    return {
        "number": np.log(np.maximum(items.count("recalls"), 1)),
        "words": words,
        "closeness": items.mean("closeness"),
        "reached": items.mean("expected"),
        "sampled": items.has("sample_recalls"),
        "recall and cosine differ": np.abs(
            items.references("recalls", "first") - items.references("cosines", "first")
        ),
        "references differ": np.array([np.std(one) for one in recalls]),
        "samples differ": np.array([np.std(row.get("sample_cosines") or [0.0]) for row in data.rows]),
        "copied": items["copied"],
        "length": length,
        "longer": np.abs(length - words),
        "score": V3_LM(items),
    }


def standardised(values: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1; constant ones are 0."""
    return (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)  # type: ignore[no-any-return]


def learned(sets: Sequence[FeatureSet], names: Sequence[str], model: RegressorMixin) -> list[Floats]:
    """The order of each set's rows by a model of the others, in which each set has the same weight."""
    inputs = [standardised(np.stack([features(one)[name] for name in names], axis=1)) for one in sets]
    ratings = [np.array([row["rating"] for row in one.rows]) for one in sets]
    targets = [
        standardised(V3_LM(one.items)) * standardised(of_set) for one, of_set in zip(sets, ratings, strict=True)
    ]
    orders = []
    for place in range(len(sets)):
        others = [other for other in range(len(sets)) if other != place]
        weights = [np.full(len(targets[one]), 1 / len(targets[one])) for one in others]
        fitted = clone(model).fit(
            np.concatenate([inputs[one] for one in others]),
            np.concatenate([targets[one] for one in others]),
            sample_weight=np.concatenate(weights),
        )
        orders.append(fitted.predict(inputs[place]))
    return orders


def agreement(data: FeatureSet, order: Floats, coverage: float, *, corrected: bool = False) -> float:
    """Pearson's r over the first rows, at least ten."""
    first = np.argsort(-order, kind="stable")[: max(10, round(coverage * len(order)))]
    some = replace(data, rows=[data.rows[one] for one in first])
    scores = V3_LM(some.items)
    found = some.pearson(scores)
    if not corrected:
        return found
    ratio = V3_LM(data.items).std() / scores.std()
    return float(found * ratio / np.sqrt(1 + found**2 * (ratio**2 - 1)))


def error(data: FeatureSet, order: Floats) -> float:
    """Mean square, over the first half of the rows, of what the scores of the set do not tell of its ratings."""
    scores = standardised(V3_LM(data.items))
    ratings = standardised(np.array([row["rating"] for row in data.rows]))
    left = ratings - (scores @ ratings / len(scores)) * scores
    return float((left[np.argsort(-order, kind="stable")[: len(order) // 2]] ** 2).mean())


def main() -> None:
    """Print the table."""
    args = options_of(__doc__).parse_args()
    sets = read(args.files, args.within_groups)
    random = np.random.default_rng(0)
    orders = {
        "random": [random.random(len(one.rows)) for one in sets],
        "longest references first": [features(one)["words"] for one in sets],
        "scores far from their mean first": [np.abs(standardised(V3_LM(one.items))) for one in sets],
    }
    for label, names in {
        "references": REFERENCES,
        "references and candidate": REFERENCES + CANDIDATE,
        "with the score": (*REFERENCES, *CANDIDATE, "score"),
    }.items():
        orders |= {f"{kind}, {label}": learned(sets, names, model) for kind, model in MODELS.items()}
    orders["highest scores first"] = [V3_LM(one.items) for one in sets]
    shown = [*(f"{one:.0%}" for one in COVERAGE), "50 % above 100 %", "50 % corrected", "above 100 %", "error"]
    print(f"| order | {' | '.join(shown)} |")
    print(f"| --- |{' ---: |' * len(shown)}")
    for label, of_sets in orders.items():
        found = np.array(
            [[agreement(one, order, part) for part in COVERAGE] for one, order in zip(sets, of_sets, strict=True)]
        )
        half = np.array(
            [agreement(one, order, 0.5, corrected=True) for one, order in zip(sets, of_sets, strict=True)]
        )
        better, really = (int((one > found[:, -1]).sum()) for one in (found[:, COVERAGE.index(0.5)], half))
        means = " | ".join(f"{one:.3f}" for one in np.nanmean(found, axis=0))
        left = np.mean([error(one, order) for one, order in zip(sets, of_sets, strict=True)])
        print(f"| {label} | {means} | {better} of {len(sets)} | {np.nanmean(half):.3f} | {really} | {left:.2f} |")


if __name__ == "__main__":
    main()
