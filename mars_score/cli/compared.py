"""A comparison of systems as people read it."""

import math
from collections.abc import Sequence
from dataclasses import replace

from mars_score.cli.running import print_line
from mars_score.cli.tables import fitted, show_table
from mars_score.compare import ComparedRow, SystemRanking
from mars_score.data.values import one_line
from mars_score.report.contents import MISSING, Table
from mars_score.stats.draws import Interval


def show_ranking(ranking: SystemRanking, rows: int, form: str) -> None:
    """Print tables, verdict, signature, notices and the ``rows`` rows that differ most.

    In the forms "markdown" and "latex" verdict, signature and notices stand in the first table's note, and no rows
    are shown.
    """
    scores, pairs = _score_table(ranking), _pair_table(ranking)
    lines = [
        f"verdict: {ranking.verdict}",
        f"signature {ranking.signature}",
        *(f"notice: {notice}" for notice in ranking.notices),
    ]
    lines = [one_line(line) for line in lines]
    if form != "text":
        show_table(replace(scores, note="\n".join(f"{line}." for line in (scores.note, *lines))), form)
        show_table(pairs, form)
        return
    show_table(scores)
    show_table(pairs)
    for line in lines:
        print_line(line)
    names = [one_line(system.name) for system in ranking.systems]
    different = ranking.most_different(rows)
    for line in ["", "rows that differ most"] if different else []:
        print_line(line)
    for row in different:
        for line in _row_lines(row, names):
            print_line(line)


def _score_table(ranking: SystemRanking) -> Table:
    return Table(
        f"{len(ranking.rows)} rows, {len(ranking.systems)} systems",
        f"bootstrap intervals over {_groups(ranking)}",
        ("system", "MARS", f"{ranking.confidence:.0%} interval"),
        tuple(
            (one_line(system.name), f"{system.score:.4f}", _ends(system.interval)) for system in ranking.systems
        ),
    )


def _pair_table(ranking: SystemRanking) -> Table:
    """The difference of each two systems, with its interval and p-value."""
    count = len(ranking.pairs)
    adjusted = f", p adjusted for {count} tests (Holm)" if count > 1 else ""
    return Table(
        "differences",
        f"approximate randomisation, {ranking.resamples} resamples of {_groups(ranking)}{adjusted}",
        ("systems", "difference", f"{ranking.confidence:.0%} interval", "p", "wins, ties, losses"),
        tuple(
            (
                one_line(f"{pair.first} - {pair.second}"),
                f"{pair.difference:+.4f}",
                _ends(pair.interval),
                MISSING if math.isnan(pair.p) else f"{pair.p:.2g}",
                f"{pair.wins}, {pair.ties}, {pair.losses}",
            )
            for pair in ranking.pairs
        ),
    )


def _groups(ranking: SystemRanking) -> str:
    return f"{ranking.groups} {'rows' if ranking.groups == len(ranking.rows) else 'groups of rows'}"


def _row_lines(row: ComparedRow, names: Sequence[str]) -> list[str]:
    texts = [
        *([("context", row.context)] if row.context else []),
        *(("reference", reference) for reference in row.references),
        *(
            (f"{name} {score:.4f}", candidate)
            for name, score, candidate in zip(names, row.scores, row.candidates, strict=True)
        ),
    ]
    return [
        f"line {row.row + 1}: {row.spread:.4f} apart",
        *(fitted(f"{what}: {text}", indent=2) for what, text in texts),
    ]


def _ends(interval: Interval) -> str:
    return MISSING if math.isnan(interval.low) else f"{interval.low:.4f} .. {interval.high:.4f}"
