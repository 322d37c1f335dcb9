"""How the aspects of a row agree with human ratings of fluency, consistency and so on.

    python -m research.aspects DATA/*.jsonl --preset mini --rows 40 --features FEATURES.json

Takes the features that :mod:`research.forms` saved of the same candidates, or computes them. Prints Pearson's r of
each aspect with each rating of each set, and the means by kind of rating, over all sets and over summaries, which
must follow from their context. ``--record`` writes the figures for research/aspects.md.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mars_score.metrics.plus import Features, PlusConfig, plus
from mars_score.rows import Aspects
from mars_score.stats.resampling import Floats
from research.agreement import drawn, pearson
from research.forms import VARIANTS, feature_options, features_and_ratings, from_json, kept_features, with_terms
from research.results import Figures, add_record_option, markdown, record
from research.sets import TASKS, read_sets

OURS = Aspects._fields
Found = dict[str, dict[str, dict[str, float]]]  # Pearson's r by set, rating and aspect
# Names of ratings in the sets, by kind.
KINDS = {
    "content": (
        *("informativeness", "datacoverage", "nothing_missing", "litepyramid_recall"),
        *("correct", "grade", "meaning"),
    ),
    "relevance": ("relevance", "maintains_context", "fits"),
    "consistency": ("consistency", "correctness", "nothing_added", "groundedness", "uses_knowledge"),
    "coherence": ("coherence", "textstructure", "reasonable"),
    "fluency": ("fluency", "naturalness", "natural", "understandability", "understandable", "clarity"),
}


def main() -> None:
    """Compute the aspects of each set, and print."""
    options = feature_options(__doc__)
    add_record_option(options)
    args = options.parse_args()
    saved = kept_features(args, features_and_ratings)
    found: Found = {}
    for file in map(Path, args.files):
        features = [from_json(values) for values in saved[file.stem]["features"]]
        ours = columns([aspects_of(row, VARIANTS["plus"]) for row in features])
        human = ratings_by_name(file, args.rows, saved[file.stem]["ratings"])
        found[file.stem] = agreement(ours, human)
    summaries = {name: ratings for name, ratings in found.items() if TASKS.get(name) == "summary"}
    values = {"kinds": means(found), "kinds in summaries": means(summaries), "sets": by_set(found).splitlines()}
    print("\n\n".join(tables({args.preset: values}).values()))
    if args.record:
        record(f"aspects.{args.preset}", values)


def aspects_of(features: Features, config: PlusConfig) -> dict[str, float | None]:
    """Return the aspects that a scored row has."""
    own = with_terms(features, config, features.row.task)
    log_p = own.log_p if "likelihood" in own.terms else None
    return Aspects.of(plus(own, config), log_p)._asdict()


def columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, Floats]:
    """Return columns of the aspects that all rows have."""
    return {
        name: np.array([row[name] for row in rows]) for name in OURS if all(row[name] is not None for row in rows)
    }


def ratings_by_name(file: Path, rows: int, overall: Sequence[float]) -> dict[str, Floats]:
    """Read the single ratings of the candidates whose features were saved.

    Args:
        file: file of the set. Each line has an ``id`` and ``ratings`` by name.
        rows: ``--rows`` of the call that saved the features.
        overall: ratings that were saved with the features.

    Raises:
        ValueError: the features are those of other candidates.
    """
    (whole,) = read_sets([file])
    rated = drawn(whole, rows)
    rated = rated.where([bool(row.candidate) for row in rated.rows])
    if rated.ratings != list(overall):
        raise ValueError(f"{file.stem}: the saved features are of other candidates; give the --rows of that call")
    items = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    by_id = {item["id"]: item["ratings"] for item in items}
    return {
        name: np.array([by_id[id_].get(name) for id_ in rated.ids], dtype=float) for name in by_id[rated.ids[0]]
    }


def agreement(ours: Mapping[str, Floats], human: Mapping[str, Floats]) -> dict[str, dict[str, float]]:
    """Compute Pearson's r by rating and aspect, leaving out pairs with a constant side."""
    found = {}
    for name, ratings in human.items():
        rated = ~np.isnan(ratings)
        pairs = {aspect: (values[rated], ratings[rated]) for aspect, values in ours.items()}
        found[name] = {
            aspect: pearson(*pair) for aspect, pair in pairs.items() if all(len(set(side)) > 1 for side in pair)
        }
    return found


def means(found: Found) -> dict[str, dict[str, float]]:
    """Return the mean r of each aspect with each kind of rating, and the number of ratings."""
    values = {}
    for kind, names in KINDS.items():
        of_kind = [row for ratings in found.values() for name, row in ratings.items() if name in names and row]
        by_aspect = {aspect: [row[aspect] for row in of_kind if aspect in row] for aspect in OURS}
        values[kind] = {aspect: float(np.mean(column)) for aspect, column in by_aspect.items() if column}
        values[kind]["ratings"] = len(of_kind)
    return values


def by_kind(kinds: Mapping[str, Mapping[str, float]]) -> str:
    """Write the means by kind of rating."""
    rows = [["people rated", "ratings", *OURS]]
    return markdown(rows + [[kind, str(row["ratings"]), *cells(row)] for kind, row in kinds.items()])


def by_set(found: Found) -> str:
    """Write the agreement with each rating of each set."""
    rows = [["set, rating", *OURS]]
    for name, ratings in found.items():
        rows += [[f"{name}, {rating}", *cells(row)] for rating, row in ratings.items() if row]
    return markdown(rows)


def cells(row: Mapping[str, float]) -> list[str]:
    """Write a value for each aspect, or "" if it has none."""
    return [f"{row[aspect]:.2f}" if aspect in row else "" for aspect in OURS]


def tables(recorded: Mapping[str, Figures]) -> dict[str, str]:
    """Write the tables of each preset."""
    made: dict[str, str] = {}
    for preset, values in recorded.items():
        made |= {f"{preset} {name}": by_kind(values[name]) for name in ("kinds", "kinds in summaries")}
        made[f"{preset} sets"] = "\n".join(values["sets"])
    return made


if __name__ == "__main__":
    main()
