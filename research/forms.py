"""Forms of the score, compared on stored features (``research/features.py``); no model is called.

    python -m research.forms choice FEATURES.jsonl...     constants chosen on other sets than they are reported on
    python -m research.forms parts FEATURES.jsonl...      the score against the best of its own parts, by set
    python -m research.forms ablation FEATURES.jsonl...   what each term adds, with 95 % intervals
    python -m research.forms attacks FEATURES.jsonl...    attacks that score below their originals

All correlations are Pearson's with the ratings; for the sets named by ``--within-groups``, within groups.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import RUN_WORDS
from mars_score.meta.sweeps import choose
from mars_score.scoring.form import form_of
from mars_score.scoring.terms import combine_augmentations
from mars_score.settings.fields import UNSAMPLED_TASKS
from mars_score.stats.correlation import at_level, correlation
from mars_score.stats.draws import Interval
from mars_score.stats.resampling import resampled_pearson

PLUS_FORM = form_of("plus")
Floats = NDArray[np.float64]
RESAMPLES = 1000
AUGMENTED: dict[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "best": lambda values: (values[0] + max(values)) / 2,
    "weighted": lambda values: combine_augmentations(values, "weighted", 0.8),
    "largest": max,
}


class Columns:
    """Features of rows as arrays, (rows,); blank candidates have 0 everywhere."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> Floats:
        return np.array([row.get(name) or 0.0 for row in self._rows])

    def has(self, name: str) -> Floats:
        """1 where the feature is there, else 0."""
        return np.array([1.0 if row.get(name) not in (None, []) else 0.0 for row in self._rows])

    def task(self, *names: str) -> Floats:
        """1 where the task is one of these, else 0."""
        return np.array([1.0 if row["task"] in names else 0.0 for row in self._rows])

    def references(self, name: str, how: str) -> Floats:
        """The best reference by ``recalls``, ``precisions`` or ``cosines``; ``how``: a name of ``AUGMENTED``."""
        return self._reduced(name, lambda references: max(AUGMENTED[how](one) for one in references))

    def count(self, name: str) -> Floats:
        """The length of a list."""
        return np.array([float(len(row.get(name) or ())) for row in self._rows])

    def mean(self, name: str, most: int | None = None) -> Floats:
        """The mean of a list, or of its first ``most``; 0 where it is empty."""
        return self._reduced(name, lambda values: float(np.mean(values[:most])))

    def largest(self, name: str, most: int | None = None) -> Floats:
        """The largest of a list, or of its first ``most``; 0 where it is empty."""
        return self._reduced(name, lambda values: max(values[:most]))

    def _reduced(self, name: str, reduce: Callable[[Sequence[Any]], float]) -> Floats:
        return np.array([reduce(row[name]) if row.get(name) else 0.0 for row in self._rows])

    def read_by_language_model(self) -> Floats:
        """1 where "plus" reads the candidate: not in a dialogue, nor after a question that is a single line."""
        question = self.task("answer") * (self["context_lines"] == 1)
        return np.where(question > 0, 0.0, 1 - self.task("dialogue"))

    def copied_in_dialogue(self) -> Floats:
        """What copying from the context adds to the repetition of words."""
        counts = self.task("dialogue") * (self["candidate_words"] >= RUN_WORDS)
        return counts * np.minimum(self["copied"], 1 - self["repetition"])

    def f1(self) -> Floats:
        """Token F1 with the human reference."""
        recall, precision = self.references("recalls", "first"), self.references("precisions", "first")
        total = recall + precision
        return np.where(total > 0, 2 * recall * precision / np.where(total > 0, total, 1), 0.0)


