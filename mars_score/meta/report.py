"""Write the report: agreement (Tables 2 and 3 of the paper), attacks (Table 4), and MARS against other metrics."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mars_score.atomic import check_replaceable, write_whole
from mars_score.data.writing import row_line
from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.stats.correlation import Coefficient, Level
from mars_score.stats.resampling import Interval
from mars_score.tables import MISSING, Table, line_to_markdown, mean, number, signed, table_to_markdown
from mars_score.version import __version__

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


def check_report(folder: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Raise PermissionError if a report on the sets of these names would replace a read-only file."""
    scores = [f"scores/{name}.jsonl" for name in names]
    check_replaceable(*(Path(folder, file) for file in ("results.json", "report.md", *scores)))


def write_report(evaluation: MetaEvaluation, folder: str | os.PathLike[str]) -> Path:
    """Write ``report.md``, its figures (``results.json``) and all scores (``scores/SET.jsonl``).

    Returns:
        The path of the report.
    """
    folder = Path(folder)
    (folder / "scores").mkdir(parents=True, exist_ok=True)
    for name, result in evaluation.sets.items():
        write_whole(folder / "scores" / f"{name}.jsonl", "".join(map(row_line, result.items())))
    write_whole(folder / "results.json", json.dumps(evaluation.to_dict(), ensure_ascii=False, indent=1) + "\n")
    write_whole(folder / "report.md", _markdown(evaluation))
    return folder / "report.md"


def _markdown(evaluation: MetaEvaluation) -> str:
    listed = "\n".join(f"- {line_to_markdown(line)}" for line in _summary(evaluation))
    several = [name for name, result in evaluation.sets.items() if len(set(result.data.systems)) > 1]
    attacks = next(iter(evaluation.sets.values())).attacks
    tables = [
        main_table(evaluation),
        _intervals_table(evaluation),
        *([_difference_table(evaluation)] if MARS in evaluation.titles else []),
        *(table for attack in attacks for table in _attack_tables(evaluation, attack)),
        *(_system_table(evaluation, name) for name in several),
        _coefficient_table(evaluation, "items", "spearman"),
        _coefficient_table(evaluation, "items", "kendall"),
        _coefficient_table(evaluation, "within_groups", "pearson"),
        _coefficient_table(evaluation, "systems", "pearson"),
    ]
    return "\n\n".join(["# MARS: agreement with people", listed, *map(table_to_markdown, tables)]) + "\n"


def _summary(evaluation: MetaEvaluation) -> Iterator[str]:
    """Yield lines about the sets and metrics, what was left out, and how metrics use texts."""
    results = evaluation.sets.values()
    items = sum(len(result.data.rows) for result in results)
    groups = sum(len(set(result.data.groups)) for result in results)
    yield f"{items} rated candidates, {groups} groups, {len(results)} sets, {len(evaluation.titles)} metrics."
    yield f"Version {__version__}; seed {evaluation.seed}, {evaluation.resamples} resamples."
    yield from (f"skipped: {failure}" for failure in evaluation.failures())
    yield from evaluation.notices()
    yield from rater_lines(evaluation)
    scored = [scores for result in results for scores in result.metrics.values() if not scores.failure]
    yield from sorted({f"{metric.title}: {metric.note}" for metric in scored if metric.note})
    for name, result in evaluation.sets.items():
        if MARS in result.metrics and result.metrics[MARS].signature:
            yield f"{name}: {result.metrics[MARS].signature}"


def rater_lines(evaluation: MetaEvaluation) -> Iterator[str]:
    """Yield a sentence about the agreement of raters for each set with single ratings."""
    for name, result in evaluation.sets.items():
        if result.raters:
            alphas = (f"{number(alpha, 2)} ({aspect})" for aspect, alpha in result.raters.items())
            yield f"{name}: raters agree with Krippendorff's alpha {', '.join(alphas)}"


def _metric_table(
    evaluation: MetaEvaluation,
    title: str,
    note: str,
    value: Callable[[SetResult, str], float],
    show: Callable[[float], str] = number,
) -> Table:
    """Tabulate a value of each metric on each set, and its mean over the sets with a value."""
    rows = []
    for name, metric in evaluation.titles.items():
        values = [value(result, name) for result in evaluation.sets.values()]
        rows.append((metric, *map(show, values), show(mean(values))))
    return Table(title, note, ("metric", *evaluation.sets, "mean"), tuple(rows))


