"""A comparison as a picture: both scores with their intervals, and the differences of all rows in order."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mars_score.compare.result import SystemComparison
from mars_score.report.charts import ACCENT, INK, MUTED, RULE, WARM, chart_settings
from mars_score.report.contents import shortened, showable, true_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "png": {"Software": None}}


def check_plot(path: str | os.PathLike[str]) -> None:
    """Check, before any scoring, that :func:`write_plot` can write.

    Raises:
        ValueError: neither an SVG nor a PNG file.
        OSError: the folder is missing.
        ImportError: matplotlib is missing; says how to install it.
    """
    _format(path)
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: the folder does not exist; make it first")
    with chart_settings():
        pass


def write_plot(comparison: SystemComparison, path: str | os.PathLike[str]) -> None:
    """Draw a comparison into an SVG or PNG file, by the end of its name.

    Raises:
        ValueError, OSError, ImportError: as :func:`check_plot`.
    """
    kind = _format(path)
    buffer = io.BytesIO()
    with chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # an SVG is shown with the reader's fonts
        figure = comparison_figure(comparison)
        figure.savefig(buffer, format=kind, dpi=150, metadata=_METADATA[kind])
    Path(path).write_bytes(buffer.getvalue())


def comparison_figure(comparison: SystemComparison) -> Figure:
    """The figure; to be called and drawn within ``chart_settings``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    _draw_scores(left, comparison)
    _draw_rows(right, comparison)
    return figure


def _draw_scores(axes: Axes, comparison: SystemComparison) -> None:
    intervals = (comparison.test.first, comparison.test.second)
    for place, (one, interval, colour) in enumerate(
        zip(comparison.systems, intervals, (ACCENT, WARM), strict=True)
    ):
        axes.plot([interval.low, interval.high], [place, place], color=colour, linewidth=1.6)
        axes.plot(one.score, place, "o", color=colour, markersize=6)
        axes.annotate(
            true_minus(f"{one.score:.3f}"),
            (one.score, place),
            (0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    axes.set_yticks([0, 1], [shortened(showable(name), 24) for name in comparison.names])
    axes.set_ylim(1.6, -0.6)
    axes.margins(x=0.15)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.tick_params(labelsize=9, length=0)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(f"MARS, with {comparison.confidence:.0%} intervals", fontsize=9.5, color=INK)


def _draw_rows(axes: Axes, comparison: SystemComparison) -> None:
    """As one area for each sign: a bar per row would make the file large."""
    values = np.sort([row.difference for row in comparison.rows])[::-1]
    edges = np.arange(len(values) + 1)
    heights = np.append(values, values[-1])
    axes.fill_between(edges, np.clip(heights, 0, None), step="post", color=ACCENT, linewidth=0)
    axes.fill_between(edges, np.clip(heights, None, 0), step="post", color=WARM, linewidth=0)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.tick_params(labelsize=9, length=2.5)
    axes.set_xticks([])
    axes.margins(x=0)
    first, second = (shortened(showable(name), 18) for name in comparison.names)
    wins, ties, losses = comparison.win_tie_loss
    axes.set_title(f"{first} minus {second}, row by row", fontsize=9.5, color=INK)
    axes.set_xlabel(f"{wins} won, {ties} tied, {losses} lost", fontsize=9, color=MUTED)


def _format(path: str | os.PathLike[str]) -> str:
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise ValueError(f"{os.fspath(path)}: a plot is written as .svg or .png; name the file so")
    return kind
