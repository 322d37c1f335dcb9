"""A comparison of systems as people read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mars_score.cli.running import print_line
from mars_score.cli.tables import fitted, one_line, show_table
from mars_score.compare.ranking import SystemRanking
from mars_score.compare.result import ComparedRow, SystemComparison
from mars_score.report.contents import MISSING, Table
from mars_score.stats import TESTS, Test
from mars_score.stats.draws import Interval


def show_comparison(
    found: SystemComparison | SystemRanking, rows: int, test: Test, form: str, *, short: bool = False
) -> None:
    """Print tables, verdict, signature (``short`` or in full) and the ``rows`` rows that differ most.

    ``test`` is shown of two systems; ``form`` is one of "text", "markdown", "latex".
    """
    signature = f"signature {found.signature.short if short else found.signature}"
    names = [one_line(one.name, True) for one in found.systems]
    if isinstance(found, SystemRanking):
        findings = [f"verdict: {found.verdict}", signature]
        _show(found, _ranking_tables(found, names), findings, names, rows, form)
        return
    wins, ties, losses = found.win_tie_loss
    counts = f"{names[0]} wins {wins}, ties {ties}, loses {losses} of {len(found.rows)} rows"
    findings = [counts, f"verdict: {found.verdict(test)}", signature]
    _show(found, [_table(found, names, test)], findings, names, rows, form)


def _show(
    found: SystemComparison | SystemRanking,
    tables: Sequence[Table],
    findings: Sequence[str],
    names: Sequence[str],
    rows: int,
    form: str,
) -> None:
    """Tables, findings and the rows that differ most; only tables, with a full note, but for text."""
    lines = [one_line(line, True) for line in findings]
    if form != "text":
        first, *others = tables
        for table in (replace(first, note="\n".join(f"{line}." for line in (first.note, *lines))), *others):
            show_table(table, form)
        return
    for table in tables:
        show_table(table)
    for line in (*lines, *(f"notice: {one_line(notice, True)}" for notice in found.notices)):
        print_line(line)
    shown = found.most_different(rows)
    if shown:
        print_line("")
        print_line("rows that differ most")
    for row in shown:
        for line in _lines(row, names):
            print_line(line)


def _table(found: SystemComparison, names: Sequence[str], test: Test) -> Table:
    tests = found.test
    values = [
        *((name, f"{one.score:.4f}") for name, one in zip(names, found.systems, strict=True)),
        ("difference", f"{found.difference:+.4f}"),
    ]
    intervals = [_interval(one) for one in (tests.first, tests.second, tests.difference)]
    return Table(
        f"{len(found.rows)} rows, two systems",
        f"{TESTS[test]} p = {_p(tests.p(test))} {_resamples(found, tests.groups)}",
        ("system", "MARS", f"{found.confidence:.0%} interval"),
        tuple((*value, interval) for value, interval in zip(values, intervals, strict=True)),
    )


def _ranking_tables(found: SystemRanking, names: Sequence[str]) -> list[Table]:
    """Scores with intervals, and a matrix of differences and p-values."""
    scores = Table(
        f"{len(found.rows)} rows, {len(names)} systems",
        f"bootstrap intervals {_resamples(found, found.groups)}",
        ("system", "MARS", f"{found.confidence:.0%} interval"),
        tuple(
            (name, f"{one.score:.4f}", _interval(interval))
            for name, one, interval in zip(names, found.systems, found.intervals, strict=True)
        ),
    )
    cells = {(pair.first, pair.second): f"{pair.difference:+.4f}" for pair in found.pairs}
    cells |= {(pair.second, pair.first): f"p {_p(pair.adjusted_p)}" for pair in found.pairs}
    systems = [one.name for one in found.systems]
    matrix = Table(
        "differences (row minus column) and p-values",
        f"{TESTS[found.test]} of each two systems; p adjusted for {len(found.pairs)} tests (Holm)",
        ("", *names),
        tuple(
            (name, *(cells.get((system, other), "") for other in systems))
            for name, system in zip(names, systems, strict=True)
        ),
    )
    return [scores, matrix]


def _resamples(found: SystemComparison | SystemRanking, groups: int) -> str:
    unit = "rows" if groups == len(found.rows) else "groups"
    note = f"({found.resamples} resamples of {groups} {unit})"
    return note if groups > 1 else f"{note}\nwith one there is nothing to draw from: no intervals, no tests"


def _lines(row: ComparedRow, names: Sequence[str]) -> list[str]:
    texts = [
        *([("context", row.context)] if row.context else []),
        *(("reference", reference) for reference in row.references),
        *(
            (f"{name} {score:.4f}", candidate)
            for name, score, candidate in zip(names, row.scores, row.candidates, strict=True)
        ),
    ]
    difference = row.difference if len(names) == 2 else row.spread
    return [
        f"line {row.row + 1}: {difference:+.4f}",
        *(fitted(f"{what}: {text}", indent=2) for what, text in texts),
    ]


def _interval(interval: Interval) -> str:
    return MISSING if math.isnan(interval.low) else f"{interval.low:.4f} .. {interval.high:.4f}"


def _p(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.2g}"
