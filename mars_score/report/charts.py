"""Charts as SVG for an HTML page, by matplotlib's object API: no pyplot, no windows, no settings left behind."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from mars_score.report.contents import Bars, Scatter, shortened, showable, true_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# On paper; a page replaces all but POINT, which is drawn in pixels, by colours of its own.
INK, MUTED, RULE, PLAIN, ACCENT, WARM = "#1b1f24", "#5c6670", "#dfe3e6", "#a9b6c2", "#1f5fa8", "#b4470f"
POINT = "#4a86c8"
_LABEL = 26  # characters
_RASTER_DPI = 130
_COLOURS = {
    colour: f"var(--{name})"
    for name, colour in {
        "ink": INK,
        "muted": MUTED,
        "rule": RULE,
        "plain": PLAIN,
        "accent": ACCENT,
        "warm": WARM,
    }.items()
}
_COLOUR = re.compile("|".join(_COLOURS))
_FAMILY = re.compile(r"font-family:[^;]*;? ?")
_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([\w-]+)")
_SETTINGS = {
    "svg.fonttype": "none",  # text stays text, in the font of the page
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
def chart_settings() -> Iterator[None]:
    """Matplotlib's defaults and the settings of these charts, whatever the user's are, until the block ends.

    Raises:
        ImportError: matplotlib is missing; says how to install it.
    """
    try:
        from matplotlib import style
    except ImportError as error:
        raise ImportError("charts need matplotlib; run: pip install 'mars-score[meta]'") from error
    with style.context(["default", _SETTINGS]):
        yield


def inline_svg(chart: Scatter | Bars, name: str, label: str) -> str:
    """A chart as an ``<svg>`` element of an HTML page, in the colours and the font of the page.

    Args:
        chart: what to draw.
        name: starts the element's ids, which must be unique in the page.
        label: what a screen reader says.

    Raises:
        ImportError: matplotlib is missing; says how to install it.
    """
    buffer = io.BytesIO()
    with chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # the reader's fonts count, not matplotlib's
        figure = scatter_figure(chart) if isinstance(chart, Scatter) else bars_figure(chart)
        figure.savefig(buffer, format="svg", dpi=_RASTER_DPI, metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    _tidy(root)
    _rename_ids(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def finite_points(scatter: Scatter) -> tuple[np.ndarray, np.ndarray]:
    """Scores and ratings of the points of which both are finite."""
    x, y = np.asarray(scatter.x, float), np.asarray(scatter.y, float)
    shown = np.isfinite(x) & np.isfinite(y)
    return x[shown], y[shown]


def regression_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """Slope and intercept of the least-squares line; None of fewer than two points or equal scores."""
    if len(x) < 2 or np.ptp(x) == 0:
        return None
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean()) / (centred @ centred))
    return slope, float(y.mean() - slope * x.mean())


def scatter_figure(scatter: Scatter) -> Figure:
    """Points and regression line; the points are pixels, since thousands of shapes would swell a page.

    To be called, and the figure to be drawn, within :func:`chart_settings`.
    """
    figure, axes = _figure(1.9, 1.45)
    x, y = finite_points(scatter)
    size = float(np.clip(2000 / max(len(x), 1), 2.5, 9))
    axes.scatter(x, y, s=size, c=POINT, alpha=0.6, linewidths=0, rasterized=True)
    line = regression_line(x, y)
    if line is not None:
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, line[0] * ends + line[1], color=WARM, linewidth=1.4, solid_capstyle="round")
    axes.tick_params(labelsize=7.5, length=2.5, pad=2)
    axes.locator_params(nbins=4)
    axes.margins(0.04, 0.06)
    return figure


def bars_figure(bars: Bars) -> Figure:
    """Horizontal bars with whiskers and values; to be called and drawn within :func:`chart_settings`."""
    figure, axes = _figure(4.6, 0.42 + 0.27 * len(bars.labels))
    rows = range(len(bars.labels))
    for row in rows:
        _draw_bar(axes, bars, row)
    axes.set_yticks(rows, [shortened(showable(label), _LABEL) for label in bars.labels])
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(*_range(bars))
    axes.tick_params(axis="y", labelsize=9.5, labelcolor=INK, length=0)
    axes.tick_params(axis="x", labelsize=8.5, length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.axvline(0, color=MUTED, linewidth=0.9)
    return figure


def _range(bars: Bars) -> tuple[float, float]:
    """Left and right end of the axis: zero, all bars and intervals, and room for the values beside them."""
    drawn = [0.0, *filter(math.isfinite, (*bars.values, *bars.lows, *bars.highs))]
    low, high = min(drawn), max(drawn)
    room = 0.15 * ((high - low) or 1.0)
    return low - room / 8, high + room


def _draw_bar(axes: Axes, bars: Bars, row: int) -> None:
    """Bar, interval and value; "n/a" without a value."""
    value, low, high = bars.values[row], bars.lows[row], bars.highs[row]
    strong = row in bars.highlighted
    if not math.isfinite(value):
        axes.annotate("n/a", (0, row), (5, 0), textcoords="offset points", va="center", fontsize=8.5, color=MUTED)
        return
    axes.barh(row, value, height=0.66, color=ACCENT if strong else PLAIN)
    end = max(value, 0.0)
    if math.isfinite(low) and math.isfinite(high):
        axes.plot([low, high], [row, row], color=INK, linewidth=1.3, solid_capstyle="butt")
        end = max(end, high)
    axes.annotate(
        true_minus(f"{value:.2f}"),
        (end, row),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=INK if strong else MUTED,
    )


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03)  # type: ignore[union-attr,call-arg]
    figure.patch.set_visible(False)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    return figure, axes


def _tidy(root: ElementTree.Element) -> None:
    """Strip what a page does not need or would take for its own, and name colours by the page's variables."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("metadata", "}style")):  # a style would hold for the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
        attributes = {_NAMESPACE.sub("", key): value for key, value in element.attrib.items()}
        if attributes.get("transform", "").startswith("rotate(-0 "):
            del attributes["transform"]
        if "style" in attributes:
            style = _FAMILY.sub("", attributes["style"])
            attributes["style"] = _COLOUR.sub(lambda found: _COLOURS[found[0]], style)
        element.attrib = attributes
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None


def _rename_ids(root: ElementTree.Element, name: str) -> None:
    """Drop the ids that nothing refers to, and make the others unique in a page."""
    used = {
        found
        for element in root.iter()
        for key, value in element.attrib.items()
        if _refers(key, value)
        for found in _REFERENCE.findall(value)
    }
    ids = (element.attrib["id"] for element in root.iter() if element.attrib.get("id") in used)
    names = {old: f"{name}-{count}" for count, old in enumerate(ids)}
    for element in root.iter():
        old = element.attrib.pop("id", "")
        for key, value in element.attrib.items():
            if _refers(key, value):
                element.attrib[key] = _REFERENCE.sub(lambda found: "#" + names[found[1]], value)
        if old in names:
            element.attrib["id"] = names[old]


def _refers(key: str, value: str) -> bool:
    return (key == "href" and value.startswith("#")) or value.startswith("url(#")
