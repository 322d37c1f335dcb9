"""Scores without references, compared on stored features (``research/features.py``); no model is called.

    python -m research.reference_free sets FEATURES.jsonl...        every form on every set, and constants left out
    python -m research.reference_free attacks FEATURES.jsonl...     attacks that score below their originals
    python -m research.reference_free aspects FEATURES.jsonl --ratings SET.jsonl    Spearman's rho by aspect

Correlations are Pearson's with the ratings but for those by aspect. Forms with a likelihood ("lm") are shown where
all files have one (made with ``--likelihood``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import rankdata

from mars_score.data.rated import read_rated_set
from mars_score.meta.sweeps import choose
from mars_score.scoring.form import form_of
from mars_score.settings.presets import VARIANTS, WITHOUT_REFERENCES
from mars_score.stats.draws import Interval
from research.forms import Columns, FeatureSet, Floats, _allowed, _figures, _print, options_of, read

LIKELIHOOD = VARIANTS["plus"]["likelihood_weight"]


@dataclass(frozen=True)
class Free:
    """The score without references, on arrays; by default variant free.

    Attributes:
        samples: weight of the samples; the context has the rest.
        best: weight of the best sample's recall against the mean cosine.
        typical: similarity with the samples where there are none.
        likelihood: weight of the likelihood.
        repetition: weight of the candidate's repetition of words, which is subtracted.
    """

    samples: float = WITHOUT_REFERENCES["sample_weight"]
    best: float = 0.5
    typical: float = form_of("plus").typical
    likelihood: float = 0.0
    repetition: float = 0.3

    def __call__(self, columns: Columns) -> Floats:
        """Scores, (rows,)."""
        drawn = (1 - self.best) * columns.mean("sample_cosines") + self.best * columns.largest("sample_recalls")
        drawn = np.where(columns.has("sample_recalls") > 0, drawn, self.typical)
        score = (1 - self.samples) * columns["context_nearest"] + self.samples * drawn
        if self.likelihood:
            lift = columns["given_context"] - columns["alone"]
            score = score + self.likelihood * (1 - columns.task("dialogue")) * (columns["alone"] / 2 + lift)
        score = score - self.repetition * columns["repetition"]
        return np.where(columns["blank"] > 0, 0.0, score)


Form = Callable[[Columns], Floats]
FORMS: dict[str, Form] = {
    "fast": Free(),
    "plus": Free(likelihood=LIKELIHOOD),
    "cosine with the context": lambda columns: columns["context_nearest"],
    "cosine with the whole context": lambda columns: columns["context_whole"],
    "samples alone": Free(samples=1.0, repetition=0),
    "fast, without repetition": Free(repetition=0),
    "-perplexity given the context (lm)": lambda columns: columns["given_context"],
    "-perplexity (lm)": lambda columns: columns["alone"],
    "length": lambda columns: columns["candidate_words"],
    "copied share": lambda columns: columns["copied"],
}
GRIDS: dict[str, dict[str, Form]] = {
    "fast": {
        f"{s:g}, {b:g}, {t:g}": Free(s, b, t)
        for s, b, t in product((0.0, 0.3, 0.4, 0.5, 0.6), (0, 0.5, 1), (0.2, 0.3, 0.4))
    },
    "plus": {f"{one:g}": Free(likelihood=one) for one in (0.0, 0.05, 0.1, 0.15, 0.2)},
}


def sets(found: Sequence[FeatureSet], _: argparse.Namespace) -> None:
    """Every form on every set, its difference to the context's cosine, and the score that length leaves."""
    forms = _allowed(found, FORMS)
    near = np.mean([one.resampled(FORMS["cosine with the context"](one.items)) for one in found], axis=0)
    of_near = float(np.mean(_figures(found, FORMS["cosine with the context"])))
    rows = []
    for name, form in forms.items():
        values = _figures(found, form)
        drawn = np.mean([one.resampled(form(one.items)) for one in found], axis=0) - near
        interval = Interval.of(drawn, 0.95)
        difference = f"{np.nanmean(values) - of_near:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
        rows.append((name, [*values, difference if name != "cosine with the context" else ""]))
    for name, grid in _allowed(found, GRIDS).items():
        figures = {key: {one.name: one.pearson(form(one.items)) for one in found} for key, form in grid.items()}
        chosen = choose(figures)
        left_out = [chosen.left_out[one.name] for one in found]
        rows.append((f"{name}: left-out sets, {len(grid)} forms", [*(value for _, value in left_out), ""]))
        rows.append((f"chosen (all sets: {chosen.best})", [*(key for key, _ in left_out), ""]))
    _print("form", found, rows, "minus the context's cosine [95 %]")


def attacks(found: Sequence[FeatureSet], _: argparse.Namespace) -> None:
    """Shares of attacks below their originals."""
    for name in ("reorder", "retrieve"):
        some = [one for one in found if one.attacks.get(name)]
        rows = []
        for label, form in _allowed(some, FORMS).items():
            rows.append((label, [one.share_below(form, name) for one in some]))
        _print(name, some, rows)


def aspects(found: Sequence[FeatureSet], args: argparse.Namespace) -> None:
    """Spearman's rho with each aspect of the ratings, and in brackets the part that length does not explain."""
    (data,) = found
    rated = read_rated_set(args.ratings).sample(len({row["group"] for row in data.rows}))
    ids = [rated.items[row["item"]].id for row in data.rows]
    with open(args.ratings, encoding="utf-8") as file:
        ratings = {row["id"]: row["ratings"] for row in map(json.loads, file)}
    length = data.items["candidate_words"]
    names = list(ratings[ids[0]])
    print(f"| {len(ids)} items | {' | '.join(names)} | length |\n| --- |{' ---: |' * (len(names) + 1)}")
    for label, form in _allowed(found, FORMS).items():
        scores = form(data.items)
        cells = []
        for name in names:
            values = np.array([ratings[one][name] for one in ids])
            cells.append(f"{_spearman(scores, values):.3f} ({_partial(scores, values, length):.3f})")
        print(f"| {' | '.join([label, *cells, f'{_spearman(scores, length):.3f}'])} |")


def _spearman(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def _partial(one: Floats, other: Floats, given: Floats) -> float:
    """Spearman's partial correlation of two variables given a third."""
    of_both, of_one, of_other = _spearman(one, other), _spearman(one, given), _spearman(other, given)
    rest = np.sqrt((1 - of_one**2) * (1 - of_other**2))
    return float((of_both - of_one * of_other) / rest) if rest > 1e-9 else 0.0


COMMANDS = {one.__name__: one for one in (sets, attacks, aspects)}


def main() -> None:
    """Print a table."""
    options = options_of(__doc__, COMMANDS)
    options.add_argument("--ratings", metavar="SET.jsonl", help="the set that the features are of")
    args = options.parse_args()
    COMMANDS[args.table](read(args.files, args.within_groups), args)


if __name__ == "__main__":
    main()