def main_table(evaluation: MetaEvaluation) -> Table:
    """Tabulate Pearson's r at each set's main level, and the number of items."""
    within = [name for name, result in evaluation.sets.items() if result.level == "within_groups"]
    exceptions = f" ({', '.join(within)}: within groups)" if within else ""
    note = f"Pearson correlation with the human ratings over all items{exceptions}. "
    note += "Mean: over the sets with a value."
    table = _metric_table(evaluation, "Agreement with people", note, SetResult.pearson)
    items = ("n", *(str(len(result.data.rows)) for result in evaluation.sets.values()), "")
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

    def value(result: SetResult, metric: str) -> float:
        return result.agreements[metric].coefficients[level][coefficient].value

    return _metric_table(evaluation, title, note, value)


def _with_interval(value: float, ends: Interval) -> str:
    """Write a value with the ends of its interval, such as "0.12 [-0.03, 0.27]"."""
    return MISSING if math.isnan(value) else f"{value:.2f} [{number(ends.low, 2)}, {number(ends.high, 2)}]"


def _intervals_table(evaluation: MetaEvaluation) -> Table:
    rows = []
    for name, title in evaluation.titles.items():
        results = evaluation.sets.values()
        cells = (_with_interval(result.pearson(name), result.agreements[name].interval) for result in results)
        rows.append((title, *cells))
    note = f"Percentile bootstrap, {evaluation.resamples} resamples of whole groups, seed {evaluation.seed}."
    return Table("95 % confidence intervals", note, ("metric", *evaluation.sets), tuple(rows))


def _system_table(evaluation: MetaEvaluation, set_name: str) -> Table:
    result, rows = evaluation.sets[set_name], []
    systems = sorted(set(result.data.systems))
    for name, title in evaluation.titles.items():
        values, intervals = result.agreements[name].per_system, result.agreements[name].system_intervals
        rows.append((title, *(_with_interval(values[system].value, intervals[system]) for system in systems)))
    items = len(result.data.rows) / len(systems)
    note = f"Pearson's r over the items of one system (about {items:.0f} items each), 95 % bootstrap interval."
    return Table(f"Per system: {set_name}", note, ("metric", *systems), tuple(rows))


def _attack_tables(evaluation: MetaEvaluation, attack: str) -> tuple[Table, Table]:
    """Tabulate the share of candidates that score above their attack, and the change of Pearson's r."""
    attacked = {name: result.attacks[attack] for name, result in evaluation.sets.items()}
    counts = "; ".join(f"{name} {len(rows.indices)} ({rows.skipped} skipped)" for name, rows in attacked.items())

    def share(result: SetResult, name: str) -> float:
        return result.agreements[name].robustness[attack].share

    def change(result: SetResult, name: str) -> float:
        robustness = result.agreements[name].robustness[attack]
        return robustness.after.value - robustness.before.value

    title = f"Candidates scored above their own attack: {attack}"
    note = f"{_ATTACKS[attack]}. Items: {counts}. Ties count as failures."
    shares = _metric_table(evaluation, title, note, share)
    title = f"Change of Pearson's r under attack: {attack}"
    note = (
        "Correlation of the attacks' scores with the ratings of the texts they come from, minus that of the "
        "candidates, over the same items: a metric that sees through the attack loses much."
    )
    return shares, _metric_table(evaluation, title, note, change, signed)


def _difference_table(evaluation: MetaEvaluation) -> Table:
    rows = []
    for name, title in evaluation.titles.items():
        tests = [test for result in evaluation.sets.values() if (test := result.agreements[name].mars_better)]
        cells = (f"{signed(test.difference)} ({number(test.p)})" for test in tests)
        if tests:
            rows.append((title, *cells, signed(mean(test.difference for test in tests))))
    note = "Difference of Pearson's r at the main level, and its p-value by permutation of scores within groups "
    note += "(two-sided, not corrected for the number of comparisons)."
    return Table("MARS minus each metric", note, ("metric", *evaluation.sets, "mean"), tuple(rows))
