"""Charts as SVG files, by matplotlib's object API: no pyplot, no windows, no settings left behind."""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.report.contents import Bars, shortened, showable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, RULE, PLAIN, ACCENT = "#1b1f24", "#5c6670", "#dfe3e6", "#a9b6c2", "#1f5fa8"
_LABEL = 26  # characters
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mars",
    "axes.edgecolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


@contextmanager
def _chart_settings() -> Iterator[None]:
    """Matplotlib's defaults and the settings of these charts, whatever the user's are, until the block ends."""
    try:
        from matplotlib import style
    except ImportError as error:
        raise ImportError("charts need matplotlib; run: pip install 'mars-score[meta]'") from error
    with style.context(["default", _SETTINGS]):
        yield


def check_charts() -> None:
    """Raise ImportError, with the remedy, if charts cannot be drawn as matplotlib is missing."""
    with _chart_settings():
        pass


def save_chart(chart: Bars, path: str | os.PathLike[str]) -> None:
    """Draw a chart into an SVG file."""
    buffer = io.BytesIO()
    with _chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # an SVG is shown with the reader's fonts
        _bars_figure(chart).savefig(buffer, format="svg", metadata={"Date": None})
    Path(path).write_bytes(buffer.getvalue())


def _bars_figure(bars: Bars) -> Figure:
    """Horizontal bars with whiskers and values, "n/a" without a value."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 0.42 + 0.27 * len(bars.labels)), layout="constrained")
    axes = figure.add_subplot()
    place: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
    for row, (value, low, high) in enumerate(zip(bars.values, bars.lows, bars.highs, strict=True)):
        if not math.isfinite(value):
            axes.annotate("n/a", (0, row), (5, 0), color=MUTED, **place)
            continue
        axes.barh(row, value, height=0.66, color=ACCENT if row in bars.highlighted else PLAIN)
        end = max(value, 0.0)
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [row, row], color=INK, linewidth=1.3, solid_capstyle="butt")
            end = max(end, high)
        text = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
        axes.annotate(text, (end, row), (4, 0), color=INK, **place)
    axes.set_yticks(range(len(bars.labels)), [shortened(showable(label), _LABEL) for label in bars.labels])
    axes.set_ylim(len(bars.labels) - 0.45, -0.55)
    axes.margins(x=0.15)
    axes.tick_params(axis="y", labelsize=9.5, labelcolor=INK, length=0)
    axes.tick_params(axis="x", labelsize=8.5, length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvline(0, color=MUTED, linewidth=0.9)
    return figure
