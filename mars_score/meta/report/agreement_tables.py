"""Tables of agreement with people: overall (the paper's Table 2), per system (Table 3), and MARS against each."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.meta.tables import MISSING, Table, mean, number, p_value, signed
from mars_score.stats.correlation import Coefficient, Level
from mars_score.stats.resampling import Interval

Published = Mapping[str, Mapping[str, Mapping[str, float]]]  # set -> metric -> system -> Pearson's r
_LEVELS: dict[Level, str] = {
    "items": "over all items",
    "within_groups": "within groups: values centred by their group (ranks within it), then pooled",
    "systems": "over the systems' means",
}
SIGNIFICANT = 0.05


def main_table(found: MetaEvaluation) -> Table:
    """Pearson's r at each set's main level: the figure to look at first."""
    within = [name for name, one in found.sets.items() if one.level == "within_groups"]
    note = "Pearson correlation with the human ratings over all items"
    note += f" ({', '.join(within)}: within groups). " if within else ". "
    rows = []
    for name, title in found.available():
        values = [one.pearson(name) for one in found.sets.values()]
        rows.append((title, *map(number, values), number(mean(values))))
    return Table(
        "Agreement with people",
        note + "Mean: over the sets with a value.",
        ("metric", *found.sets, "mean"),
        tuple(rows),
    )


def coefficient_table(found: MetaEvaluation, level: Level, coefficient: Coefficient) -> Table:
    """One coefficient at one level, metrics by sets."""
    rows = []
    for name, title in found.available():
        values = [one.agreements[name].coefficients[level][coefficient].value for one in found.sets.values()]
        rows.append((title, *map(number, values), number(mean(values))))
    title = {"pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}[coefficient]
    return Table(
        f"{title} {_LEVELS[level].partition(':')[0]}",
        _note(found, level),
        ("metric", *found.sets, "mean"),
        tuple(rows),
    )


def intervals_table(found: MetaEvaluation) -> Table:
    """95 % intervals of the main figure."""
    rows = tuple(
        (title, *(interval(one.pearson(name), one.agreements[name].interval) for one in found.sets.values()))
        for name, title in found.available()
    )
    note = (
        f"Percentile bootstrap, {found.resamples} resamples of whole groups with replacement, seed {found.seed}."
    )
    return Table("95 % confidence intervals", note, ("metric", *found.sets), rows)


def comparison_tables(found: MetaEvaluation) -> list[Table]:
    """MARS minus each metric, with p-values of three tests."""
    others = [(name, title) for name, title in found.available() if name != MARS]
    if len(others) == len(found.available()):
        return []
    differences = Table(
        "MARS minus each metric",
        f"Difference of Pearson's r at the main level; * where p < {SIGNIFICANT} in the bootstrap over groups "
        "(two-sided, not corrected for the number of comparisons).",
        ("metric", *found.sets, "mean"),
        tuple(_differences(found, name, title) for name, title in others),
    )
    tests = Table(
        "p-values",
        "Bootstrap over groups / permutation of scores within groups / Williams' test. Williams takes items to "
        "be independent; those of a group are not, so its p is too small: it is shown for comparison only.",
        ("metric", *found.sets),
        tuple((title, *(_p_values(one, name) for one in found.sets.values())) for name, title in others),
    )
    return [differences, tests]


def system_table(found: MetaEvaluation, name: str, published: Published) -> Table | None:
    """Pearson's r over the items of each system (Table 3), with intervals; None for one system."""
    one = found.sets[name]
    systems = sorted(set(one.scored.data.systems))
    if len(systems) < 2:
        return None
    known = published.get(name, {})
    columns = ["metric"]
    for system in systems:
        columns += [system, *(["published"] if any(system in of_metric for of_metric in known.values()) else [])]
    rows = []
    for metric, title in found.available():
        row, agreement = [title], one.agreements[metric]
        for system in systems:
            row.append(interval(agreement.per_system[system].value, agreement.system_intervals[system]))
            if any(system in of_metric for of_metric in known.values()):
                row.append(number(known.get(metric, {}).get(system, math.nan)))
        rows.append(tuple(row))
    items = len(one.scored.data.items) / len(systems)
    note = f"Pearson's r over the items of one system (about {items:.0f} items each), 95 % bootstrap interval."
    return Table(f"Per system: {name}", note, tuple(columns), tuple(rows))


def interval(value: float, ends: Interval) -> str:
    """A value with its ends: "0.12 [-0.03, 0.27]"."""
    if math.isnan(value):
        return MISSING
    return f"{value:.2f} [{number(ends.low, 2)}, {number(ends.high, 2)}]"


def _differences(found: MetaEvaluation, name: str, title: str) -> tuple[str, ...]:
    values = [one.pearson(MARS) - one.pearson(name) for one in found.sets.values()]
    cells = [
        signed(value) + ("*" if is_significant(one, name) else "")
        for value, one in zip(values, found.sets.values(), strict=True)
    ]
    return (title, *cells, signed(mean(values)))


def is_significant(one: SetResult, name: str) -> bool:
    """Whether MARS and a metric differ by the bootstrap over groups."""
    tests = one.agreements[name].mars_better
    return tests is not None and tests.bootstrap.p < SIGNIFICANT


def _p_values(one: SetResult, name: str) -> str:
    tests = one.agreements[name].mars_better
    if tests is None:
        return MISSING
    return " / ".join(p_value(test.p) for test in (tests.bootstrap, tests.permutation, tests.williams))


def _note(found: MetaEvaluation, level: Level) -> str:
    """What the level means, and why values are missing."""
    reasons = dict.fromkeys(
        f"{name}: {reason}"
        for name, one in found.sets.items()
        for agreement in one.agreements.values()
        for reason in [agreement.coefficients[level]["pearson"].reason]
        if reason and "scores" not in reason
    )
    return f"{_LEVELS[level][0].upper()}{_LEVELS[level][1:]}." + (
        f" n/a: {'; '.join(reasons)}." if reasons else ""
    )
