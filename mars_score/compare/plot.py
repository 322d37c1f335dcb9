"""A ranking as a picture: scores with their intervals."""

from __future__ import annotations

import os
from pathlib import Path

from mars_score.compare.result import SystemRanking
from mars_score.report.charts import check_charts, save_chart
from mars_score.report.contents import Bars


def check_plot(path: str | os.PathLike[str]) -> None:
    """Check, before any scoring, that :func:`write_plot` can write.

    Raises:
        ValueError: neither an SVG nor a PNG file.
        OSError: the folder is missing.
        ImportError: matplotlib is missing; says how to install it.
    """
    if Path(path).suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"{os.fspath(path)}: a plot is written as .svg or .png; name the file so")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: the folder does not exist; make it first")
    check_charts()


def write_plot(ranking: SystemRanking, path: str | os.PathLike[str]) -> None:
    """Draw a ranking into an SVG or PNG file, by the end of its name; errors are those of :func:`check_plot`."""
    check_plot(path)
    systems = ranking.systems
    bars = Bars(
        f"MARS, with {ranking.confidence:.0%} intervals",
        tuple(system.name for system in systems),
        tuple(system.score for system in systems),
        tuple(system.interval.low for system in systems),
        tuple(system.interval.high for system in systems),
        frozenset([0]),
    )
    save_chart(bars, path)
