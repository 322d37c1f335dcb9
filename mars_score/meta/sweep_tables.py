"""Tables of MARS's settings (the paper's Table 5): recombined similarities, and runs of the language model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.meta.sweeps import COMBINATIONS, QS, Choice, Combination, choose, recombined
from mars_score.report.contents import Table, mean, number
from mars_score.stats.correlation import correlation

_DEFAULT = Combination(0.6, 0.2, "best", 1.0, "max")
_SHOWN = 12
_PLANNED = "mars_paper"
_INFILLED = (MARS, "mars_no_planning")  # of which the first with infills is shown


def sweep_tables(found: MetaEvaluation) -> list[Table]:
    """Settings of MARS that need no model calls, then those of the sweep, each with its choice."""
    tables = []
    if infilled := next((name for name in _INFILLED if _has_infills(found, name)), None):
        tables += _combination_tables(found, infilled)
    if found.sweep:
        figures = {
            found.titles[name]: {of: one.pearson(name) for of, one in found.sweep.items()}
            for name in next(iter(found.sweep.values())).agreements
        }
        items = sum(len(one.scored.data.items) for one in found.sweep.values())
        tables += _figures_tables(
            "Settings that need the language model", f"On a sample of {items} items.", figures
        )
    return tables


def _has_infills(found: MetaEvaluation, metric: str) -> bool:
    details = [
        row
        for one in found.sets.values()
        if metric in one.scored.metrics
        for row in one.scored.metrics[metric].details
    ]
    return any(reference.augmented.augmentations for row in details for reference in row.references)


def combination_figures(found: MetaEvaluation, infilled: str) -> dict[str, dict[str, float]]:
    """Pearson's r at the main level, by combination and set; with self-planning, too, where that was scored."""
    planned = any(name == _PLANNED for name, _ in found.available())
    scored = {"": infilled, **({"self-planning, ": _PLANNED} if planned else {})}
    return {
        f"{prefix}{_name(how)}": {name: _figure(one, metric, how) for name, one in found.sets.items()}
        for prefix, metric in scored.items()
        for how in COMBINATIONS
    }


def _combination_tables(found: MetaEvaluation, infilled: str) -> list[Table]:
    figures = combination_figures(found, infilled)
    title = found.titles[infilled]
    order = sorted(figures, key=lambda one: -mean(figures[one].values()))
    default = _name(_DEFAULT)
    shown = list(dict.fromkeys([*order[:_SHOWN], default]))
    ratios = {
        f"ratios up to {ratio:.0%}": figures[_name(replace(_DEFAULT, max_mask_ratio=ratio))]
        for ratio in (0.2, 0.4, 0.6)
    }
    ways = [_DEFAULT, *(replace(_DEFAULT, augmentation_aggregation="weighted", q=q) for q in QS)]
    weights = {_combined(how): figures[_name(how)] for how in ways}
    among = f"the best {_SHOWN} of {len(figures)} combinations of mask ratio, step and how similarities combine"
    return [
        _table("Maximal mask ratio", f"{title}; step 20 %; how similarities combine: as by default.", ratios),
        _table(
            "How the similarities with a reference and its augmentations combine",
            f"{title}; ratios 20, 40 and 60 %.",
            weights,
        ),
        *_figures_tables(
            "Combinations",
            f"{title}: {among}, and the default.",
            {one: figures[one] for one in shown},
            choices=figures,
        ),
    ]


def _figures_tables(
    title: str,
    note: str,
    figures: Mapping[str, Mapping[str, float]],
    choices: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Table]:
    """The figures, and what leaving each set out chooses among ``choices`` (by default all of them)."""
    choices = choices or figures
    tables = [_table(title, note, figures)]
    try:
        choice = choose(choices)
    except ValueError:  # fewer than two sets
        return tables
    return [*tables, _choice_table(title, choice)]


def _table(title: str, note: str, figures: Mapping[str, Mapping[str, float]]) -> Table:
    sets = next(iter(figures.values()))
    rows = tuple(
        (name, *(number(value) for value in by_set.values()), number(mean(by_set.values())))
        for name, by_set in figures.items()
    )
    return Table(title, f"{note} Pearson's r at the main level.", ("setting", *sets, "mean"), rows)


def _choice_table(title: str, choice: Choice) -> Table:
    rows = [(name, best, number(value)) for name, (best, value) in choice.left_out.items()]
    held = [value for _, value in choice.left_out.values()]
    rows.append(("mean of the left-out sets", "", number(mean(held))))
    rows.append(("all sets, seen", choice.best, number(choice.mean)))
    return Table(
        f"{title}: chosen without the set it is measured on",
        "For each set the alternative that is best on the mean of the others, and its figure on this one.",
        ("left out", "chosen on the others", "Pearson's r"),
        tuple(rows),
    )


def _figure(one: SetResult, metric: str, how: Combination) -> float:
    details, data = one.scored.metrics[metric].details, one.scored.data
    if not details:
        return math.nan
    return correlation(recombined(details, how), data.ratings, level=one.level, groups=data.groups).value


def _name(how: Combination) -> str:
    ratios = f"up to {how.max_mask_ratio:.0%}, step {how.mask_ratio_step:.0%}"
    return f"{ratios}, {_combined(how)}, {how.reference_aggregation} over references"


def _combined(how: Combination) -> str:
    return "best" if how.augmentation_aggregation == "best" else f"weighted, q {how.q}"
