"""What people read: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mars_score.cli.running import print_line
from mars_score.meta.tables import Table
from mars_score.result import MarsResult, RowScore

_SHOWN = 3  # lowest and highest rows that are shown


def show_result(result: MarsResult, candidates: Sequence[str], *, detailed: bool) -> None:
    """Print score, signature, notices and some rows (all of them if ``detailed``) to standard output."""
    shown = list(range(len(result.rows))) if detailed else _lowest_and_highest(result.scores)
    if sys.stdout.isatty():
        _show_table(result, candidates, shown, detailed=detailed)
    else:
        for line in _plain_lines(result, candidates, shown, detailed=detailed):
            print_line(line)


def _lowest_and_highest(scores: Sequence[float]) -> list[int]:
    """Row numbers by rising score; of many rows the first and the last few."""
    order = sorted(range(len(scores)), key=lambda row: scores[row])
    return order if len(order) <= 2 * _SHOWN else order[:_SHOWN] + order[-_SHOWN:]


def _compared(row: RowScore) -> list[tuple[str, float, str]]:
    """What the candidate of a row was compared with, over all its references."""
    return [one for reference in row.references for one in reference.compared]


def _plain_lines(result: MarsResult, candidates: Sequence[str], shown: list[int], *, detailed: bool) -> list[str]:
    lines = [f"MARS {result.score:.4f}   rows {len(result.rows)}", f"signature {result.signature}"]
    lines += [f"notice: {notice}" for notice in result.notices]
    lines.append("line  score   candidate" + (" (lowest and highest)" if len(shown) < len(result.rows) else ""))
    for row in shown:
        lines.append(f"{row + 1:>4}  {result.rows[row].score:.4f}  {one_line(candidates[row], detailed)}")
        for ratio, similarity, text in _compared(result.rows[row]) if detailed else ():
            lines.append(f"      {similarity:.4f}  {ratio}: {one_line(text, detailed)}")
    return lines


def _show_table(result: MarsResult, candidates: Sequence[str], shown: list[int], *, detailed: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    title = f"MARS {result.score:.4f}, {len(result.rows)} rows"
    table = Table(title=title, caption="lowest and highest rows" if len(shown) < len(result.rows) else None)
    table.add_column("line", justify="right")
    table.add_column("score", justify="right")
    table.add_column("text", overflow="fold")
    for row in shown:
        text = Text(one_line(candidates[row], detailed))
        table.add_row(str(row + 1), f"{result.rows[row].score:.4f}", text)
        for ratio, similarity, augmented in _compared(result.rows[row]) if detailed else ():
            table.add_row(
                "", Text(f"{similarity:.4f}", "dim"), Text(f"{ratio}: {one_line(augmented, True)}", "dim")
            )
    console.print(table)
    console.print(Text(f"signature {result.signature}", "dim"), soft_wrap=True)  # to be copied as it is
    for notice in result.notices:
        console.print(Text(f"notice: {notice}", "yellow"), soft_wrap=True)


def one_line(text: str, whole: bool) -> str:
    """``text`` without line breaks and control characters, shortened unless ``whole``."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if whole or len(line) <= 80 else line[:79] + "…"


def show_table(table: Table) -> None:
    """Print a table of a report to standard output: drawn on a terminal, aligned text elsewhere."""
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
        for line in (table.title, *table.note.splitlines()):
            print_line(line)
        for row in (table.columns, *table.rows):
            first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            cells = [cell.strip().rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            print_line("  ".join([first, *cells]).rstrip())
        return
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=table.title, caption=table.note)
    for index, column in enumerate(table.columns):
        drawn.add_column(Text(column), justify="right" if index else "left")
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)
