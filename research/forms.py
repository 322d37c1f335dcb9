"""How `plus` and `fast` agree with human ratings, by set and kind, and what each constant contributes.

    python -m research.forms DATA/*.jsonl --preset mini --features FEATURES.json

Samples candidates of the rated sets as :mod:`research.agreement` does, and saves their features in FEATURES.json,
so a second call needs no models and no data. Prints Pearson's r by set, and how the mean changes without each
constant, with whole kinds of sets resampled. ``--record`` writes the figures to research/results.json.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from mars_score import MarsScorer
from mars_score.meta.sets import RatedSet
from mars_score.metrics.plus import Features, PlusConfig, plus, repetition, term_names
from mars_score.models.calls import ModelCalls
from mars_score.models.running import one_blas_thread
from mars_score.rows import LogProbability, Row, weighted_sum
from mars_score.settings import resolve_settings
from mars_score.stats.resampling import Floats
from mars_score.variants.plus_variant import ask_models, make_features, plan_row
from research.agreement import RESAMPLES, drawn, pearson
from research.results import Figures, add_record_option, markdown, record
from research.sets import KINDS, read_sets, set_options

T = TypeVar("T")
WITHIN = 0.02  # difference of r that does not matter
VARIANTS = {"plus": PlusConfig(), "fast": PlusConfig(likelihood_weight=0.0)}  # updated for the preset
ALONE = "without references"
# Columns of the means, and their titles.
TITLES = {
    "plus": "`plus`",
    "fast": "`fast`",
    ALONE: "`plus` without references",
    "token recall": "recall of BERTScore, same encoder",
    "cosine": "cosine of sentence vectors",
}
NEVER = 0.999999  # a cosine that no context reaches
Changes = Mapping[str, float]  # constants of PlusConfig, and arguments of :func:`scores`
Sets = Mapping[str, tuple[list[Features], Floats]]  # features and ratings of the candidates, by set
WITH, WITHOUT = "features", "features without references"  # what is saved of a set besides its ratings

# Changes of the formula by the name of the table's row.
CHANGES: dict[str, Changes] = {
    "repetition": {"repetition_penalty": 0},
    "copying as repetition in a dialogue": {"copied_words": 10**6},
    "context": {"context_weight": 0},
    "context weight by length of references": {"context_words": 0},
    "... and by their closeness": {"close_context": NEVER},
    "cosine for context, if data": {"data": False},
    "likelihood": {"likelihood_weight": 0},
    "likelihood weight by length of references": {"likelihood_words": 0},
    "limit of the PMI": {"max_pmi": 99},
    "half of log p: none": {"log_p_weight": 0},
    "half of log p: all": {"log_p_weight": 1},
    "no likelihood in a dialogue": {"dialogue": False},
    "support and contradiction": {"support_weight": 0, "contradiction_penalty": 0},
    "support": {"support_weight": 0},
    "contradiction": {"contradiction_penalty": 0},
    "a tenth of recall: cosine instead": {"cosine": 0.1},
    "half of recall: cosine instead": {"cosine": 0.5},
    "recall: cosine instead": {"cosine": 1},
}
# What the rehearsal chooses from. The first value is that of the formula.
CHOICES: dict[str, tuple[float, ...]] = {
    "context_weight": (0.5, 0.3, 0.7),
    "close_context": (0.7, NEVER),
    "data": (True, False),
    "max_pmi": (2.5, 99),
    "log_p_weight": (0.5, 0, 1),
    "dialogue": (True, False),
    "repetition_penalty": (0.3, 0, 0.6),
    "support_weight": (0.2, 0, 0.1, 0.3),
    "contradiction_penalty": (0.5, 0, 0.3, 0.8),
}
PLAIN: Changes = {  # R + .5 C
    "likelihood_weight": 0,
    "repetition_penalty": 0,
    "support_weight": 0,
    "contradiction_penalty": 0,
    "context_words": 0,
    "close_context": NEVER,
    "data": False,
}


def main() -> None:
    """Compute the features, or take the saved ones, and print."""
    options = feature_options(__doc__)
    add_record_option(options)
    args = options.parse_args()
    sets = kept_sets(args)
    values = agreement_by_set(sets, kept_sets(args, WITHOUT))
    print(f"{by_set(values)}\n")
    for variant in VARIANTS:
        constants, chosen, left_out = table(sets, variant), *rehearsal(sets, variant)
        print(
            f"\n`{variant}`: mean of {len(sets)} sets {values['mean of sets'][variant]:.3f}.\n\n{constants}\n\n"
            f"{beside_parts(sets, variant)}\n\n{chosen}\n\n"
            f"`{variant}`, each set by what was chosen on the other kinds: mean {left_out:.3f}."
        )
        values[variant] = {"constants": constants.splitlines(), "left out": left_out}
    if args.record:
        record(f"forms.{args.preset}", values)


def feature_options(text: str | None) -> argparse.ArgumentParser:
    """Make the options of a command that works on saved features, with its help."""
    options = set_options(text, files="*")
    options.add_argument("--features", type=Path, required=True, help="where the features are saved")
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32", help="number type of the models (default: float32)")
    return options


def kept_features(
    args: argparse.Namespace, compute: Callable[[RatedSet, ModelCalls], Figures]
) -> dict[str, Figures]:
    """Return what the file of features contains of each set, after ``compute`` has added missing sets."""
    VARIANTS.update({name: cast(PlusConfig, resolve_settings(args.preset, name).config) for name in VARIANTS})
    path: Path = args.features
    saved: dict[str, Figures] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if missing := read_sets(file for file in args.files if Path(file).stem not in saved):
        calls = MarsScorer(args.preset, variant="plus", dtype=args.dtype).calls
        for rated in missing:
            saved[rated.name] = compute(drawn(rated, args.rows), calls)
            path.write_text(json.dumps(saved), encoding="utf-8")
    return saved


def kept_sets(args: argparse.Namespace, kind: str = WITH) -> Sets:
    """Return the features and ratings of each set, as :func:`kept_features` does."""
    return {
        name: ([from_json(values) for values in columns[kind]], np.array(columns["ratings"]))
        for name, columns in kept_features(args, features_and_ratings).items()
    }


def features_and_ratings(rated: RatedSet, calls: ModelCalls) -> Figures:
    """Return what is saved of a set: features and ratings of its candidates that are not blank."""
    written = rated.where([bool(row.candidate) for row in rated.rows])
    alone = [replace(row, references=()) for row in written.rows]
    return {
        WITH: [to_json(features) for features in every_feature(written.rows, calls)],
        WITHOUT: [to_json(features) for features in every_feature(alone, calls)],
        "ratings": written.ratings,
    }


def every_feature(rows: Sequence[Row], calls: ModelCalls) -> list[Features]:
    """Compute the features that the rows would have with any task. :func:`with_terms` then selects the task's."""
    without_nli = replace(PlusConfig(), support_weight=0.0, contradiction_penalty=0.0)
    as_text, as_data = (
        features_of([replace(row, task=task) for row in rows], without_nli, calls) for task in ("text", "data")
    )
    with_own_task = features_of(rows, PlusConfig(), calls)
    return [
        text._replace(
            row=own.row,
            terms=own.terms,
            reference_cosines=data.reference_cosines,
            support=own.support,
            support_reliability=own.support_reliability,
            contradicted_share=own.contradicted_share,
        )
        for text, data, own in zip(as_text, as_data, with_own_task, strict=True)
    ]


