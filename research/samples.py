"""What samples add to agreement with human ratings, by the quality of their writer.

    python -m research.samples DATA/*.jsonl --features FEATURES.json

Systems of a rated set act as writers: the two best ones by mean rating, the best, the median and the worst. Their
texts are the samples for the candidates of all other systems. If systems are not named, all other texts for the
same context are samples. Prints Pearson's r with samples minus without. Features are saved in FEATURES.json, so a
second call needs no models and no data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mars_score.meta.sets import RatedSet
from mars_score.metrics.plus import Features
from mars_score.models.calls import ModelCalls
from mars_score.stats.resampling import Floats
from research.agreement import pearson
from research.forms import VARIANTS, every_feature, feature_options, from_json, kept_features, scores, to_json
from research.results import Figures, markdown

OPEN_ENDED = (
    *("summeval", "dialsummeval", "newsroom", "openmeva_roc"),
    *("usr_topicalchat", "usr_personachat", "grade_convai2"),
)
WRITERS = ("two best", "best", "median", "worst")
KINDS = ("with references", "without references")
FEWEST = 10  # candidates of a writer


def main() -> None:
    """Compute the features, or take the saved ones, and print."""
    saved = kept_features(feature_options(__doc__).parse_args(), features_with_samples)
    sets = {
        name: {**features, **{kind: [*map(from_json, features[kind])] for kind in KINDS}}
        for name, features in saved.items()
    }
    for kind in KINDS:
        for variant in VARIANTS:
            print(f"\n{table(sets, variant, kind)}")


def features_with_samples(rated: RatedSet, calls: ModelCalls) -> Figures:
    """Return what is saved of a set. The samples of a candidate are all other texts of its group."""
    rated = rated.where([bool(row.candidate) for row in rated.rows])
    texts = [row.candidate for row in rated.rows]
    others = [
        [other for other, of_other in enumerate(rated.groups) if of_other == group and texts[other] != text]
        for text, group in zip(texts, rated.groups, strict=True)
    ]
    rows = [
        replace(row, samples=tuple(texts[other] for other in indices))
        for row, indices in zip(rated.rows, others, strict=True)
    ]
    alone = [replace(row, references=()) for row in rows]
    return {
        KINDS[0]: [to_json(features) for features in every_feature(rows, calls)],
        KINDS[1]: [to_json(features) for features in every_feature(alone, calls)],
        "ratings": rated.ratings,
        "systems": rated.systems,
        "writers": [[rated.systems[other] for other in indices] for indices in others],
    }


def table(sets: Mapping[str, Figures], variant: str, kind: str) -> str:
    """Write for each set r without samples, and what each writer adds, in thousandths."""
    suffix = "" if kind == KINDS[0] else f" {kind}"
    rows = [[f"`{variant}`{suffix}", "r without samples", *WRITERS]]
    gains: dict[str, list[float]] = {}
    for name, of_set in sets.items():
        without = scores([_with_recalls(features, ()) for features in of_set[kind]], VARIANTS[variant])
        gains[name] = [gain(of_set, writer, variant, kind) for writer in WRITERS]
        if any(np.isfinite(gains[name])):
            r = pearson(without, np.array(of_set["ratings"]))
            rows.append([name, f"{r:.3f}", *map(_thousandths, gains[name])])
    means = np.mean([gains[name] for name in OPEN_ENDED if name in gains], axis=0)
    rows.append(["mean of the open-ended sets", "", *map(_thousandths, means)])
    rest = [values for name, values in gains.items() if name not in OPEN_ENDED and any(np.isfinite(values))]
    rows.append(["mean of the others", "", *map(_thousandths, np.nanmean(rest, axis=0))])
    return markdown(rows)


def gain(of_set: Figures, writer: str, variant: str, kind: str) -> float:
    """Compute what a writer's samples add to r over the candidates of others, or NaN if none has samples."""
    ratings, systems = np.array(of_set["ratings"]), of_set["systems"]
    chosen = choose_systems(np.array(systems), ratings, writer)
    if chosen is None and writer != WRITERS[0]:
        return float("nan")
    recalls = [
        [
            recall
            for recall, author in zip(features.sample_recalls, authors, strict=True)
            if chosen is None or (author in chosen and system not in chosen)
        ]
        for features, authors, system in zip(of_set[kind], of_set["writers"], systems, strict=True)
    ]
    scored = [index for index, values in enumerate(recalls) if values]
    if not scored:
        return float("nan")
    with_samples, without = (
        scores([_with_recalls(of_set[kind][index], values[index]) for index in scored], VARIANTS[variant])
        for values in (recalls, [()] * len(recalls))
    )
    return pearson(with_samples, ratings[scored]) - pearson(without, ratings[scored])


def choose_systems(systems: NDArray[np.str_], ratings: Floats, writer: str) -> Sequence[str] | None:
    """Choose the systems that act as a writer, or return None if there are too few."""
    names = [name for name in dict.fromkeys(systems.tolist()) if (systems == name).sum() >= FEWEST]
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
