"""Figures as text: SVG to stand inside an HTML page, and PNG for a ``data:`` address."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from mars_score.meta.report import charts
from mars_score.meta.report.contents import Bars, Scatter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RASTER_DPI = 130
_VARIABLES = ("INK", "MUTED", "RULE", "PLAIN", "ACCENT", "WARM")
_COLOURS = {getattr(charts, name): f"var(--{name.lower()})" for name in _VARIABLES}
_COLOUR = re.compile("|".join(_COLOURS))
_FAMILY = re.compile(r"font-family:[^;]*;? ?")
_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([\w-]+)")


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
    with _figure(chart) as figure:
        figure.savefig(buffer, format="svg", dpi=_RASTER_DPI, metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    _tidy(root)
    _rename_ids(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def png_address(chart: Scatter | Bars) -> str:
    """A chart as a ``data:image/png`` address, on white.

    Raises:
        ImportError: matplotlib is missing; says how to install it.
    """
    buffer = io.BytesIO()
    with _figure(chart) as figure:
        figure.patch.set(visible=True, facecolor="white")
        figure.savefig(buffer, format="png", dpi=_RASTER_DPI, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


@contextmanager
def _figure(chart: Scatter | Bars) -> Iterator[Figure]:
    with charts.chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # the reader's fonts count, not matplotlib's
        yield charts.scatter_figure(chart) if isinstance(chart, Scatter) else charts.bars_figure(chart)


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
