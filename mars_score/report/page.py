"""A report as one HTML page that needs nothing else: no network, no fonts, no other files."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from itertools import count
from pathlib import Path
from typing import Any

from mars_score.report.charts import finite_points, inline_svg
from mars_score.report.contents import (
    MISSING,
    Bars,
    Disagreement,
    Report,
    Scatter,
    Table,
    shortened,
    showable,
    signed,
    together,
    true_minus,
)

_LONG = 420  # characters of a text, above which only _START are shown at first
_START = 240
_WORDY = 40  # characters of a cell, above which it is set as a text
_NONE = (MISSING, "")
_COEFFICIENT = re.compile(r"(\+|-|\u2212|)(0?\.\d+|1\.0+)(?!\d)")
_CHANCE = re.compile(r"\bp\b|\bp[-_ ]?values?\b", re.IGNORECASE)
_KINDS = {Table: "table", Scatter: "scatters", Bars: "bars", Disagreement: "disagreements"}


def to_html(report: Report) -> str:
    """The page; the same report gives the same page.

    Texts are shown as they are, markup included. Columns of coefficients are tinted by value. The page's content
    security policy lets browsers run its own script only, and load nothing.

    Raises:
        ImportError: the report has charts and matplotlib is missing; says how to install it.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    numbers = count(1)

    def chart(part: Scatter | Bars) -> Any:
        return Markup(inline_svg(part, f"chart-{next(numbers)}", _label(part)))

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(shortened=shortened, signed=signed, true_minus=true_minus)
    environment.globals.update(chart=chart, cell_look=_cell_look, tinted_columns=_tinted_columns)
    template, style, script = (
        Path(__file__).with_name(f"page.{kind}").read_text("utf-8") for kind in ("j2", "css", "js")
    )
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.from_string(template).render(
        report=report,
        sections=_sections(report),
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'",
        long=_LONG,
        start=_START,
    )
    return showable(page)


def _sections(report: Report) -> list[dict[str, Any]]:
    """What the template shows: sections with the blocks of parts that stand together, and their ids."""
    return [
        {
            "id": f"section-{number}",
            "title": section.title,
            "note": section.note,
            "blocks": [
                {"id": f"part-{number}-{place}", "kind": _KINDS[type(parts[0])], "title": title, "parts": parts}
                for place, (title, parts) in enumerate(together(section.parts), 1)
            ],
        }
        for number, section in enumerate(report.sections, 1)
    ]


def _tinted_columns(table: Table) -> frozenset[int]:
    """Columns of coefficients: decimals from -1 to 1 and nothing else, p-values apart."""
    tinted = []
    for place, column in enumerate(table.columns[1:], 1):
        values = [row[place] for row in table.rows if row[place] not in _NONE]
        if not _CHANCE.search(f"{table.title} {column}") and all(map(_COEFFICIENT.match, values)):
            tinted.append(place)
    return frozenset(tinted)


def _cell_look(text: str, tinted: bool) -> dict[str, str]:
    """Attributes of a table's cell; of a tint, the colour is the sign and the strength the size."""
    if text in _NONE:
        return {"class": "none"}
    if len(text) > _WORDY:
        return {"class": "wordy"}
    found = _COEFFICIENT.match(text) if tinted else None
    if found is None:
        return {}
    return {
        "class": "cold" if found[1] in ("-", "\u2212") else "warm",
        "style": f"--share: {float(found[2]) * 0.5:.2f}",
    }


def _label(part: Scatter | Bars) -> str:
    """A chart in words."""
    if isinstance(part, Scatter):
        points = len(finite_points(part)[0])
        told = f"scatter plot of {part.metric} scores against ratings, {points} points, {part.coefficient}"
        return f"{part.title}: {told}"
    bars = zip(part.labels, part.values, part.lows, part.highs, strict=True)
    if not any(map(math.isfinite, part.lows)):
        told = "; ".join(f"{label} {value:.3f}" for label, value, _, _ in bars)
        return f"{part.title}: bar chart: {told}"
    told = "; ".join(f"{label} {value:.3f} ({low:.3f} to {high:.3f})" for label, value, low, high in bars)
    return f"{part.title}: bar chart with confidence intervals: {told}"
