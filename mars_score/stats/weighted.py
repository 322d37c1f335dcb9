"""Coefficients over items, each of which counts as often as its group was drawn.

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


class _Ties:
    """Items of equal value, for items with multiplicities."""

    def __init__(self, values: Floats) -> None:
        _, self._codes = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._codes, kind="stable")
        self._starts = np.flatnonzero(np.diff(self._codes[self._order], prepend=-1))

    def sizes(self, weights: Floats) -> Floats:
        """(rows, items) to how many items have each of the values, (rows, values), smallest value first."""
        return np.add.reduceat(weights[:, self._order], self._starts, axis=1)

    def ranks(self, weights: Floats) -> Floats:
        """The rank of each item, (rows, items); equal items share the mean of their ranks."""
        sizes = self.sizes(weights)
        return (np.cumsum(sizes, axis=1) - sizes / 2 + 0.5)[:, self._codes]

    def differing(self, weights: Floats) -> Floats:
        """The number of ordered pairs whose values differ, (rows,)."""
        return np.asarray(weights.sum(axis=1) ** 2 - (self.sizes(weights) ** 2).sum(axis=1))


def pearson(x: Floats, y: Floats, groups: Codes) -> Statistic:
    """Pearson's r over all items."""
    return lambda counts: weighted_pearson(counts[:, groups], x, y)


def spearman(x: Floats, y: Floats, groups: Codes) -> Statistic:
    """Spearman's rho over all items, ranked again in every resample."""
    x_ties, y_ties = _Ties(x), _Ties(y)

    def statistic(counts: Floats) -> Floats:
        weights = counts[:, groups]
        return weighted_pearson(weights, x_ties.ranks(weights), y_ties.ranks(weights))

    return statistic


def kendall(x: Floats, y: Floats, groups: Codes) -> Statistic:
    """Kendall's tau-b over all items: a quadratic form of the counts (a pair of copies is a tie)."""
    x_ties, y_ties = _Ties(x), _Ties(y)
    order = np.argsort(groups, kind="stable")
    x, y, ordered = x[order], y[order], groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    # concordance[g, h]: concordant minus discordant pairs of an item of group g and one of group h.
    concordance = np.zeros((len(starts), len(starts)))
    rows = max(1, AT_ONCE // max(len(x), 1))
    for start in range(0, len(x), rows):
        some = slice(start, start + rows)
        products = signs(x[some], x) * signs(y[some], y)
        np.add.at(concordance, ordered[some], np.add.reduceat(products, starts, axis=1, dtype=np.float64))

    def statistic(counts: Floats) -> Floats:
        weights = counts[:, groups]
        pairs = np.einsum("rg,rg->r", counts @ concordance, counts)
        return quotient(pairs, x_ties.differing(weights), y_ties.differing(weights))

    return statistic


def signs(rows: Floats, columns: Floats) -> NDArray[np.int8]:
    """The sign of each row's value minus each column's; by comparison, a difference may underflow."""
    larger, smaller = rows[:, None] > columns, rows[:, None] < columns
    return larger.astype(np.int8) - smaller.astype(np.int8)
