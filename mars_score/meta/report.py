"""The report: agreement (the paper's Tables 2 and 3), attacks (Table 4), MARS against the others."""

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mars_score.data.files import whole_file
from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.report import MISSING, Table, line_to_markdown, mean, number, signed, table_to_markdown
from mars_score.settings.version import __version__
from mars_score.stats.correlation import Coefficient, Level
from mars_score.stats.resampling import Interval

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


def write_meta_report(evaluation: MetaEvaluation, folder: str | os.PathLike[str]) -> Path:
    """Write all tables of a meta-evaluation to ``report.md`` in a folder, which is made where it is missing."""
    results, options = evaluation.sets.values(), evaluation.options
    items = sum(len(result.scored.data.items) for result in results)
    groups = sum(len(set(result.scored.data.groups)) for result in results)
    metrics = [metric for result in results for metric in result.scored.metrics.values() if not metric.failure]
    notes = {f"{metric.metric.title}: {metric.metric.note}" for metric in metrics if metric.metric.note}
    signatures = [
        (name, result.scored.metrics[MARS].signature)
        for name, result in evaluation.sets.items()
        if MARS in result.scored.metrics
    ]
    lines = [
        f"{items} rated candidates, {groups} groups, {len(results)} sets, {len(evaluation.titles)} metrics.",
        f"Version {__version__}; seed {options.seed}, {options.resamples} resamples.",
        *(f"skipped: {failure}" for failure in evaluation.failures()),
        *evaluation.notices(),
        *sorted(notes),
        *(f"{name}: {signature}" for name, signature in signatures if signature),
    ]
    tables = [
        main_table(evaluation),
        _intervals_table(evaluation),
        *_difference_tables(evaluation),
        *(table for attack in options.attacks for table in _attack_tables(evaluation, attack)),
        *_system_tables(evaluation),
        _coefficient_table(evaluation, "items", "spearman"),
        _coefficient_table(evaluation, "items", "kendall"),
        _coefficient_table(evaluation, "within_groups", "pearson"),
        _coefficient_table(evaluation, "systems", "pearson"),
    ]
    listed = "\n".join(f"- {line_to_markdown(line)}" for line in lines)
    path = Path(folder) / "report.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write("\n\n".join(["# MARS: agreement with people", listed, *map(table_to_markdown, tables)]) + "\n")
    return path


def _metric_table(
    evaluation: MetaEvaluation,
    title: str,
    note: str,
    value: Callable[[SetResult, str], float],
    show: Callable[[float], str] = number,
) -> Table:
    """A value of each metric on each set, and its mean over the sets with a value."""
    rows = []
    for name, metric in evaluation.titles.items():
        values = [value(result, name) for result in evaluation.sets.values()]
        rows.append((metric, *map(show, values), show(mean(values))))
    return Table(title, note, ("metric", *evaluation.sets, "mean"), tuple(rows))


def main_table(evaluation: MetaEvaluation) -> Table:
    """Pearson's r at each set's main level, and how many items it rests on: the figures to look at first."""
    within = [name for name, result in evaluation.sets.items() if result.level == "within_groups"]
    note = "Pearson correlation with the human ratings over all items"
    note += f" ({', '.join(within)}: within groups)" if within else ""
    note += ". Mean: over the sets with a value."
    table = _metric_table(evaluation, "Agreement with people", note, SetResult.pearson)
    items = ("n", *(str(len(result.scored.data.items)) for result in evaluation.sets.values()), "")
    return replace(table, rows=(*table.rows, items))