@dataclass(frozen=True)
class Form:
    """The score with its constants, on arrays; by default "fast" with samples. A constant of 0 omits its term.

    Attributes:
        matching: ``"recalls"`` or ``"cosines"``.
        infills: how infilled references count, a name of ``AUGMENTED``.
        context: largest weight of the context.
        half: words of a reference at which context and samples have half of their largest weights; 0: no rise.
        adaptive: whether context and samples lose weight where the references say the same as the context, and
            where the context is a question or data.
        best: share of the way to the best sample, in a dialogue and elsewhere.
        samples: weight of the mean cosine with the samples, in a dialogue and elsewhere.
        most: how many of the samples count, the first ones; None: all.
        expected: weight of the samples' own similarity with the references, which is subtracted.
        likelihood: largest weight of the likelihood.
        likelihood_half: words of a reference at which it has half of that.
        alone: weight of the log probability without context in the likelihood, beside the lift's.
        lift: limit of the lift in the likelihood.
        repetition: weight of the candidate's repetition of words, which is subtracted.
        copied: weight of the words that it copies from the context in a dialogue, likewise.
        data: weight of the cosine with the reference, beside token recall, where the context is data.
    """

    matching: str = "recalls"
    infills: str = "first"
    context: float = 0.5
    half: float = PLUS_FORM.context_words
    adaptive: bool = True
    best: tuple[float, float] = (PLUS_FORM.best_sample_in_dialogue, PLUS_FORM.best_sample)
    samples: tuple[float, float] = (0.2 * PLUS_FORM.mean_sample_in_dialogue, 0.2 * PLUS_FORM.mean_sample)
    most: int | None = None
    expected: float = 0.0
    likelihood: float = 0.0
    likelihood_half: float = PLUS_FORM.likelihood_words
    alone: float = 0.5
    lift: float = PLUS_FORM.lift_limit
    repetition: float = 0.3
    copied: float = 0.3
    data: float = PLUS_FORM.data_sentences

    def __call__(self, columns: Columns) -> Floats:
        """Scores, (rows,)."""
        return np.sum([value * weight for value, weight in self.terms(columns).values()], axis=0)  # type: ignore[no-any-return]

    def terms(self, columns: Columns) -> dict[str, tuple[Floats, Floats]]:
        """The values and weights of the terms, (rows,) each; 0 where a row lacks the term."""
        words, value = columns["reference_words"], columns.references(self.matching, self.infills)
        unsampled = columns.task(*UNSAMPLED_TASKS) if self.adaptive else 0.0
        has_context = columns.has("context_nearest") * (1 - unsampled)
        share = words / (words + self.half) if self.half else 1.0
        if self.adaptive:
            openness = np.clip(
                (PLUS_FORM.same - columns.mean("closeness")) / (PLUS_FORM.same - PLUS_FORM.close), 0, 1
            )
            share = share * np.where(has_context > 0, openness, 1.0)
        weight = self.context * share * has_context
        is_data = columns.task("data") * columns.has("context_nearest")
        of_data = self.data * is_data if self.adaptive else 0.0 * words
        drawn = columns.has("sample_recalls")
        of_samples = share / np.maximum(columns.count("recalls"), 1) * drawn
        best = columns.largest("sample_recalls" if self.matching == "recalls" else "sample_cosines", self.most)
        dialogue = columns.task("dialogue") > 0
        value = value + np.where(dialogue, *self.best) * of_samples * np.maximum(0, best - value)
        found: dict[str, tuple[Any, Any]] = {
            "references": (value, 1 - weight - of_data),
            "sentences": (columns.references("cosines", "first") * is_data, of_data),
            "context": (columns["context_nearest"] * has_context, weight),
            "samples": (columns.mean("sample_cosines", self.most), np.where(dialogue, *self.samples) * of_samples),
            "expected": (columns.mean("expected"), -self.expected * drawn),
            "repetition": (columns["repetition"], np.full(len(words), -self.repetition)),
            "copied": (columns.copied_in_dialogue(), np.full(len(words), -self.copied)),
        }
        if self.likelihood:
            share = words**2 / (words**2 + self.likelihood_half**2) if self.likelihood_half else 1.0
            lift = np.minimum(columns["given_context"] - columns["alone"], self.lift)
            if self.adaptive:
                share = share * columns.read_by_language_model()
            likelihood = self.alone * columns["alone"] + lift
            found["likelihood"] = likelihood, self.likelihood * share
        known = 1 - columns["blank"]
        return {name: (value * known, weight) for name, (value, weight) in found.items()}


NONE = (0.0, 0.0)
V3 = Form()
V3_LM = replace(V3, likelihood=0.15)
PLUS, FAST = replace(V3_LM, best=NONE, samples=NONE), replace(V3, best=NONE, samples=NONE)
VARIANTS = {"plus": PLUS, "fast": FAST}
PARTS: dict[str, Callable[[Columns], Floats]] = {
    "reference, token recall": lambda columns: columns.references("recalls", "first"),
    "reference, cosine": lambda columns: columns.references("cosines", "first"),
    "context, nearest part": lambda columns: columns["context_nearest"],
}
OTHERS: dict[str, Callable[[Columns], Floats]] = {
    "reference, token F1": Columns.f1,
    "samples, mean cosine": lambda columns: columns.mean("sample_cosines"),
    "samples, best recall": lambda columns: columns.largest("sample_recalls"),
    "log p given context (lm)": lambda columns: columns["given_context"],
    "log p (lm)": lambda columns: columns["alone"],
    "length": lambda columns: columns["candidate_words"],
}
ABLATIONS: dict[str, tuple[Form, dict[str, Form]]] = {
    "fast and samples": (
        V3,
        {
            "without samples": replace(V3, best=NONE, samples=NONE),
            **{f"with {most} of the samples": replace(V3, most=most) for most in (1, 2)},
            "the same in a dialogue as elsewhere": replace(V3, best=V3.best[1:] * 2, samples=V3.samples[1:] * 2),
            "elsewhere the same as in a dialogue": replace(V3, best=V3.best[:1] * 2, samples=V3.samples[:1] * 2),
            "without the best sample": replace(V3, best=NONE),
            "without the mean cosine with the samples": replace(V3, samples=NONE),
            "minus what the samples reach": replace(V3, expected=0.2),
            "with infills": replace(V3, infills="best"),
            "infills instead of samples": replace(V3, infills="best", best=NONE, samples=NONE),
            "without the context": replace(V3, context=0),
            "weights not adaptive": replace(V3, adaptive=False),
            "weights the same for all lengths": replace(V3, half=0),
            "without repetition": replace(V3, repetition=0, copied=0),
            "copying in a dialogue is no repetition": replace(V3, copied=0),
            "repetition at a penalty of .4": replace(V3, repetition=0.4),
            "cosines instead of token recall": replace(V3, matching="cosines"),
            "token recall alone where the context is data": replace(V3, data=0),
        },
    ),
    "plus and samples": (
        V3_LM,
        {
            "without the likelihood": V3,
            "log p(candidate given context) alone": replace(V3_LM, likelihood=0.1, alone=1),
            "its lift alone": replace(V3_LM, alone=0),
            "the lift without limit": replace(V3_LM, lift=np.inf),
            "without samples": replace(V3_LM, best=NONE, samples=NONE),
            "without repetition": replace(V3_LM, repetition=0, copied=0),
        },
    ),
}


