"""What is correlated at each level: items, items within their groups, systems' means."""

from __future__ import annotations

import numpy as np
from scipy import stats

from mars_score.stats.rated import Coefficient, Rated
from mars_score.stats.weighted import (
    ROUNDING,
    Codes,
    Floats,
    Statistic,
    kendall,
    pearson,
    quotient,
    scaled,
    signs,
    spearman,
    weighted_pearson,
)


def statistic_of(items: Rated) -> Statistic:
    """The coefficient as a function of how often each group is drawn."""
    if items.level == "within_groups":
        return _within_groups(items)
    if items.level == "systems":
        return _over_systems(items)
    if items.coefficient == "pearson":
        return pearson(scaled(items.scores), scaled(items.ratings), items.groups)
    return (spearman if items.coefficient == "spearman" else kendall)(items.scores, items.ratings, items.groups)


def standardised(items: Rated) -> Floats:
    """The scores, on a scale that all metrics share."""
    if items.level == "within_groups":
        scores = within(items.scores, items.groups, items.coefficient)
    elif items.level == "items" and items.coefficient != "pearson":
        scores = np.asarray(stats.rankdata(items.scores), dtype=np.float64)
    else:
        scores = scaled(items.scores)
    return np.asarray((scores - scores.mean()) / scores.std())


def _members(groups: Codes) -> list[Codes]:
    """The items of each group."""
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])


def within(values: Floats, groups: Codes, coefficient: Coefficient) -> Floats:
    """Values as they are compared within groups, their mean 0 in every group.

    Pearson: minus the mean of the group, and 0 where only rounding is left. Rank coefficients: ranks within the
    group as fractions of its size, in (-1/2, 1/2).
    """
    sizes = np.bincount(groups)
    if coefficient == "pearson":
        values = scaled(values)
        centred = values - (np.bincount(groups, values) / sizes)[groups]
        return np.where(np.abs(centred) > ROUNDING, centred, 0)
    # Ranks over all items sorted by group, then by value; less the items of the groups before.
    _, codes = np.unique(values, return_inverse=True)
    ranks = stats.rankdata(groups * len(values) + codes) - (np.cumsum(sizes) - sizes)[groups]
    return np.asarray((ranks - 0.5) / sizes[groups] - 0.5)


def _within_groups(items: Rated) -> Statistic:
    """The pooled coefficient: three sums per group, which a resample adds up."""
    x, y = (within(values, items.groups, items.coefficient) for values in (items.scores, items.ratings))
    if items.coefficient == "kendall":
        sums = np.array([_pair_sums(x[members], y[members]) for members in _members(items.groups)])
    else:
        sums = np.stack([np.bincount(items.groups, product) for product in (x * y, x * x, y * y)], axis=1)
    return lambda counts: quotient(*(counts @ sums).T)


def _pair_sums(x: Floats, y: Floats) -> tuple[int, int, int]:
    """Ordered pairs of the items: concordant minus discordant; differing in x; differing in y."""
    x_signs, y_signs = signs(x, x).astype(np.int64), signs(y, y).astype(np.int64)
    return int((x_signs * y_signs).sum()), int(np.abs(x_signs).sum()), int(np.abs(y_signs).sum())


def _system_sums(values: Floats, items: Rated) -> Floats:
    """Sums of values by (group, system)."""
    shape = (items.group_count, items.system_count)
    cells = items.groups * items.system_count + items.systems
    return np.asarray(np.bincount(cells, values, shape[0] * shape[1]), dtype=np.float64).reshape(shape)


def _means(sums: Floats, sizes: Floats) -> Floats:
    """Means, NaN where there are no items; rounded, as means that are equal must be ties."""
    return np.round(sums / np.where(sizes > 0, sizes, np.nan), 12)


def system_means(values: Floats, items: Rated) -> Floats:
    """The mean of each system's values, (systems,)."""
    return _means(*(_system_sums(v, items).sum(axis=0) for v in (values, np.ones_like(values))))


def _over_systems(items: Rated) -> Statistic:
    """The coefficient over the systems' means; undefined in a resample that lacks one of the systems."""
    x, y, ones = (
        _system_sums(values, items)
        for values in (scaled(items.scores), scaled(items.ratings), np.ones_like(items.scores))
    )
    coefficient = items.coefficient

    def statistic(counts: Floats) -> Floats:
        sizes = counts @ ones
        x_means, y_means = _means(counts @ x, sizes), _means(counts @ y, sizes)
        if coefficient == "kendall":
            x_signs, y_signs = (np.sign(means[:, :, None] - means[:, None, :]) for means in (x_means, y_means))
            return quotient(
                np.einsum("rst,rst->r", x_signs, y_signs),
                np.einsum("rst,rst->r", x_signs, x_signs),
                np.einsum("rst,rst->r", y_signs, y_signs),
            )
        if coefficient == "spearman":
            x_means, y_means = stats.rankdata(x_means, axis=1), stats.rankdata(y_means, axis=1)
        return weighted_pearson(np.ones_like(x_means), x_means, y_means)

    return statistic
