"""Draws of whole groups, and statistics over many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mars_score.stats.rated import Rated
from mars_score.stats.weighted import AT_ONCE, Floats, Statistic

Draw = Callable[[np.random.Generator, int], tuple[Floats, ...]]


def draw_groups(count: int) -> Draw:
    """Draws as many groups as there are, with replacement; the same for every metric."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[Floats, ...]:
        picks = rng.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        counts = np.bincount(picks.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)
        return counts, counts

    return draw


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless it lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


def check_resamples(resamples: int) -> None:
    """Raise ValueError for fewer than one."""
    if resamples < 1:
        raise ValueError(f"resamples must be positive, got {resamples}")


def percentiles(values: Floats, confidence: float) -> tuple[float, float]:
    """The ends between which the middle part of the values lies."""
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def resample(
    statistics: Sequence[Statistic], draw: Draw, items: Rated, resamples: int, seed: int | np.random.Generator
) -> list[Floats]:
    """The values of each statistic, (resamples,), some resamples at a time.

    Args:
        statistics: at most two.
        draw: how often each group is drawn, for each statistic.
        items: those of the statistics.
        resamples: how many.
        seed: a seed or a generator.

    Raises:
        ValueError: fewer than one resample.
    """
    check_resamples(resamples)
    rng = np.random.default_rng(seed)
    rows = max(1, AT_ONCE // max(len(items.scores), items.system_count**2))  # by what a statistic holds at once
    chunks = []
    for start in range(0, resamples, rows):
        counts = draw(rng, min(rows, resamples - start))
        chunks.append([statistic(count) for statistic, count in zip(statistics, counts, strict=False)])
    return [np.concatenate(values) for values in zip(*chunks, strict=True)]
