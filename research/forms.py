"""Forms of the score, compared on kept features (``research/features.py``); no model is called.

    python -m research.forms choice FEATURES.jsonl...    constants chosen on other sets than they are reported on
    python -m research.forms ablation FEATURES.jsonl...  what each term brings, with 95 % intervals
    python -m research.forms attacks FEATURES.jsonl...   attacks that score below their originals
    python -m research.forms tradeoff FEATURES.jsonl...  agreement, length and attacks on one set (--set)
    python -m research.forms residuals FEATURES.jsonl... what the ranks that are wrong have in common

All correlations are Pearson's with the ratings; of the sets named by ``--within-groups`` within groups.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import print as rich_print
from rich.table import Table

from mars_score.meta.sweeps import choose
from mars_score.similarity.aggregation import combine_augmentations
from mars_score.similarity.score import CONTEXT_WORDS, LIKELIHOOD_WORDS
from mars_score.stats.correlation import correlation
from mars_score.stats.draws import Interval, draw_groups, resample
from mars_score.stats.levels import statistic_of
from mars_score.stats.rated import Rated

Floats = NDArray[np.float64]
RESAMPLES = 1000


@dataclass(frozen=True)
class FeatureSet:
    """The features of a rated set: its items, and its attacks by name."""

    name: str
    level: str
    rows: Sequence[dict[str, Any]]
    attacks: dict[str, list[dict[str, Any]]]

    @cached_property
    def items(self) -> Columns:
        """Of the items."""
        return Columns(self.rows)

    def pearson(self, scores: Floats, ratings: Floats | None = None) -> float:
        """With the ratings at the set's level."""
        found = correlation(
            scores,
            [row["rating"] for row in self.rows] if ratings is None else ratings,
            level=self.level,  # type: ignore[arg-type]
            groups=[row["group"] for row in self.rows],
        )
        return found.value

    def resampled(self, scores: Floats) -> Floats:
        """The correlation in each resample of groups; the same resamples for all scores."""
        ratings, groups = [row["rating"] for row in self.rows], [row["group"] for row in self.rows]
        rated = Rated.of(scores, ratings, self.level, "pearson", groups, None)  # type: ignore[arg-type]
        return resample([statistic_of(rated)], draw_groups(rated.group_count), len(rated.scores), RESAMPLES, 0)[0]

    def share_below(self, form: Form, attack: str) -> float:
        """The share of attacks that score below the candidates that they were made from."""
        attacked = self.attacks.get(attack, [])
        if not attacked:
            return np.nan
        originals = {row["item"]: score for row, score in zip(self.rows, form(self.items), strict=True)}
        before = np.array([originals[row["item"]] for row in attacked])
        return float((before > form(Columns(attacked))).mean())


class Columns:
    """Features of rows as arrays, (rows,); blank candidates have 0 everywhere."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> Floats:
        return np.array([row.get(name) or 0.0 for row in self._rows])

    def has(self, name: str) -> NDArray[np.bool_]:
        """In which rows the feature is defined."""
        return np.array([row.get(name) is not None for row in self._rows])

    def references(self, name: str, how: str) -> Floats:
        """Of ``recalls``, ``precisions`` or ``cosines``, by a name of ``_HOWS``."""
        return np.array([max((_HOWS[how](one) for one in row.get(name, [])), default=0.0) for row in self._rows])

    def f1(self) -> Floats:
        """Of the human reference."""
        recall, precision = self.references("recalls", "first"), self.references("precisions", "first")
        positive = (recall > 0) & (precision > 0)
        return np.where(positive, 2 * recall * precision / np.where(positive, recall + precision, 1), 0.0)


_HOWS: dict[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "best": lambda values: (values[0] + max(values)) / 2,
    "weighted": lambda values: combine_augmentations(values, "weighted", 0.8),
    "largest": max,
    "mean": lambda values: sum(values) / len(values),
}
Form = Callable[[Columns], Floats]


def credit(columns: Columns) -> Floats:
    """What is left of the context's share after the discount for copying."""
    return np.asarray(1 - columns["copied"] * np.maximum(0, 1 - 2 * columns["references_nearest"]))


