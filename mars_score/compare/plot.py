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

_METADATA: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".png": {"Software": None}}


def check_plot(path: str | os.PathLike[str]) -> None:
    """Check, before any scoring, that :func:`write_plot` can write.

    Raises:
        ValueError: neither an SVG nor a PNG file.
        OSError: the folder is missing.
        ImportError: matplotlib is missing; says how to install it.
    """
    if Path(path).suffix.lower() not in _METADATA:
        raise ValueError(f"{os.fspath(path)}: a plot is written as .svg or .png; name the file so")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: the folder does not exist; make it first")
    with chart_settings():
        pass


def write_plot(ranking: SystemRanking, path: str | os.PathLike[str]) -> None:
    """Draw a ranking into an SVG or PNG file, by the end of its name.

    Raises:
        ValueError, OSError, ImportError: as :func:`check_plot`.
    """
    check_plot(path)
    kind, buffer = Path(path).suffix.lower(), io.BytesIO()
    with chart_settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")  # an SVG is shown with the reader's fonts
        ranking_figure(ranking).savefig(buffer, format=kind[1:], dpi=150, metadata=_METADATA[kind])
    Path(path).write_bytes(buffer.getvalue())


def ranking_figure(ranking: SystemRanking) -> Figure:
    """The figure; to be called and drawn within ``chart_settings``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 2.3 + 0.4 * len(ranking.systems)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    _draw_scores(left, ranking)
    _draw_rows(right, ranking)
    for axes in (left, right):
        axes.tick_params(labelsize=9, length=0)
        axes.title.set(fontsize=9.5, color=INK)
    return figure


def _draw_scores(axes: Axes, ranking: SystemRanking) -> None:
    for place, system in enumerate(ranking.systems):
        score, (low, high) = system.score, (system.interval.low, system.interval.high)
        axes.errorbar(score, place, xerr=[[score - low], [high - score]], fmt="o", color=ACCENT)
        label = true_minus(f"{score:.3f}")
        axes.annotate(label, (score, place), (0, 8), textcoords="offset points", ha="center", fontsize=9)
    count = len(ranking.systems)
    axes.set_yticks(range(count), [shortened(showable(system.name), 24) for system in ranking.systems])
    axes.set_ylim(count - 0.4, -0.6)
    axes.margins(x=0.15)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(f"MARS, with {ranking.confidence:.0%} intervals")


def _draw_rows(axes: Axes, ranking: SystemRanking) -> None:
    """The differences in order, as one area for each sign: a bar per row would make the file large."""
    values = np.sort(np.subtract(ranking.systems[0].scores, ranking.systems[1].scores))[::-1]
    edges, heights = np.arange(len(values) + 1), np.append(values, values[-1])
    for part, colour in ((heights.clip(min=0), ACCENT), (heights.clip(max=0), WARM)):
        axes.fill_between(edges, part, step="post", color=colour, linewidth=0)
    axes.axhline(0, color=MUTED, linewidth=0.9)
    axes.set_xticks([])
    axes.margins(x=0)
    pair = ranking.pairs[0]
    names = (shortened(showable(name), 18) for name in (pair.first, pair.second))
    axes.set_title(f"{' minus '.join(names)}, row by row")
    axes.set_xlabel(f"{pair.wins} won, {pair.ties} tied, {pair.losses} lost", fontsize=9, color=MUTED)
