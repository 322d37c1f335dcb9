"""Tables of agreement (the paper's Tables 2 and 3), of attacks (Table 4), and of MARS against the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.report.contents import MISSING, Table, mean, number, signed
from mars_score.stats.correlation import Coefficient, Level
from mars_score.stats.draws import Interval

_LEVELS: dict[Level, str] = {
    "items": "over all items",
    "within_groups": "within groups: values centred by their group (ranks within it), then pooled",
    "systems": "over the systems' means",
}
_COEFFICIENTS = {"pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
_ATTACKS = {
    "reorder": "Reorder: half of a candidate's tokens shuffled (from four tokens, never the candidate itself)",
    "retrieve": "Retrieve: a sentence of the context as the candidate (from three sentences, never the candidate)",
}
SIGNIFICANT = 0.05
_SIGNIFICANT = f"p < {SIGNIFICANT} in the bootstrap over groups"
_TOO_FEW = 0.3  # share of augmentations that differ from their reference, below which a set says nothing
# What a part of MARS brings: one metric minus the other.
_PARTS = (
    ("augmentation", "mars", "reference_cosine"),
    ("context", "mars", "mars_no_context"),
    ("self-planning", "mars_paper", "mars"),
    ("context, with self-planning", "mars_paper", "mars_no_context"),
)


def _metric_table(
    found: MetaEvaluation,
    title: str,
    note: str,
    value: Callable[[SetResult, str], float],
    show: Callable[[float], str] = number,
) -> Table:
    """A value of each metric on each set, and its mean over the sets with a value."""
    rows = []
    for name, metric in found.available():
        values = [value(one, name) for one in found.sets.values()]
        rows.append((metric, *map(show, values), show(mean(values))))
    return Table(title, note, ("metric", *found.sets, "mean"), tuple(rows))


def main_table(found: MetaEvaluation) -> Table:
    """Pearson's r at each set's main level, and how many items it rests on: the figures to look at first."""
    within = [name for name, one in found.sets.items() if one.level == "within_groups"]
    note = "Pearson correlation with the human ratings over all items"
    note += f" ({', '.join(within)}: within groups)" if within else ""
    table = _metric_table(
        found, "Agreement with people", f"{note}. Mean: over the sets with a value.", SetResult.pearson
    )
    items = ("n", *(str(len(one.scored.data.items)) for one in found.sets.values()), "")
    return replace(table, rows=(*table.rows, items))


def coefficient_table(found: MetaEvaluation, level: Level, coefficient: Coefficient) -> Table:
    """One coefficient at one level, metrics by sets."""
    reasons = dict.fromkeys(
        f"{name}: {reason}"
        for name, one in found.sets.items()
        for agreement in one.agreements.values()
        for reason in [agreement.coefficients[level]["pearson"].reason]
        if reason and "scores" not in reason
    )
    note = f"{_LEVELS[level][0].upper()}{_LEVELS[level][1:]}." + (
        f" n/a: {'; '.join(reasons)}." if reasons else ""
    )
    title = f"{_COEFFICIENTS[coefficient]} {_LEVELS[level].partition(':')[0]}"
    return _metric_table(
        found, title, note, lambda one, name: one.agreements[name].coefficients[level][coefficient].value
    )


def intervals_table(found: MetaEvaluation) -> Table:
    """95 % intervals of the main figure."""
    rows = tuple(
        (title, *(interval(one.pearson(name), one.agreements[name].interval) for one in found.sets.values()))
        for name, title in found.available()
    )
    options = found.options
    note = f"Percentile bootstrap, {options.resamples} resamples of whole groups, seed {options.seed}."
    return Table("95 % confidence intervals", note, ("metric", *found.sets), rows)


def system_table(found: MetaEvaluation, name: str) -> Table | None:
    """Pearson's r over the items of each system, with intervals; None for one system."""
    one = found.sets[name]
    systems = sorted(set(one.scored.data.systems))
    if len(systems) < 2:
        return None
    rows = []
    for metric, title in found.available():
        agreement = one.agreements[metric]
        cells = [interval(agreement.per_system[of].value, agreement.system_intervals[of]) for of in systems]
        rows.append((title, *cells))
    items = len(one.scored.data.items) / len(systems)
    note = f"Pearson's r over the items of one system (about {items:.0f} items each), 95 % bootstrap interval."
    return Table(f"Per system: {name}", note, ("metric", *systems), tuple(rows))


def interval(value: float, ends: Interval) -> str:
    """A value with its ends: "0.12 [-0.03, 0.27]"."""
    return MISSING if math.isnan(value) else f"{value:.2f} [{number(ends.low, 2)}, {number(ends.high, 2)}]"


