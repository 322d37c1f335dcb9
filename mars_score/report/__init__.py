"""Tables and charts for people, computed and ordered already. Charts need matplotlib (``mars-score[meta]``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mars_score.data.files import whole_file
from mars_score.report.charts import check_charts, save_chart
from mars_score.report.contents import Bars, Table
from mars_score.report.markup import line_to_markdown, table_to_markdown

__all__ = ["write_report"]


def write_report(
    folder: str | os.PathLike[str], title: str, lines: Sequence[str], parts: Sequence[Table | Bars]
) -> Path:
    """Write ``report.md`` with a list of ``lines`` under a title, and its charts (or ImportError) beside it."""
    if not all(isinstance(part, Table) for part in parts):
        check_charts()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [f"# {line_to_markdown(title)}", "\n".join(f"- {line_to_markdown(line)}" for line in lines)]
    charts = 0
    for part in parts:
        if isinstance(part, Table):
            blocks.append(table_to_markdown(part))
            continue
        charts += 1
        save_chart(part, folder / f"chart-{charts}.svg")
        blocks.append(f"**{line_to_markdown(part.title)}**\n\n![chart {charts}](chart-{charts}.svg)")
    with whole_file(folder / "report.md") as file:
        file.write("\n\n".join(filter(None, blocks)) + "\n")
    return folder / "report.md"