def grids() -> dict[str, dict[str, Form]]:
    """The constants that were chosen, with their alternatives."""
    samples = list(product((0.0, 0.5, 1.0), (0.0, 0.1, 0.2, 0.3)))
    context = product((0.3, 0.4, 0.5, 0.6), (1, 3, 5))
    likelihood = product((0.05, 0.1, 0.15, 0.2), (10, 20, 30))
    return {
        "fast and samples, samples": {
            f"{b:g} {s:g}, {c:g} {t:g}": replace(V3, best=(b, c), samples=(s, t))
            for (b, s), (c, t) in product(samples, samples)
        },
        "fast and samples, context": {f"{w:g}, {half}": replace(V3, context=w, half=half) for w, half in context},
        "fast and samples, repetition": {
            f"{w:g}": replace(V3, repetition=w) for w in (0, 0.1, 0.2, 0.3, 0.4, 0.6)
        },
        "fast and samples, copying": {f"{w:g}": replace(V3, copied=w) for w in (0, 0.1, 0.2, 0.3, 0.4)},
        "fast and samples, data": {f"{w:g}": replace(V3, data=w) for w in (0, 0.25, 0.5, 0.75, 1)},
        "plus and samples": {
            f"{w:g}, {half}": replace(V3_LM, likelihood=w, likelihood_half=half) for w, half in likelihood
        },
        "plus and samples, limit": {f"{one:g}": replace(V3_LM, lift=one) for one in (1.5, 2, 2.5, 3, 4, np.inf)},
    }


@dataclass(frozen=True)
class FeatureSet:
    """The features of a rated set: its items, and its attacks by name."""

    name: str
    level: str
    rows: Sequence[dict[str, Any]]
    attacks: dict[str, list[dict[str, Any]]]

    @cached_property
    def items(self) -> Columns:
        """The features of the items."""
        return Columns(self.rows)

    def pearson(self, scores: Floats) -> float:
        """With the ratings at the set's level."""
        ratings, groups = [row["rating"] for row in self.rows], [row["group"] for row in self.rows]
        return correlation(scores, ratings, level=self.level, groups=groups).value  # type: ignore[arg-type]

    def resampled(self, scores: Floats) -> Floats:
        """The correlation in each resample of groups; the same resamples for all scores."""
        ratings, groups = [row["rating"] for row in self.rows], [row["group"] for row in self.rows]
        items = at_level(scores, ratings, self.level, groups=groups)  # type: ignore[arg-type]
        return resampled_pearson(items, RESAMPLES)

    def share_below(self, form: Form, attack: str) -> float:
        """The share of attacks that score below the candidates that they were made from."""
        attacked = self.attacks.get(attack, [])
        if not attacked:
            return np.nan
        originals = {row["item"]: score for row, score in zip(self.rows, form(self.items), strict=True)}
        before = np.array([originals[row["item"]] for row in attacked])
        return float((before > form(Columns(attacked))).mean())


def choice(sets: Sequence[FeatureSet]) -> None:
    """Each set with the constants that are best on the others."""
    fixed = _allowed(sets, {**VARIANTS, **PARTS, **OTHERS})
    rows: list[tuple[str, Sequence[Any]]] = [(name, _figures(sets, form)) for name, form in fixed.items()]
    for name, forms in _allowed(sets, grids()).items():
        figures = {key: {one.name: one.pearson(form(one.items)) for one in sets} for key, form in forms.items()}
        chosen = choose(figures)
        left_out = [chosen.left_out[one.name] for one in sets]
        rows.append((f"{name}: left-out sets, {len(forms)} forms", [value for _, value in left_out]))
        rows.append((f"chosen (all sets: {chosen.best})", [constants for constants, _ in left_out]))
    _print("form", sets, rows)