def mixed(
    references: Form, context: str, weight: float = 0.5, half: float = CONTEXT_WORDS, *, discount: bool = True
) -> Form:
    """References and context, with the shares of variant v2."""

    def form(columns: Columns) -> Floats:
        words, near = columns["reference_words"], columns[context]
        share = np.where(columns.has(context), weight * words / (words + half) if half else weight, 0.0)
        return np.asarray((1 - share) * references(columns) + share * near * (credit(columns) if discount else 1))

    return form


def likely(
    base: Form,
    weight: float = 0.15,
    half: float = LIKELIHOOD_WORDS,
    alone: float = 0.5,
    lift: float = 1.0,
    *,
    discount: bool = True,
) -> Form:
    """A form and the likelihood, with the weight of variant v2-lm."""

    def form(columns: Columns) -> Floats:
        words = columns["reference_words"]
        share = words**2 / (words**2 + half**2) if half else 1.0
        lifts = (columns["given_context"] - columns["alone"]) * (credit(columns) if discount else 1)
        return np.asarray(base(columns) + weight * share * (alone * columns["alone"] + lift * lifts))

    return form


def recall(how: str = "best") -> Form:
    """Token recall."""
    return lambda columns: columns.references("recalls", how)


def cosine(how: str = "best") -> Form:
    """Cosine of sentence vectors."""
    return lambda columns: columns.references("cosines", how)


NEAREST, WHOLE = "context_nearest", "context_whole"
V1, V2 = cosine(), mixed(recall(), NEAREST)
V2_LM = likely(V2)
TRIVIAL: dict[str, Form] = {
    "reference, cosine": cosine("first"),
    "reference, token recall": recall("first"),
    "reference, token F1": Columns.f1,
    "context, cosine (cut)": lambda columns: columns[WHOLE],
    "context, nearest part": lambda columns: columns[NEAREST],
    "-perplexity given context (lm)": lambda columns: -np.exp(-columns["given_context"]),
    "-perplexity (lm)": lambda columns: -np.exp(-columns["alone"]),
    "length": lambda columns: columns["candidate_words"],
}
# Below the form with which each is compared.
ABLATIONS: dict[str, tuple[Form, dict[str, Form]]] = {
    "v2": (
        V2,
        {
            "without the context": recall(),
            "without augmentations": mixed(recall("first"), NEAREST),
            "augmentations weigh alike": mixed(recall("mean"), NEAREST),
            "the best match alone": mixed(recall("largest"), NEAREST),
            "cosines for token recall": mixed(cosine(), NEAREST),
            "F1 for token recall": mixed(Columns.f1, NEAREST),
            "the context whole (cut)": mixed(recall(), WHOLE),
            "the context's share the same for all": mixed(recall(), NEAREST, 0.4, 0),
            "copying at no discount": mixed(recall(), NEAREST, discount=False),
            "context alone": lambda columns: columns[NEAREST],
            "v1": V1,
        },
    ),
    "v2-lm": (
        V2_LM,
        {
            "without the likelihood (v2)": V2,
            "log p(candidate | context) alone": likely(V2, 0.1, alone=1),
            "its lift alone": likely(V2, 0.15, alone=0),
            "copying at no discount": likely(mixed(recall(), NEAREST, discount=False), discount=False),
            "the weight the same for all": likely(V2, 0.05, 0),
            "without the context term": likely(recall()),
            "without augmentations": likely(mixed(recall("first"), NEAREST)),
            "cosines for token recall": likely(mixed(cosine(), NEAREST)),
        },
    ),
}


def grids() -> dict[str, dict[str, Form]]:
    """The constants that were chosen, two a form, with their alternatives."""
    context = product((0.2, 0.3, 0.4, 0.5, 0.6), (0, 1, 2, 3, 5, 10))
    likelihood = product((0.05, 0.1, 0.15, 0.2, 0.3), (10, 15, 20, 25, 30))
    return {
        "v2": {f"{weight:g}, {half} words": mixed(recall(), NEAREST, weight, half) for weight, half in context},
        "v2-lm": {f"{weight:g}, {half} words": likely(V2, weight, half) for weight, half in likelihood},
    }


