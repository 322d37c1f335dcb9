"""What samples add by the quality of their writer: other systems of a rated set stand for writers.

    python -m research.samples DATA/*.jsonl --features FEATURES.json

The texts of the two best systems of a set (by mean rating), of its best, its median and its worst one are the
samples of the candidates of all others, which alone count; where systems are not named, the others' texts for the
same context. Prints Pearson's r with human ratings with samples minus without. What models read is kept in
FEATURES.json: a second call needs no models and no data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score import MarsScorer
from mars_score.meta.rated import RatedSet
from mars_score.scoring.evidence import MATCH, Reader
from mars_score.scoring.terms import token_recall
from research.agreement import pearson
from research.forms import Features, features, form, kept_features

OPEN_ENDED = (
    *("summeval", "dialsummeval", "newsroom", "openmeva_roc"),
    *("usr_topicalchat", "usr_personachat", "grade_convai2"),
)
WRITERS = ("two best", "best", "median", "worst")
LIKELIHOOD = {"plus": 0.15, "fast": 0.0}
WITHOUT_REFERENCES = {"context": 0.5, "samples": 0.2}
FEW = 10  # candidates of a system below which it is no writer


def main() -> None:
    """Read, or take what was kept, and print."""
    sets = kept_features(__doc__, read)
    for variant in LIKELIHOOD:
        print(f"\n{table(sets, variant, with_references=True)}")
    for variant in LIKELIHOOD:
        print(f"\n{table(sets, variant, with_references=False)}")


def read(rated: RatedSet, scorer: MarsScorer) -> dict[str, Any]:
    """The features of the written candidates, and the recall by each of every other text of its group."""
    rated = rated.where([bool(row.candidate) for row in rated.rows])
    texts = [row.candidate for row in rated.rows]
    tokens = {text: one.tokens for text, one in Reader(scorer.settings, scorer.runtime).read(MATCH, texts).items()}
    recalls = [
        (index, other, token_recall(tokens[text], tokens[texts[other]]))
        for index, (text, group) in enumerate(zip(texts, rated.groups, strict=True))
        for other, its_group in enumerate(rated.groups)
        if its_group == group and texts[other] != text
    ]
    return {"features": features(rated, scorer), "systems": rated.systems, "recalls": recalls}


def table(sets: dict[str, Any], variant: str, *, with_references: bool) -> str:
    """A row for each set: r without samples, and what each writer adds in thousandths."""
    kind = "" if with_references else " without references"
    lines = [
        f"| `{variant}`{kind} | r without samples | {' | '.join(WRITERS)} |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    gains: dict[str, list[float]] = {}
    for name, one in sets.items():
        columns = {key: np.array(values) for key, values in one["features"].items()}
        whole = pearson(_scores(columns, variant, with_references), columns["human"])
        gains[name] = [gain(one, columns, writer, variant, with_references) for writer in WRITERS]
        if any(np.isfinite(gains[name])):
            lines.append(f"| {name} | {whole:.3f} | {' | '.join(map(_thousandths, gains[name]))} |")
    means = np.mean([gains[name] for name in OPEN_ENDED if name in gains], axis=0)
    lines.append(f"| mean of the open-ended sets | | {' | '.join(map(_thousandths, means))} |")
    rest = [values for name, values in gains.items() if name not in OPEN_ENDED and any(np.isfinite(values))]
    lines.append(f"| mean of the others | | {' | '.join(map(_thousandths, np.nanmean(rest, axis=0)))} |")
    return "\n".join(lines)


def gain(one: dict[str, Any], columns: Features, writer: str, variant: str, with_references: bool) -> float:
    """What a writer's samples add to Pearson's r, over the candidates of others that have some; NaN: none."""
    systems = np.array(one["systems"])
    writers = chosen(systems, columns["human"], writer)
    nearest = np.full(len(systems), -np.inf)
    for index, other, recall in one["recalls"]:
        if writers is None or (systems[other] in writers and systems[index] not in writers):
            nearest[index] = max(nearest[index], recall)
    scored = np.isfinite(nearest)
    if not scored.any() or (writers is None and writer != "two best"):
        return float("nan")
    rows = {name: values[scored] for name, values in columns.items()}
    without = _scores(rows, variant, with_references)
    with_samples = _scores({**rows, "nearest": nearest[scored]}, variant, with_references)
    return pearson(with_samples, rows["human"]) - pearson(without, rows["human"])


def chosen(systems: NDArray[Any], ratings: NDArray[np.float64], writer: str) -> Sequence[str] | None:
    """The systems that stand for a writer; None: all others, where there are too few."""
    names = [name for name in dict.fromkeys(systems) if (systems == name).sum() >= FEW]
    ranked = sorted(names, key=lambda name: -ratings[systems == name].mean())
    if len(ranked) < 3:
        return None
    places = {"two best": slice(0, 2), "best": slice(0, 1), "worst": slice(-1, None)}
    middle = len(ranked) // 2
    return ranked[places.get(writer, slice(middle, middle + 1))]


def _scores(rows: Features, variant: str, with_references: bool) -> NDArray[np.float64]:
    if with_references:
        return form(rows, LIKELIHOOD[variant])
    likely = LIKELIHOOD[variant] * (1 - rows["dialogue"]) * (0.5 * rows["alone"] + rows["lift"])
    nearest = rows.get("nearest", np.zeros_like(likely))
    scores: NDArray[np.float64] = (
        WITHOUT_REFERENCES["context"] * rows["near"]
        + WITHOUT_REFERENCES["samples"] * nearest
        + likely
        - 0.3 * rows["repetition"]
    )
    return scores


def _thousandths(value: float) -> str:
    return f"{1000 * value:+.0f}" if np.isfinite(value) else ""


if __name__ == "__main__":
    main()
