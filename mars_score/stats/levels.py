"""What is correlated at each level: items, items within their groups, systems' means."""

from __future__ import annotations

import numpy as np
from scipy import stats

from mars_score.stats.rated import Coefficient, Rated
from mars_score.stats.weighted import ROUNDING, Codes, Floats, Statistic, quotient, scaled, weighted_pearson


def statistic_of(items: Rated) -> Statistic:
    """Pearson's r as a function of how often each group is drawn."""
    if items.level == "within_groups":
        return pooled(items, "pearson")
    if items.level == "systems":
        return _over_systems(items)
    x, y = scaled(items.scores), scaled(items.ratings)
    return lambda counts: weighted_pearson(counts[:, items.groups], x, y)


def standardised(items: Rated) -> Floats:
    """The scores with mean 0 and deviation 1; at level "within_groups" centred by group first."""
    is_within = items.level == "within_groups"
    scores = within(items.scores, items.groups, "pearson") if is_within else scaled(items.scores)
    return np.asarray((scores - scores.mean()) / scores.std())


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


def pooled(items: Rated, coefficient: Coefficient) -> Statistic:
    """The coefficient within groups: three sums per group, which a resample adds up."""
    x, y = (within(values, items.groups, coefficient) for values in (items.scores, items.ratings))
    if coefficient == "kendall":
        sums = np.array(
            [_pair_sums(x[items.groups == one], y[items.groups == one]) for one in range(items.group_count)]
        )
    else:
        sums = np.stack([np.bincount(items.groups, product) for product in (x * y, x * x, y * y)], axis=1)
    return lambda counts: quotient(*(counts @ sums).T)


def _pair_sums(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Ordered pairs of the items: concordant minus discordant; differing in x; differing in y."""
    x_signs, y_signs = (np.sign(np.subtract.outer(values, values)) for values in (x, y))
    return float((x_signs * y_signs).sum()), float(np.abs(x_signs).sum()), float(np.abs(y_signs).sum())


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
    """Over the systems' means; undefined in a resample that lacks one of the systems."""
    x, y, ones = (
        _system_sums(values, items)
        for values in (scaled(items.scores), scaled(items.ratings), np.ones_like(items.scores))
    )

    def statistic(counts: Floats) -> Floats:
        sizes = counts @ ones
        return weighted_pearson(np.ones_like(sizes), _means(counts @ x, sizes), _means(counts @ y, sizes))

    return statistic
