"""Tables as Markdown and LaTeX."""

import re

from mars_score.report.contents import Table, showable

_MARKUP = re.compile(r"[\\`*_~<|$]|\](?=[(\[:])|&(?=[#\w])|!(?=\[)")
_START = re.compile(r"^(?=[#>=]|[-+](?:[\s-]|$))|(?<=^\d)(?=[.)](?:\s|$))")


def table_to_markdown(table: Table) -> str:
    """A table with its title and note."""
    note = [line_to_markdown(table.note)] if table.note else []
    heading, *rows = (
        [_escaped(text).replace("\n", "<br>") for text in row] for row in (table.columns, *table.rows)
    )
    rule = [":--", *["--:"] * (len(heading) - 1)]
    grid = "\n".join(f"| {' | '.join(row)} |" for row in (heading, rule, *rows))
    return "\n\n".join([f"**{line_to_markdown(table.title)}**", *note, grid])


def line_to_markdown(text: str) -> str:
    """``text`` as a line that may start a paragraph, its markup escaped."""
    return _START.sub(r"\\", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    """``text`` with a backslash before what GitHub would take for markup, HTML or mathematics."""
    return _MARKUP.sub(lambda found: "\\" + found[0], showable(text))


def table_to_latex(table: Table) -> str:
    """A ``tabular``; title and note stand above it as comments, for the caption."""
    import pandas as pd

    rows = [[" ".join(showable(text).split()) for text in row] for row in (table.columns, *table.rows)]
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    comments = "".join(f"% {showable(text)}\n" for text in (table.title, *table.note.splitlines()))
    return comments + str(frame.to_latex(index=False, escape=True, column_format="l" + "r" * (len(rows[0]) - 1)))
