"""Tables and charts for people: a :class:`~mars_score.report.contents.Report` as one HTML page and as Markdown.

A report holds tables, points, bars and texts, computed and ordered already. Charts need matplotlib (the extra
``mars-score[meta]``).
"""

from __future__ import annotations

import os
from pathlib import Path

from mars_score.data.files import whole_file
from mars_score.report.contents import Report
from mars_score.report.markdown import to_markdown
from mars_score.report.page import to_html

__all__ = ["write_report"]


def write_report(report: Report, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write ``index.html`` and ``report.md``, both whole, into ``folder``, which is made where it is missing.

    Returns:
        The paths of the page and of the Markdown.

    Raises:
        ImportError: the report has charts and matplotlib is missing; nothing is written.
        OSError: the folder cannot be made or written.
    """
    html, markdown = to_html(report), to_markdown(report)
    page, text = Path(folder) / "index.html", Path(folder) / "report.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(page) as page_file, whole_file(text) as text_file:
        page_file.write(html)
        text_file.write(markdown)
    return page, text