def attack_tables(found: MetaEvaluation) -> list[Table]:
    """For each attack the share of candidates above it, and what becomes of the correlation."""
    tables = []
    for attack in next(iter(found.sets.values())).scored.attacks:
        counts = "; ".join(
            f"{name} {len(one.scored.attacks[attack].indices)} ({one.scored.attacks[attack].skipped} skipped)"
            for name, one in found.sets.items()
        )

        def share(one: SetResult, name: str, attack: str = attack) -> float:
            return one.agreements[name].robustness[attack].share

        def change(one: SetResult, name: str, attack: str = attack) -> float:
            robustness = one.agreements[name].robustness[attack]
            return robustness.after.value - robustness.before.value

        tables += [
            _metric_table(
                found,
                f"Candidates scored above their own attack: {attack}",
                f"{_ATTACKS.get(attack, attack)}. Items: {counts}. Ties count as failures.",
                share,
            ),
            _metric_table(
                found,
                f"Change of Pearson's r under attack: {attack}",
                "Correlation of the attacks' scores with the ratings of the texts they come from, minus that of "
                "the candidates, over the same items: a metric that sees through the attack loses much.",
                change,
                signed,
            ),
        ]
    return tables


def mars_tables(found: MetaEvaluation) -> list[Table]:
    """What each part of MARS brings on each set, and MARS against each metric; none where it was not scored."""
    if MARS not in dict(found.available()):
        return []
    return [_parts_table(found), _wins_table(found), _differences_table(found), _p_values_table(found)]


def _parts_table(found: MetaEvaluation) -> Table:
    parts = [(part, *pair) for part, *pair in _PARTS if set(pair) <= dict(found.available()).keys()]
    rows = []
    for name, one in found.sets.items():
        changed = one.agreements[MARS].changed
        counts = "" if changed >= _TOO_FEW else " (does not count)"
        cells = [_difference(one, with_it, without) + counts for _, with_it, without in parts]
        rows.append((name, number(one.pearson(MARS)), number(changed, 2), *cells))
    note = (
        "Difference of Pearson's r with and without the part (augmentation: against the reference alone). "
        f"* {_SIGNIFICANT}, where MARS as it is by default is one of the two. "
        "Augmentations that differ: share of different augmentations whose text is not the reference's; below "
        f"{_TOO_FEW:.0%} a set does not count."
    )
    columns = ("data set", "MARS", "augmentations that differ", *(part for part, *_ in parts))
    return Table("What each part brings", note, columns, tuple(rows))


def _difference(one: SetResult, first: str, second: str) -> str:
    """Of two metrics; with a star where one of them is MARS and the difference is significant."""
    others = [name for name in (first, second) if name != MARS]
    star = "*" if len(others) == 1 and _is_significant(one, others[0]) else ""
    return signed(one.pearson(first) - one.pearson(second)) + star


def _is_significant(one: SetResult, name: str) -> bool:
    """Whether MARS and a metric differ by the bootstrap over groups."""
    tests = one.agreements[name].mars_better
    return tests is not None and tests.bootstrap.p < SIGNIFICANT


def _wins_table(found: MetaEvaluation) -> Table:
    rows = []
    for name, title in _others(found):
        known = [
            (difference, _is_significant(one, name))
            for one in found.sets.values()
            if not math.isnan(difference := one.pearson(MARS) - one.pearson(name))
        ]
        rows.append(
            (
                title,
                f"{sum(difference > 0 for difference, _ in known)} of {len(known)}",
                str(sum(difference > 0 and sure for difference, sure in known)),
                str(sum(difference < 0 and sure for difference, sure in known)),
                signed(mean(difference for difference, _ in known)),
            )
        )
    return Table(
        "MARS against each metric, over sets",
        f"On how many sets MARS correlates better; significantly: {_SIGNIFICANT}.",
        ("metric", "MARS above", "significantly above", "significantly below", "mean difference"),
        tuple(rows),
    )


def _differences_table(found: MetaEvaluation) -> Table:
    rows = tuple(
        (
            title,
            *(_difference(one, MARS, name) for one in found.sets.values()),
            signed(mean(one.pearson(MARS) - one.pearson(name) for one in found.sets.values())),
        )
        for name, title in _others(found)
    )
    return Table(
        "MARS minus each metric",
        f"Difference of Pearson's r at the main level; * where {_SIGNIFICANT} "
        "(two-sided, not corrected for the number of comparisons).",
        ("metric", *found.sets, "mean"),
        rows,
    )


def _p_values_table(found: MetaEvaluation) -> Table:
    rows = tuple((title, *(_p_values(one, name) for one in found.sets.values())) for name, title in _others(found))
    return Table(
        "p-values",
        "Bootstrap over groups / permutation of scores within groups.",
        ("metric", *found.sets),
        rows,
    )


def _p_values(one: SetResult, name: str) -> str:
    tests = one.agreements[name].mars_better
    if tests is None:
        return MISSING
    return " / ".join(number(test.p) for test in (tests.bootstrap, tests.permutation))


def _others(found: MetaEvaluation) -> list[tuple[str, str]]:
    """Names and titles of all metrics but MARS."""
    return [(name, title) for name, title in found.available() if name != MARS]