def choice(sets: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """Each set with the constants that are best on the others."""
    table = _table("form", *(one.name for one in sets), "mean")
    fixed = {"v1": V1, "the paper's weights": cosine("weighted"), "v2": V2, "v2-lm": V2_LM, **TRIVIAL}
    for name, form in _with_likelihood(sets, fixed).items():
        _add(table, name, [one.pearson(form(one.items)) for one in sets])
    for name, forms in _with_likelihood(sets, grids()).items():
        figures = {key: {one.name: one.pearson(form(one.items)) for one in sets} for key, form in forms.items()}
        chosen = choose(figures)
        _add(table, f"{name}, left-out sets ({len(forms)} forms)", [chosen.left_out[one.name][1] for one in sets])
        table.add_row("", *(chosen.left_out[one.name][0] for one in sets), f"all: {chosen.best}")
    _show(table, args)


def ablation(sets: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """Differences of the mean over sets."""
    for name, (whole, others) in _with_likelihood(sets, ABLATIONS).items():
        table = _table(f"{name} ...", *(one.name for one in sets), "mean", "difference [95 %]")
        of_whole = np.mean([one.resampled(whole(one.items)) for one in sets], axis=0)
        figures = [one.pearson(whole(one.items)) for one in sets]
        _add(table, name, figures, "")
        for other, form in others.items():
            values = [one.pearson(form(one.items)) for one in sets]
            drawn = of_whole - np.mean([one.resampled(form(one.items)) for one in sets], axis=0)
            interval = Interval.of(drawn, 0.95)
            difference = np.mean(figures) - np.mean(values)
            _add(table, other, values, f"{difference:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]")
        _show(table, args)


def attacks(sets: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """Shares of attacks below their originals."""
    for attack in ("reorder", "retrieve"):
        table = _table(attack, *(one.name for one in sets), "mean")
        forms = {
            "v1": V1,
            "v2": V2,
            "v2, no discount": mixed(recall(), NEAREST, discount=False),
            "v2-lm": V2_LM,
            "v2-lm, no discount": likely(mixed(recall(), NEAREST, discount=False), discount=False),
        }
        for name, form in _with_likelihood(sets, forms).items():
            _add(table, name, [one.share_below(form, attack) for one in sets])
        _show(table, args)


def tradeoff(sets: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """One set under larger and larger weights."""
    (data,) = (one for one in sets if one.name == args.set)
    table = _table("context, likelihood", "r", "r without length", "reorder", "retrieve")
    points: dict[float, list[tuple[float, float, float]]] = {}
    likelihoods = (0.0, 0.1, 0.15, 0.3) if _likelihood_in(sets) else (0.0,)
    for likelihood, context in product(likelihoods, (0.0, 0.25, 0.5, 0.75, 1.0)):
        form = likely(mixed(recall(), NEAREST, context), likelihood)
        scores, length = form(data.items), np.log1p(data.items["candidate_words"])
        r, with_length = data.pearson(scores), data.pearson(scores, length)
        of_length = data.pearson(length)
        partial = (r - with_length * of_length) / np.sqrt((1 - with_length**2) * (1 - of_length**2))
        reorder, retrieve = (data.share_below(form, attack) for attack in ("reorder", "retrieve"))
        values = (f"{value:.3f}" for value in (r, partial, reorder, retrieve))
        table.add_row(f"{context:g}, {likelihood:g}", *values)
        points.setdefault(likelihood, []).append((r, reorder, retrieve))
    _show(table, args)
    if args.plot:
        _plot(points, args.plot)


def _plot(points: dict[float, list[tuple[float, float, float]]], file: str) -> None:
    """Agreement against attacks that fail, one line a likelihood weight."""
    from matplotlib.figure import Figure

    from mars_score.report.charts import chart_settings

    with chart_settings():
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        for axes, name, column in zip(figure.subplots(1, 2), ("Reorder", "Retrieve"), (1, 2), strict=True):
            for likelihood, of_weight in points.items():
                axes.plot(
                    [one[0] for one in of_weight],
                    [one[column] for one in of_weight],
                    marker="o",
                    label=f"likelihood {likelihood:g}",
                )
            axes.axhline(0.95, color="0.6", linestyle=":")
            axes.axvline(0.6, color="0.6", linestyle=":")
            axes.set(xlabel="Pearson's r with the ratings", ylabel="share below the original", title=name)
        axes.legend()
        figure.savefig(file, dpi=120, metadata={"Software": None} if file.endswith("png") else None)


def residuals(sets: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """Correlation of what the score leaves (ratings minus their regression on it) with plain features."""
    features: dict[str, Form] = {
        "candidate words": lambda columns: columns["candidate_words"],
        "reference words": lambda columns: columns["reference_words"],
        "recall": recall(),
        "precision": lambda columns: columns.references("precisions", "first"),
        "cosine with reference": cosine("first"),
        "cosine with context": lambda columns: columns[NEAREST],
        "log p given context": lambda columns: columns["given_context"],
        "lift": lambda columns: columns["given_context"] - columns["alone"],
    }
    form = V2_LM if _likelihood_in(sets) else V2
    table = _table("feature", *(one.name for one in sets), "mean")
    left = {one.name: _residual(form(one.items), np.array([row["rating"] for row in one.rows])) for one in sets}
    for name, feature in features.items():
        _add(table, name, [one.pearson(feature(one.items), left[one.name]) for one in sets])
    _show(table, args)


def _residual(scores: Floats, ratings: Floats) -> Floats:
    slope, intercept = np.polyfit(scores, ratings, 1)
    return np.asarray(ratings - slope * scores - intercept)


def _likelihood_in(sets: Sequence[FeatureSet]) -> bool:
    return all(any("alone" in row for row in one.rows) for one in sets)


def _with_likelihood(sets: Sequence[FeatureSet], forms: dict[str, Any]) -> dict[str, Any]:
    """The forms that these features allow."""
    return {name: form for name, form in forms.items() if "lm" not in name or _likelihood_in(sets)}


def _table(*headings: str) -> Table:
    table = Table()
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _show(table: Table, args: argparse.Namespace) -> None:
    """On the terminal, or as Markdown."""
    if not args.markdown:
        rich_print(table)
        return
    names = [str(column.header) for column in table.columns]
    rows = [
        names,
        ["---", *("---:" for _ in names[1:])],
        *zip(*(column.cells for column in table.columns), strict=True),
    ]
    for row in rows:
        print(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |")
    print()


def _add(table: Table, name: str, values: Sequence[float], *more: str) -> None:
    defined = [value for value in values if not np.isnan(value)]
    mean = f"{np.mean(defined):.3f}" if defined else "n/a"
    table.add_row(name, *("n/a" if np.isnan(value) else f"{value:.3f}" for value in values), mean, *more)


def read(files: Sequence[str], within: Sequence[str]) -> list[FeatureSet]:
    """The sets of some files of features."""
    by_set: dict[str, list[dict[str, Any]]] = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                by_set.setdefault(row["set"], []).append(row)
    return [
        FeatureSet(
            name,
            "within_groups" if name in within else "items",
            [row for row in rows if row["attack"] is None],
            {
                attack: [row for row in rows if row["attack"] == attack]
                for attack in dict.fromkeys(row["attack"] for row in rows if row["attack"])
            },
        )
        for name, rows in by_set.items()
    ]


COMMANDS = {one.__name__: one for one in (choice, ablation, attacks, tradeoff, residuals)}


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("table", choices=COMMANDS)
    options.add_argument("files", nargs="+", metavar="FEATURES.jsonl")
    options.add_argument("--within-groups", default="qa_feedback", metavar="SET,...")
    options.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options.add_argument("--set", default="newsroom", help="of the table tradeoff")
    options.add_argument("--plot", metavar="FILE.png", help="draw the table tradeoff")
    args = options.parse_args()
    COMMANDS[args.table](read(args.files, args.within_groups.split(",")), args)


if __name__ == "__main__":
    main()
