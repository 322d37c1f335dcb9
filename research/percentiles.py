"""Make the table of ``MarsResult.percentiles``, which says what a score means, from rated candidates.

    python -m research.percentiles DATA/*.jsonl --preset mini --features FEATURES.json

Takes the features that :mod:`research.forms` saved, or computes them. Writes quantiles of the scores and mean
ratings of the preset by variant and task to mars_score/percentiles.json. Ratings are scaled to [0, 1] within each
set. The file contains no text and no rating of a single candidate.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from mars_score.metrics.plus import PlusConfig
from mars_score.percentiles import FILE, WITH_REFERENCES, WITHOUT_REFERENCES, settings_digest
from mars_score.rows import TASKS
from mars_score.settings import resolve_settings
from mars_score.signature import make_signature
from mars_score.stats.resampling import Floats
from research.agreement import RESAMPLES
from research.forms import VARIANTS, WITHOUT, Sets, feature_options, kept_sets, scores
from research.results import Figures, add_record_option, markdown, record

STEPS = 20  # between quantiles of the scores
FIFTHS = 5  # parts of the candidates by score, each with a mean rating
DIGITS = 3
Rated = Sequence[tuple[Floats, Floats]]  # scores and scaled ratings of each set


def main() -> None:
    """Update the file for one preset."""
    options = feature_options(__doc__)
    add_record_option(options)
    args = options.parse_args()
    given = {WITH_REFERENCES: kept_sets(args), WITHOUT_REFERENCES: kept_sets(args, WITHOUT)}
    made = {variant: of_variant(given, args.preset, variant, config) for variant, config in VARIANTS.items()}
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(kept | {args.preset: made}, sort_keys=True) + "\n", encoding="utf-8")
    values = {variant: table(by_form[WITH_REFERENCES]) for variant, by_form in made.items()}
    for variant, text in values.items():
        print(f"`{variant}`\n\n{text}\n")
    if args.record:
        record(f"percentiles.{args.preset}", {variant: text.splitlines() for variant, text in values.items()})


def of_variant(sets: Mapping[str, Sets], preset: str, variant: str, config: PlusConfig) -> Figures:
    """Return the tables of a variant, with and without references and by task, and the digest of its settings."""
    signature = make_signature(resolve_settings(preset, variant), [1])
    tables: dict[str, object] = {"settings": settings_digest(signature)}
    for form, given in sets.items():
        by_task: dict[str, Rated] = {
            task: [
                (scores(rows, config), (human - human.min()) / (human.max() - human.min()))
                for rows, human in given.values()
                if rows[0].row.task == task
            ]
            for task in TASKS
        }
        tables[form] = {task: of_task(rated) for task, rated in by_task.items() if rated}
    return tables


def of_task(rated: Rated) -> Figures:
    """Return quantiles of the scores of a task's candidates, and the mean rating of each fifth, with intervals."""
    pooled = np.concatenate([found for found, _ in rated])
    quantiles = np.quantile(pooled, np.linspace(0, 1, STEPS + 1))
    edges = quantiles[:: STEPS // FIFTHS][1:-1]
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            ratings_by_fifth([rated[index] for index in rng.integers(0, len(rated), len(rated))], edges)
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
    """Return the mean rating of the candidates between neighbouring edges of the scores, or NaN without any."""
    fifths = np.concatenate([np.searchsorted(edges, found, side="right") for found, _ in rated])
    human = np.concatenate([ratings for _, ratings in rated])
    return [float(human[fifths == fifth].mean()) if fifth in fifths else np.nan for fifth in range(FIFTHS)]


def table(tasks: Figures) -> str:
    """Write by task the lower score and the mean rating of each fifth."""
    rows = [["task", "sets", "candidates", *(f"fifth {fifth}" for fifth in range(1, FIFTHS + 1))]]
    for task, figures in tasks.items():
        edges = figures["scores"][:: STEPS // FIFTHS][1:-1]
        above = ["", *(f"from {edge:.2f}: " for edge in edges)]
        cells = [
            f"{start}{rating:.2f} [{low:.2f}, {high:.2f}]"
            for start, (rating, low, high) in zip(above, figures["ratings"], strict=True)
        ]
        rows.append([task, str(figures["sets"]), str(figures["candidates"]), *cells])
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