def _coefficient_table(evaluation: MetaEvaluation, level: Level, coefficient: Coefficient) -> Table:
    reasons = dict.fromkeys(
        f"{name}: {reason}"
        for name, result in evaluation.sets.items()
        for agreement in result.agreements.values()
        if (reason := agreement.coefficients[level]["pearson"].reason) and "scores" not in reason
    )
    note = f"{_LEVELS[level][0].upper()}{_LEVELS[level][1:]}."
    note += f" n/a: {'; '.join(reasons)}." if reasons else ""
    title = f"{_COEFFICIENTS[coefficient]} {_LEVELS[level].partition(':')[0]}"

    def value(result: SetResult, name: str) -> float:
        return result.agreements[name].coefficients[level][coefficient].value

    return _metric_table(evaluation, title, note, value)


def _interval(value: float, ends: Interval) -> str:
    """A value with its ends: "0.12 [-0.03, 0.27]"."""
    return MISSING if math.isnan(value) else f"{value:.2f} [{number(ends.low, 2)}, {number(ends.high, 2)}]"


def _intervals_table(evaluation: MetaEvaluation) -> Table:
    sets, options = evaluation.sets, evaluation.options
    rows = tuple(
        (title, *(_interval(result.pearson(name), result.agreements[name].interval) for result in sets.values()))
        for name, title in evaluation.titles.items()
    )
    note = f"Percentile bootstrap, {options.resamples} resamples of whole groups, seed {options.seed}."
    return Table("95 % confidence intervals", note, ("metric", *sets), rows)


def _system_tables(evaluation: MetaEvaluation) -> list[Table]:
    """Pearson's r over the items of each system, for each set with several."""
    tables = []
    for name, result in evaluation.sets.items():
        systems = sorted(set(result.scored.data.systems))
        rows = []
        for metric, title in evaluation.titles.items():
            agreement = result.agreements[metric]
            cells = [
                _interval(agreement.per_system[system].value, agreement.system_intervals[system])
                for system in systems
            ]
            rows.append((title, *cells))
        items = len(result.scored.data.items) / len(systems)
        note = f"Pearson's r over the items of one system (about {items:.0f} items each), 95 % bootstrap interval."
        if len(systems) > 1:
            tables.append(Table(f"Per system: {name}", note, ("metric", *systems), tuple(rows)))
    return tables


def _attack_tables(evaluation: MetaEvaluation, attack: str) -> tuple[Table, Table]:
    """The share of candidates above the attack, and what becomes of the correlation."""
    attacked = {name: result.scored.attacks[attack] for name, result in evaluation.sets.items()}
    counts = "; ".join(f"{name} {len(rows.indices)} ({rows.skipped} skipped)" for name, rows in attacked.items())

    def share(result: SetResult, name: str) -> float:
        return result.agreements[name].robustness[attack].share

    def change(result: SetResult, name: str) -> float:
        robustness = result.agreements[name].robustness[attack]
        return robustness.after.value - robustness.before.value

    return (
        _metric_table(
            evaluation,
            f"Candidates scored above their own attack: {attack}",
            f"{_ATTACKS.get(attack, attack)}. Items: {counts}. Ties count as failures.",
            share,
        ),
        _metric_table(
            evaluation,
            f"Change of Pearson's r under attack: {attack}",
            "Correlation of the attacks' scores with the ratings of the texts they come from, minus that of "
            "the candidates, over the same items: a metric that sees through the attack loses much.",
            change,
            signed,
        ),
    )


def _difference_tables(evaluation: MetaEvaluation) -> list[Table]:
    """MARS against each metric; none where it was not scored."""
    results = evaluation.sets.values()
    rows = []
    for name, title in evaluation.titles.items():
        tests = [test for result in results if (test := result.agreements[name].mars_better)]
        cells = (f"{signed(test.difference)} ({number(test.p)})" for test in tests)
        if tests:
            rows.append((title, *cells, signed(mean(test.difference for test in tests))))
    note = "Difference of Pearson's r at the main level, and its p-value by permutation of scores within groups "
    note += "(two-sided, not corrected for the number of comparisons)."
    columns = ("metric", *evaluation.sets, "mean")
    return [Table("MARS minus each metric", note, columns, tuple(rows))] if MARS in evaluation.titles else []
