"""What samples add by the quality of their writer: other systems of a rated set stand for writers.

    python -m research.samples DATA/*.jsonl --features FEATURES.json

The texts of the two best systems of a set (by mean rating), of its best, its median and its worst one are the
samples of the candidates of all others, which alone count; where systems are not named, the others' texts for the
same context. Prints Pearson's r with human ratings with samples minus without. Features are saved in
FEATURES.json: a second call needs no models and no data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.meta.sets import RatedSet
from mars_score.metrics.plus import Features
from mars_score.models.calls import ModelCalls
from research.agreement import pearson
from research.forms import VARIANTS, every_feature, from_json, saved_features, scores, to_json

OPEN_ENDED = (
    *("summeval", "dialsummeval", "newsroom", "openmeva_roc"),
    *("usr_topicalchat", "usr_personachat", "grade_convai2"),
)
WRITERS = ("two best", "best", "median", "worst")
KINDS = ("with references", "without references")
FEW = 10  # candidates of a system below which it is no writer
Floats = NDArray[np.float64]


def main() -> None:
    """Compute the features, or take the saved ones, and print."""
    saved = saved_features(__doc__, features_with_samples)
    sets = {name: {**one, **{kind: [*map(from_json, one[kind])] for kind in KINDS}} for name, one in saved.items()}
    for kind in KINDS:
        for variant in VARIANTS:
            print(f"\n{table(sets, variant, kind)}")


def features_with_samples(rated: RatedSet, calls: ModelCalls) -> dict[str, Any]:
    """Return what is saved of a set: the samples of a candidate are all other texts of its group."""
    rated = rated.where([bool(row.candidate) for row in rated.rows])
    texts = [row.candidate for row in rated.rows]
    others = [
        [other for other, its_group in enumerate(rated.groups) if its_group == group and texts[other] != text]
        for text, group in zip(texts, rated.groups, strict=True)
    ]
    rows = [
        replace(row, samples=tuple(texts[other] for other in its_others))
        for row, its_others in zip(rated.rows, others, strict=True)
    ]
    alone = [replace(row, references=()) for row in rows]
    return {
        KINDS[0]: [to_json(features) for features in every_feature(rows, calls)],
        KINDS[1]: [to_json(features) for features in every_feature(alone, calls)],
        "ratings": rated.ratings,
        "systems": rated.systems,
        "writers": [[rated.systems[other] for other in its_others] for its_others in others],
    }


def table(sets: Mapping[str, Any], variant: str, kind: str) -> str:
    """Write a row for each set: r without samples, and what each writer adds in thousandths."""
    suffix = "" if kind == KINDS[0] else f" {kind}"
    lines = [
        f"| `{variant}`{suffix} | r without samples | {' | '.join(WRITERS)} |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    gains: dict[str, list[float]] = {}
    for name, one in sets.items():
        without = scores([_with_recalls(features, ()) for features in one[kind]], VARIANTS[variant])
        gains[name] = [gain(one, writer, variant, kind) for writer in WRITERS]
        if any(np.isfinite(gains[name])):
            r = pearson(without, np.array(one["ratings"]))
            lines.append(f"| {name} | {r:.3f} | {' | '.join(map(_thousandths, gains[name]))} |")
    means = np.mean([gains[name] for name in OPEN_ENDED if name in gains], axis=0)
    lines.append(f"| mean of the open-ended sets | | {' | '.join(map(_thousandths, means))} |")
    rest = [values for name, values in gains.items() if name not in OPEN_ENDED and any(np.isfinite(values))]
    lines.append(f"| mean of the others | | {' | '.join(map(_thousandths, np.nanmean(rest, axis=0)))} |")
    return "\n".join(lines)


def gain(one: Mapping[str, Any], writer: str, variant: str, kind: str) -> float:
    """Compute what a writer's samples add to r, over the candidates of others that have some; NaN: none."""
    ratings, systems = np.array(one["ratings"]), one["systems"]
    chosen = choose_systems(np.array(systems), ratings, writer)
    if chosen is None and writer != WRITERS[0]:
        return float("nan")
    recalls = [
        [
            recall
            for recall, its_writer in zip(features.sample_recalls, writers, strict=True)
            if chosen is None or (its_writer in chosen and system not in chosen)
        ]
        for features, writers, system in zip(one[kind], one["writers"], systems, strict=True)
    ]
    scored = [index for index, values in enumerate(recalls) if values]
    if not scored:
        return float("nan")
    with_samples, without = (
        scores([_with_recalls(one[kind][index], values[index]) for index in scored], VARIANTS[variant])
        for values in (recalls, [()] * len(recalls))
    )
    return pearson(with_samples, ratings[scored]) - pearson(without, ratings[scored])


def choose_systems(systems: NDArray[Any], ratings: Floats, writer: str) -> Sequence[str] | None:
    """Choose the systems that stand for a writer; None: all others, where there are too few."""
    names = [name for name in dict.fromkeys(systems.tolist()) if (systems == name).sum() >= FEW]
    ranked = sorted(names, key=lambda name: -ratings[systems == name].mean())
    if len(ranked) < 3:
        return None
    ranks = {"two best": slice(0, 2), "best": slice(0, 1), "worst": slice(-1, None)}
    middle = len(ranked) // 2
    return ranked[ranks.get(writer, slice(middle, middle + 1))]


def _with_recalls(features: Features, recalls: Sequence[float]) -> Features:
    row = features.row if recalls else replace(features.row, samples=())
    return features._replace(sample_recalls=recalls, row=row)


def _thousandths(value: float) -> str:
    return f"{1000 * value:+.0f}" if np.isfinite(value) else ""


if __name__ == "__main__":
    main()