def features_of(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[Features]:
    """Compute the features of prepared rows, none of which has a blank candidate."""
    plans = [plan_row(row, config) for row in rows]
    outputs = ask_models(plans, config, calls)
    with one_blas_thread():
        return [make_features(plan, outputs) for plan in plans]


def to_json(features: Features) -> list[object]:
    """Return features as data for JSON."""
    return list(features._replace(row=astuple(features.row), terms=sorted(features.terms)))  # type: ignore[arg-type]


def from_json(values: Sequence[Any]) -> Features:
    """Read features from data of :func:`to_json`."""
    features = Features(*values)
    return features._replace(
        row=Row.from_values(values[0]),
        terms=frozenset(features.terms),
        log_p=features.log_p and LogProbability(*features.log_p),
    )


def scores(
    candidates: Sequence[Features],
    config: PlusConfig,
    *,
    cosine: float = 0,
    data: float = True,
    dialogue: float = True,
    **constants: Any,
) -> Floats:
    """Compute the score of each candidate by a changed formula.

    Args:
        candidates: features of :func:`every_feature`.
        config: constants of the formula.
        cosine: share of token recall that the sentence cosine replaces.
        data: whether the cosine replaces the context if that is data.
        dialogue: whether the likelihood is left out in a dialogue.
        constants: changed constants of ``config``.
    """
    changed = replace(config, **constants)
    values = []
    for own in candidates:
        task = "text" if own.row.task == "data" and not data else own.row.task
        features = with_terms(own, changed, task)
        if cosine:
            mixed = (1 - cosine) * max(own.recalls) + cosine * max(own.reference_cosines)
            features = features._replace(recalls=[mixed])
        if not dialogue and changed.likelihood_weight:
            features = features._replace(terms=features.terms | {"likelihood"})
        values.append(weighted_sum(plus(features, changed)))
    return np.array(values)


def with_terms(features: Features, config: PlusConfig, task: str) -> Features:
    """Return the features of a row as if it had a task, with the terms of that task."""
    row = replace(features.row, task=task)
    terms = term_names(row, config)
    near = features.reference_context_cosine if "context" in terms else 0.0
    return features._replace(row=row, terms=terms, reference_context_cosine=near)


def agreement_by_set(sets: Sets, alone: Sets) -> dict[str, Any]:
    """Compute Pearson's r of the variants and of their parts by set, and the means over sets and kinds.

    Args:
        sets: candidates with references.
        alone: the same without references.
    """
    columns: dict[str, Callable[[Sequence[Features]], Floats]] = {
        name: lambda rows, config=config: scores(rows, config)  # type: ignore[misc]
        for name, config in VARIANTS.items()
    }
    columns["token recall"] = lambda rows: np.array([max(row.recalls) for row in rows])
    columns["cosine"] = lambda rows: np.array([max(row.reference_cosines, default=0.0) for row in rows])
    found = {
        name: {
            **{title: pearson(column(rows), ratings) for title, column in columns.items()},
            ALONE: pearson(scores(alone[name][0], VARIANTS["plus"]), ratings),
        }
        for name, (rows, ratings) in sorted(sets.items())
    }
    return {
        "sets": {name: {"candidates": len(sets[name][0]), **values} for name, values in found.items()},
        "mean of sets": _means(found.values()),
        "mean of kinds": _means(_means(of_kind) for of_kind in by_kind(found) if of_kind),
    }


def _means(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the means of mappings with the same keys."""
    rows = list(rows)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def by_set(values: Figures) -> str:
    """Write Pearson's r by set, and the means."""
    titles = list(values["mean of sets"])
    rows = [["set", "candidates", *titles]]
    for name, found in [
        *values["sets"].items(),
        (f"mean of {len(values['sets'])} sets", values["mean of sets"]),
        ("mean of kinds", values["mean of kinds"]),
    ]:
        rows.append([name, str(found.get("candidates", "")), *(f"{found[title]:.3f}" for title in titles)])
    return markdown(rows)


def tables(recorded: Mapping[str, Figures]) -> dict[str, str]:
    """Write the tables of the pages, with the presets side by side."""
    return {
        "means": means_table(recorded),
        "sets": sets_table(recorded),
        "constants": constants_table(recorded),
    }


def sets_table(recorded: Mapping[str, Figures]) -> str:
    """Write r of `plus` by set and its means for each preset, and token recall with the last preset."""
    columns = [*((preset, "plus") for preset in recorded), (list(recorded)[-1], "token recall")]
    rows = [["set", *(f"{title.replace('plus', '`plus`')}, `{preset}`" for preset, title in columns)]]
    for name in next(iter(recorded.values()))["sets"]:
        rows.append([name, *(f"{recorded[preset]['sets'][name][title]:.3f}" for preset, title in columns)])
    for mean in ("mean of sets", "mean of kinds"):
        rows.append([mean, *(f"{recorded[preset][mean][title]:.3f}" for preset, title in columns)])
    return markdown(rows)


def constants_table(recorded: Mapping[str, Figures]) -> str:
    """Write what each constant of `plus` contributes with the last preset, and which kind needs it most."""
    last = list(recorded)[-1]
    (_, _, *kinds), _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in recorded[last]["plus"]["constants"]
    )
    rows = [["without", "mean of sets [95 %]", "most lost"]]
    for name, mean, *by_kind in lines:
        least = min(by_kind, key=float)
        rows.append([name, mean, f"{kinds[by_kind.index(least)]} {least}" if float(least) < 0 else ""])
    return markdown(rows)


def means_table(recorded: Mapping[str, Figures]) -> str:
    """Write the mean r of each column over sets, with its interval from resamples of whole kinds."""
    rows = [["mean of r [95 %, kinds of sets resampled]", *(f"`{preset}`" for preset in recorded)]]
    for title, shown in TITLES.items():
        by_preset = [{name: r[title] for name, r in values["sets"].items()} for values in recorded.values()]
        intervals = [mean_and_ends([*filter(None, by_kind(values))]) for values in by_preset]
        rows.append([shown, *(f"{mean:.3f} [{low:.2f}, {high:.2f}]" for mean, low, high in intervals)])
    return markdown(rows)


def by_kind(values: Mapping[str, T]) -> list[list[T]]:
    """Return for each of :data:`KINDS` the values of its sets."""
    return [[values[name] for name in names if name in values] for names in KINDS.values()]


def likelihood(features: Features, config: PlusConfig) -> float:
    """Return the value of the term "likelihood" in any task, or 0 without a context."""
    if features.log_p is None or not features.row.context:
        return 0.0
    return config.log_p_weight * features.log_p.alone + min(features.log_p.pmi, config.max_pmi)


def table(sets: Sets, variant: str) -> str:
    """Write how the mean r over sets changes without each constant, in thousandths."""
    config = VARIANTS[variant]

    def agreement(changes: Changes) -> dict[str, float]:
        return {name: pearson(scores(rows, config, **changes), ratings) for name, (rows, ratings) in sets.items()}

    unchanged = agreement({})
    rows = [[f"`{variant}` without", "mean of sets [kinds resampled, 95 %]", *KINDS]]
    for name, changes in CHANGES.items():
        gains = {rated: 1000 * (r - unchanged[rated]) for rated, r in agreement(changes).items()}
        if any(gains.values()):
            mean, low, high = mean_and_ends([*filter(None, by_kind(gains))])
            cells = [f"{np.mean(values):+.0f}" if values else "" for values in by_kind(gains)]
            rows.append([name, f"{mean:+.1f} [{low:+.0f}, {high:+.0f}]", *cells])
    return markdown(rows)


def beside_parts(sets: Sets, variant: str) -> str:
    """Say on how many sets the score agrees with the ratings about as well as the best of its parts."""
    config = VARIANTS[variant]
    behind: dict[str, str] = {}
    best_of_sets = []
    for name, (rows, ratings) in sets.items():
        parts = parts_of(rows, config)
        agreement = {part: pearson(values, ratings) for part, values in parts.items() if values.std() > 0}
        best = max(agreement, key=lambda part: agreement[part])
        best_of_sets.append(agreement[best])
        if (less := agreement[best] - pearson(scores(rows, config), ratings)) > WITHIN:
            behind[name] = f"{name} ({best}, {less:.3f})"
    return (
        f"`{variant}` is within {WITHIN} of the best of its own parts, or above, on {len(sets) - len(behind)} of "
        f"{len(sets)} sets; the mean of these best is {np.mean(best_of_sets):.3f}. Behind: "
        f"{', '.join(behind.values())}."
    )


def parts_of(rows: Sequence[Features], config: PlusConfig) -> dict[str, Floats]:
    """Return the values of single terms, larger is better, for each row."""
    parts: dict[str, Callable[[Features], float]] = {
        "token recall": lambda row: max(row.recalls),
        "cosine": lambda row: max(row.reference_cosines, default=0.0),
        "context": lambda row: row.context_cosine or 0.0,
        "likelihood": lambda row: likelihood(row, config),
        "repetition": lambda row: -repetition(replace(row.row, task="text"), config),
        "support": lambda row: row.support or 0.0,
        "contradiction": lambda row: -(row.contradicted_share or 0.0),
    }
    if not config.likelihood_weight:
        del parts["likelihood"]
    return {name: np.array([part(row) for row in rows]) for name, part in parts.items()}


def rehearsal(sets: Sets, variant: str) -> tuple[str, float]:
    """Write r on each kind with constants chosen on the other kinds, and return its mean over sets, too."""
    config = VARIANTS[variant]

    def agreement(kinds: Sequence[str], changes: Changes) -> list[float]:
        names = [name for kind in kinds for name in KINDS[kind] if name in sets]
        return [pearson(scores(sets[name][0], config, **changes), sets[name][1]) for name in names]

    def mean_of_kinds(kinds: Sequence[str], changes: Changes) -> float:
        return float(np.mean([np.mean(found) for kind in kinds if (found := agreement([kind], changes))]))

    rows = [[f"`{variant}`, kind left out", "chosen on the others", "as it is", "R + .5 C", "changed"]]
    left_out: list[float] = []
    for kind in KINDS:
        others = [other for other in KINDS if other != kind]
        best = choose(lambda changes, kinds=others: mean_of_kinds(kinds, changes))  # type: ignore[misc]
        values = [agreement([kind], changes) for changes in (best, {}, PLAIN)]
        if not values[0]:
            continue
        left_out += values[0]
        changed = ", ".join(f"{name} {value}" for name, value in best.items() if value != CHOICES[name][0])
        rows.append([kind, *(f"{np.mean(rs):.3f}" for rs in values), changed or "nothing"])
    return markdown(rows), float(np.mean(left_out))


def choose(mean: Callable[[Changes], float]) -> dict[str, float]:
    """Choose the values of :data:`CHOICES` that maximise ``mean``, one constant after the other."""
    best: dict[str, float] = {}
    for name, values in CHOICES.items():
        means = {value: mean({**best, name: value}) for value in values}
        best[name] = max(means, key=lambda value: means[value])
    return best


def mean_and_ends(kinds: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the mean over all sets, and both ends of its 95 % interval from resamples of whole kinds."""
    rng = np.random.default_rng(0)
    means = [
        np.concatenate([kinds[index] for index in rng.integers(0, len(kinds), len(kinds))]).mean()
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(np.concatenate(kinds).mean()), float(low), float(high)


if __name__ == "__main__":
    main()
