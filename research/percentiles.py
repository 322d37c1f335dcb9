"""What a score means: the table behind ``MarsResult.percentiles``, from rated candidates.

    python -m research.percentiles DATA/*.jsonl --preset mini --features FEATURES.json

Takes the features that :mod:`research.forms` saved (or computes them), and writes for the preset and its variants,
by task, quantiles of the scores and mean ratings to mars_score/percentiles.json. Ratings are scaled to 0 to 1
within each set. No text and no rating of a single candidate is in the file.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mars_score.metrics.plus import PlusConfig
from mars_score.percentiles import FILE, WITH_REFERENCES, WITHOUT_REFERENCES, settings_digest
from mars_score.rows import TASKS
from mars_score.settings import resolve_settings
from mars_score.signature import make_signature
from research.forms import (
    RESAMPLES,
    VARIANTS,
    WITHOUT,
    Floats,
    Sets,
    feature_options,
    kept_sets,
    scores,
)
from research.results import add_record_option, markdown, record

STEPS = 20  # between quantiles of the scores
FIFTHS = 5  # parts of the candidates, by score, with a mean rating each
DIGITS = 3
Rated = Sequence[tuple[Floats, Floats]]  # by set: scores, and ratings from 0 to 1


def main() -> None:
    """Write the file anew for one preset."""
    options = feature_options(__doc__)
    add_record_option(options)
    args = options.parse_args()
    given = {WITH_REFERENCES: kept_sets(args), WITHOUT_REFERENCES: kept_sets(args, WITHOUT)}
    made = {variant: of_variant(given, args.preset, variant, config) for variant, config in VARIANTS.items()}
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(kept | {args.preset: made}, sort_keys=True) + "\n", encoding="utf-8")
    values = {variant: table(one[WITH_REFERENCES]) for variant, one in made.items()}
    for variant, text in values.items():
        print(f"`{variant}`\n\n{text}\n")
    if args.record:
        record(f"percentiles.{args.preset}", {variant: text.splitlines() for variant, text in values.items()})


def of_variant(sets: Mapping[str, Sets], preset: str, variant: str, config: PlusConfig) -> dict[str, Any]:
    """Return the tables of a variant, by what there is and task, with the digest of its settings."""
    signature = make_signature(resolve_settings(preset, variant), [1])
    tables: dict[str, Any] = {"settings": settings_digest(signature)}
    for form, given in sets.items():
        tables[form] = {}
        for task in TASKS:
            rated = [
                (scores(rows, config), (human - human.min()) / (human.max() - human.min()))
                for rows, human in given.values()
                if rows[0].row.task == task
            ]
            if rated:
                tables[form][task] = of_task(rated)
    return tables


def of_task(rated: Rated) -> dict[str, Any]:
    """Return quantiles of the scores of a task's candidates, and the mean rating of each fifth, with intervals."""
    pooled = np.concatenate([found for found, _ in rated])
    quantiles = np.quantile(pooled, np.linspace(0, 1, STEPS + 1))
    edges = quantiles[:: STEPS // FIFTHS][1:-1]
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            ratings_by_fifth([rated[number] for number in rng.integers(0, len(rated), len(rated))], edges)
            for _ in range(RESAMPLES)
        ]
    )
    ends = np.nanquantile(resampled, [0.025, 0.975], axis=0)
    return {
        "candidates": len(pooled),
        "sets": len(rated),
        "scores": quantiles.round(DIGITS).tolist(),
        "ratings": np.column_stack([ratings_by_fifth(rated, edges), *ends]).round(DIGITS).tolist(),
    }


def ratings_by_fifth(rated: Rated, edges: Floats) -> list[float]:
    """Return the mean rating of the candidates between each two edges of the scores; NaN where there is none."""
    fifths = np.concatenate([np.searchsorted(edges, found, side="right") for found, _ in rated])
    human = np.concatenate([ratings for _, ratings in rated])
    return [float(human[fifths == one].mean()) if (fifths == one).any() else np.nan for one in range(FIFTHS)]


def table(tasks: Mapping[str, Any]) -> str:
    """Write by task the scores between which the fifths are, and the mean rating of each."""
    rows = [["task", "sets", "candidates", *(f"fifth {one}" for one in range(1, FIFTHS + 1))]]
    for task, one in tasks.items():
        edges = one["scores"][:: STEPS // FIFTHS][1:-1]
        above = ["", *(f"from {edge:.2f}: " for edge in edges)]
        cells = [
            f"{start}{rating:.2f} [{low:.2f}, {high:.2f}]"
            for start, (rating, low, high) in zip(above, one["ratings"], strict=True)
        ]
        rows.append([task, str(one["sets"]), str(one["candidates"]), *cells])
    return markdown(rows)


def tables(recorded: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, str]:
    """Return the tables of each preset."""
    return {
        f"{preset} {variant}": "\n".join(lines)
        for preset, values in recorded.items()
        for variant, lines in values.items()
    }


if __name__ == "__main__":
    main()