def parts(sets: Sequence[FeatureSet]) -> None:
    """The score minus the best of its own parts."""
    of_parts = np.array([_figures(sets, form) for form in PARTS.values()])
    rows: list[tuple[str, Sequence[Any]]] = [("best part", list(of_parts.max(axis=0)))]
    for name, form in _allowed(sets, VARIANTS).items():
        figures = np.array(_figures(sets, form))
        rows += [
            (name, list(figures)),
            (f"{name} - best part", list(figures - of_parts.max(axis=0))),
        ]
    _print("form", sets, rows)


def ablation(sets: Sequence[FeatureSet]) -> None:
    """Differences of the mean over sets."""
    for name, (whole, others) in _allowed(sets, ABLATIONS).items():
        of_whole = np.mean([one.resampled(whole(one.items)) for one in sets], axis=0)
        figures = _figures(sets, whole)
        rows: list[tuple[str, Sequence[Any]]] = [(name, [*figures, ""])]
        for other, form in _allowed(sets, others).items():
            values = _figures(sets, form)
            drawn = of_whole - np.mean([one.resampled(form(one.items)) for one in sets], axis=0)
            interval = Interval.of(drawn, 0.95)
            difference = np.mean(figures) - np.mean(values)
            rows.append((other, [*values, f"{difference:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"]))
        _print(f"{name} ...", sets, rows, "difference [95 %]")


def attacks(sets: Sequence[FeatureSet]) -> None:
    """Shares of attacks below their originals."""
    forms = {
        **VARIANTS,
        "plus and samples, the lift without limit": replace(V3_LM, lift=np.inf),
        "fast and samples, copying in a dialogue is no repetition": replace(V3, copied=0),
    }
    for name in ("reorder", "retrieve"):
        attacked = [replace(one, rows=one.attacks[name]) for one in sets if name in one.attacks]
        rows = [
            (form_name, [one.share_below(form, name) for one in sets])
            for form_name, form in _allowed(attacked, forms).items()
        ]
        _print(name, sets, rows)


def _figures(sets: Sequence[FeatureSet], form: Callable[[Columns], Floats]) -> list[float]:
    return [one.pearson(form(one.items)) for one in sets]


def _allowed(sets: Sequence[FeatureSet], forms: Mapping[str, Any]) -> dict[str, Any]:
    """The forms that these features allow: "lm" in a name needs the likelihood, "infills" the infills."""
    rows = [one.rows for one in sets]
    there = {
        "lm": all(any("alone" in row for row in of_set) for of_set in rows),
        "infills": any(len(texts) > 1 for of_set in rows for row in of_set for texts in row.get("recalls", ())),
    }
    return {
        name: form for name, form in forms.items() if all(has or need not in name for need, has in there.items())
    }


def _print(
    heading: str, sets: Sequence[FeatureSet], rows: Sequence[tuple[str, Sequence[Any]]], *more: str
) -> None:
    """A Markdown table with the mean over the sets."""
    print(f"| {' | '.join([heading, *(one.name for one in sets), 'mean', *more])} |")
    print(f"| --- |{' ---: |' * (len(sets) + 1 + len(more))}")
    for name, values in rows:
        of_sets = values[: len(sets)]
        numbers = [value for value in of_sets if isinstance(value, float) and not np.isnan(value)]
        mean = f"{np.mean(numbers):.3f}" if numbers else ""
        shown = [
            value if isinstance(value, str) else "n/a" if np.isnan(value) else f"{value:.3f}" for value in of_sets
        ]
        print(f"| {' | '.join([name, *shown, mean, *map(str, values[len(sets) :])])} |")
    print()


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


COMMANDS = {one.__name__: one for one in (choice, parts, ablation, attacks)}


def options_of(doc: str | None, tables: Iterable[str] = ()) -> argparse.ArgumentParser:
    """The command line of what is made from files of features, here and in other modules.

    Args:
        doc: the module's.
        tables: that can be asked for; none: there is only one.
    """
    options = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    if tables:
        options.add_argument("table", choices=tables)
    options.add_argument("files", nargs="+", metavar="FEATURES.jsonl")
    options.add_argument(
        "--within-groups", type=lambda text: text.split(","), default=["qa_feedback"], metavar="SET,..."
    )
    return options


def main() -> None:
    """Print a table."""
    args = options_of(__doc__, COMMANDS).parse_args()
    COMMANDS[args.table](read(args.files, args.within_groups))


if __name__ == "__main__":
    main()
