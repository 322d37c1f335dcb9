"""A report as Markdown in GitHub's dialect; texts are escaped, so that they read as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mars_score.report.charts import finite_points
from mars_score.report.contents import (
    Bars,
    Disagreement,
    Part,
    Report,
    Scatter,
    Table,
    number,
    shortened,
    showable,
    signed,
    together,
    true_minus,
)

_TEXT = 300  # characters of a text that are shown
_WIDTH = 32  # characters that cells are padded to at most
_MARKUP = re.compile(r"[\\`*_~<|$]|\](?=[(\[:])|&(?=[#\w])|!(?=\[)")
_START = re.compile(r"^(?=[#>=]|[-+](?:[\s-]|$))|(?<=^\d)(?=[.)](?:\s|$))")


def to_markdown(report: Report) -> str:
    """The report, charts as tables of their numbers."""
    blocks = [f"# {_line(report.title)}"]
    if report.summary:
        blocks.append("\n".join(f"- {_line(line)}" for line in report.summary))
    if report.notices:
        blocks.append("\n".join(["> **Notices**", ">", *(f"> - {_line(line)}" for line in report.notices)]))
    for section in report.sections:
        blocks.append(f"## {_line(section.title)}")
        if section.note:
            blocks.append(_line(section.note))
        blocks.extend(_parts(section.parts))
    return showable("\n\n".join(blocks) + "\n")


def _parts(parts: Sequence[Part]) -> Iterator[str]:
    if not parts:
        yield "Nothing to show."
    for title, block in together(parts):
        if isinstance(block[0], Disagreement):
            yield from (_disagreement(part) for part in block if isinstance(part, Disagreement))
            continue
        yield f"### {_line(title)}"
        if isinstance(block[0], Table):
            yield from _noted(block[0])
            continue
        yield _grid(*_numbers([part for part in block if isinstance(part, Scatter | Bars)]))


def table_to_markdown(table: Table) -> str:
    """A table with its title and note."""
    return showable("\n\n".join([f"**{_line(table.title)}**", *_noted(table)]))


def _noted(table: Table) -> Iterator[str]:
    if table.note:
        yield _line(table.note)
    yield _grid(table.columns, table.rows)


def _numbers(charts: Sequence[Scatter | Bars]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Columns and rows that say what charts show: some scatters, or one bar chart."""
    bars = charts[0]
    if isinstance(bars, Scatter):
        scatters = [part for part in charts if isinstance(part, Scatter)]
        return ("Metric", "Points", "Agreement"), [
            (part.metric, str(len(finite_points(part)[0])), part.coefficient) for part in scatters
        ]
    rows = zip(bars.labels, bars.values, bars.lows, bars.highs, strict=True)
    return ("", "Value", "Low", "High"), [(label, *map(number, values)) for label, *values in rows]


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, padded so that it can be read as it is."""
    cells = [[_escaped(text).replace("\n", "<br>") for text in row] for row in (columns, *rows)]
    widths = [min(_WIDTH, max(3, *map(len, column))) for column in zip(*cells, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def _disagreement(part: Disagreement) -> str:
    lines = [
        f"**{_line(part.system)} on {_line(part.data_set)}, {_line(part.item)}**: rating {_line(part.rating)}, "
        f"score {_line(part.score)}, residual {true_minus(signed(part.residual, 2))}\n"
    ]
    texts = [("Context", part.context), *(("Reference", text) for text in part.references)]
    lines += [f"- {name}: {_short(text)}" for name, text in [*texts, ("Candidate", part.candidate)] if text]
    lines += [
        f"  - {_line(label)}, similarity {similarity:.3f}: {_short(text)}"
        for label, similarity, text in part.augmentations
    ]
    return "\n".join(lines)


def _short(text: str) -> str:
    return _escaped(shortened(" ".join(text.split()), _TEXT))


def _line(text: str) -> str:
    """``text`` as a line that may start a paragraph."""
    return _START.sub(r"\\", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    """``text`` with a backslash before what GitHub would take for markup, HTML or mathematics."""
    return _MARKUP.sub(lambda found: "\\" + found[0], showable(text))
