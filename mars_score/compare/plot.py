"""A ranking as a picture: scores with their intervals, and how the rows of the two best systems differ."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mars_score.compare.result import SystemRanking
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


def write_plot(ranking: SystemRanking, path: str | os.PathLike[str]) -> None:
    """Draw a ranking into an SVG or PNG file, by the end of its name.

    Raises:
        ValueError, OSError, ImportError: as :func:`check_plot`.
    """
    kind = _format(path)
    buffer = io.BytesIO()
    with chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # an SVG is shown with the reader's fonts
        figure = ranking_figure(ranking)
        figure.savefig(buffer, format=kind, dpi=150, metadata=_METADATA[kind])
    Path(path).write_bytes(buffer.getvalue())


def ranking_figure(ranking: SystemRanking) -> Figure:
    """The figure; to be called and drawn within ``chart_settings``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 2.3 + 0.4 * len(ranking.systems)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    _draw_scores(left, ranking)
    _draw_rows(right, ranking)
    return figure


def _draw_scores(axes: Axes, ranking: SystemRanking) -> None:
    for place, system in enumerate(ranking.systems):
        colour = (ACCENT, WARM, MUTED)[min(place, 2)]
        axes.plot([system.interval.low, system.interval.high], [place, place], color=colour, linewidth=1.6)
        axes.plot(system.score, place, "o", color=colour, markersize=6)
        axes.annotate(
            true_minus(f"{system.score:.3f}"),
            (system.score, place),
            (0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    count = len(ranking.systems)
    axes.set_yticks(range(count), [shortened(showable(system.name), 24) for system in ranking.systems])
    axes.set_ylim(count - 0.4, -0.6)
    axes.margins(x=0.15)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.tick_params(labelsize=9, length=0)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(f"MARS, with {ranking.confidence:.0%} intervals", fontsize=9.5, color=INK)


def _draw_rows(axes: Axes, ranking: SystemRanking) -> None:
    """The differences in order, as one area for each sign: a bar per row would make the file large."""
    best, next_best = ranking.systems[:2]
    values = np.sort(np.subtract(best.scores, next_best.scores))[::-1]
    edges, heights = np.arange(len(values) + 1), np.append(values, values[-1])
    axes.fill_between(edges, np.clip(heights, 0, None), step="post", color=ACCENT, linewidth=0)
    axes.fill_between(edges, np.clip(heights, None, 0), step="post", color=WARM, linewidth=0)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.tick_params(labelsize=9, length=2.5)
    axes.set_xticks([])
    axes.margins(x=0)
    names = [shortened(showable(system.name), 18) for system in (best, next_best)]
    pair = ranking.pairs[0]
    axes.set_title(f"{names[0]} minus {names[1]}, row by row", fontsize=9.5, color=INK)
    axes.set_xlabel(f"{pair.wins} won, {pair.ties} tied, {pair.losses} lost", fontsize=9, color=MUTED)


def _format(path: str | os.PathLike[str]) -> str:
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise ValueError(f"{os.fspath(path)}: a plot is written as .svg or .png; name the file so")
    return kind
