"""Pearson's r over items, each of which counts as often as its group was drawn.

A resample is a vector of how often each group was drawn; coefficients are computed for many resamples at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# How often each group was drawn, (resamples, groups), to one value per resample, NaN where it is undefined.
Statistic = Callable[[Floats], Floats]

# Values that differ by less than this, relative to the largest, are equal but for rounding.
ROUNDING = 1e-12
# Numbers per array, at most: resamples are computed in chunks.
AT_ONCE = 1_000_000


def scaled(values: Floats) -> Floats:
    """Shifted to mean 0 and divided by the largest size, so that sums neither overflow nor cancel.

    All 0 where the values differ by rounding alone.
    """
    largest = np.abs(values).max(initial=0.0)
    if not largest:
        return values
    values = values / largest
    if np.ptp(values) <= ROUNDING:
        return np.zeros_like(values)
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max())


def quotient(xy: Floats, xx: Floats, yy: Floats) -> Floats:
    """The quotient xy / sqrt(xx yy) between -1 and 1; NaN where xx or yy is not positive."""
    defined = (xx > 0) & (yy > 0)
    size = np.sqrt(np.where(defined, xx, np.nan)) * np.sqrt(np.where(defined, yy, np.nan))
    return np.asarray(np.clip(xy / size, -1, 1))


def weighted_pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r of each row; x and y: (items,) or (rows, items)."""
    total = weights.sum(axis=1)

    def centred(values: Floats) -> tuple[Floats, Floats, Floats]:
        mean = np.einsum("ri,ri->r", weights, np.broadcast_to(values, weights.shape)) / total
        deviations = values - mean[:, None]
        weighted = weights * deviations
        square = np.einsum("ri,ri->r", weighted, deviations)
        square[square <= total * (ROUNDING * mean) ** 2] = 0
        return deviations, weighted, square

    x_deviations, _, xx = centred(x)
    _, y_weighted, yy = centred(y)
    return quotient(np.einsum("ri,ri->r", x_deviations, y_weighted), xx, yy)
