"""A comparison of two systems as people read it."""

from __future__ import annotations

import math

from mars_score.cli.running import print_line
from mars_score.cli.tables import one_line, show_table
from mars_score.compare.result import RowPair, SystemComparison
from mars_score.report.contents import MISSING, Table
from mars_score.stats.draws import Interval


def show_comparison(found: SystemComparison, rows: int) -> None:
    """Print scores, tests, signature and the rows that differ most to standard output."""
    show_table(_table(found))
    first, second = (one_line(name, True) for name in found.names)
    wins, ties, losses = found.win_tie_loss
    print_line(f"{first} wins {wins}, ties {ties}, loses {losses} of {len(found.rows)} rows")
    print_line(f"signature {found.signature}")
    for notice in found.notices:
        print_line(f"notice: {one_line(notice, True)}")
    shown = found.most_different(rows)
    if shown:
        print_line("")
        print_line("rows that differ most")
    for row in shown:
        for line in _lines(row, (first, second)):
            print_line(line)


def _table(found: SystemComparison) -> Table:
    test = found.test
    unit = "rows" if test.groups == len(found.rows) else "groups"
    note = (
        f"paired bootstrap p = {_p(test.bootstrap_p)}, approximate randomisation p = {_p(test.randomisation_p)} "
        f"({found.resamples} resamples of {test.groups} {unit})"
    )
    if test.groups < 2:
        note += "\nwith one there is nothing to draw from: no intervals, no tests"
    values = [
        *((one_line(one.name, True), f"{one.score:.4f}") for one in found.systems),
        ("difference", f"{found.difference:+.4f}"),
    ]
    intervals = [_interval(one) for one in (test.first, test.second, test.difference)]
    return Table(
        f"{len(found.rows)} rows, two systems",
        note,
        ("system", "MARS", f"{found.confidence:.0%} interval"),
        tuple((*value, interval) for value, interval in zip(values, intervals, strict=True)),
    )


def _lines(row: RowPair, names: tuple[str, str]) -> list[str]:
    texts = [
        *([("context", row.context)] if row.context else []),
        *(("reference", reference) for reference in row.references),
        *(
            (f"{name} {score:.4f}", candidate)
            for name, score, candidate in zip(names, row.scores, row.candidates, strict=True)
        ),
    ]
    return [
        f"line {row.row + 1}: {row.difference:+.4f}",
        *(f"  {what}: {one_line(text, True)}" for what, text in texts),
    ]


def _interval(interval: Interval) -> str:
    return MISSING if math.isnan(interval.low) else f"{interval.low:.4f} .. {interval.high:.4f}"


def _p(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.2g}"
