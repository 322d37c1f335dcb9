"""Correlation of metric scores with human ratings, with confidence intervals and tests of two metrics.

An item is one rated text. A group contains the items that share a context, which are not independent. A system
wrote some of the items. An undefined result, also due to a missing rating (NaN), is NaN with a reason.

Intervals and tests resample whole groups (Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization
Evaluation Metrics Using Resampling Methods"). An independent item is a group of its own.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from mars_score.stats.resampling import (
    Codes,
    Floats,
    Interval,
    Labels,
    Values,
    bootstrap,
    label_codes,
    permutation_p,
    randomise,
    too_few,
)

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["items", "within_groups", "systems"]
MainLevel = Literal["items", "within_groups"]  # levels with intervals and tests

_FEWEST = 3  # with fewer items a coefficient can only be +-1 or 0
_ROUNDING = 1e-12  # values that differ by less, relative to the largest, are equal
_COEFFICIENTS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
# For the reasons: the unit of each level, and the name of its values that are all equal.
_LEVELS: dict[Level, tuple[str, str]] = {
    "items": ("items", "all"),
    "within_groups": ("items in groups of two or more", "within every group all"),
    "systems": ("systems", "the systems' mean"),
}


@dataclass(frozen=True)
class Estimate:
    """A correlation coefficient of n items (at level "systems": systems), or NaN with the reason."""

    value: float
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class Rated:
    """Scores and ratings as they are compared at a level.

    Attributes:
        scores: (n,).
        ratings: (n,).
        groups: index of each item's group, (n,), or of each system at level "systems".
        group_count: number of all groups, including those of one item, which level "within_groups" leaves out.
        reason: why there is no coefficient.
    """

    scores: Floats
    ratings: Floats
    groups: Codes
    group_count: int
    reason: str | None = None

    @property
    def used_groups(self) -> int:
        """Count the groups that are compared."""
        return len(np.unique(self.groups))


def correlation(
    scores: Values,
    ratings: Values,
    *,
    coefficient: Coefficient = "pearson",
    level: Level = "items",
    groups: Labels | None = None,
    systems: Labels | None = None,
) -> Estimate:
    """Compute the correlation of a metric's scores with human ratings.

    Level "items" correlates all items, and level "systems" the means of each system's items. Level
    "within_groups" compares each item only with items of its group, so that easy groups do not matter:

    - Pearson: values are centred by the mean of their group, then pooled.
    - Spearman: values are replaced by their ranks within the group, as fractions (rank - 1/2) / size, centred
      and pooled. Ranking centred values instead would compare items of different groups.
    - Kendall: concordant, discordant and tied pairs are counted within groups, and their sums put into the
      formula of tau-b.

    Groups of one item do not count at this level, nor in ``n``.

    Args:
        scores: (items,), by the metric, larger is better.
        ratings: (items,), by people, larger is better.
        coefficient: "pearson", "spearman" or "kendall" (tau-b).
        level: see above.
        groups: (items,), strings or integers, needed at level "within_groups".
        systems: (items,), strings or integers, needed at level "systems".

    Returns:
        The coefficient, or NaN if scores or ratings are not finite or do not vary, or with fewer than 3 items.

    Raises:
        ValueError: lengths differ, or labels are missing.
    """
    items = at_level(scores, ratings, level, groups=groups, systems=systems, coefficient=coefficient)
    n = len(items.scores)
    if items.reason:
        return Estimate(math.nan, n, items.reason)
    if level == "within_groups" and coefficient == "kendall":
        return Estimate(_pooled_kendall(items), n)
    # Ranks within groups are pooled as they are, not ranked again.
    compute = stats.pearsonr if level == "within_groups" else _COEFFICIENTS[coefficient]
    return Estimate(float(compute(items.scores, items.ratings).statistic), n)


def at_level(
    scores: Values,
    ratings: Values,
    level: Level,
    *,
    groups: Labels | None = None,
    systems: Labels | None = None,
    coefficient: Coefficient = "pearson",
) -> Rated:
    """Prepare scores and ratings for a level: centred and scaled, within their groups, or as means of systems.

    Args and errors are those of :func:`correlation`.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (scores, ratings))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"one score and one rating per item, got shapes {x.shape} and {y.shape}")
    labels = {"groups": groups, "systems": systems}
    needed = "systems" if level == "systems" else "groups"
    if labels[needed] is None and level != "items":
        raise ValueError(f'level "{level}" needs {needed}')
    codes = {name: label_codes(name, values, len(x)) for name, values in labels.items()}[needed]
    group_count = int(codes.max(initial=-1)) + 1
    missing = _missing(x, y)
    if level == "within_groups":
        several = np.bincount(codes)[codes] > 1
        x, y, codes = x[several], y[several], codes[several]
    if missing:
        return Rated(x, y, codes, group_count, missing)
    if level == "systems":
        x, y = (_means(values, codes) for values in (x, y))
        codes = np.arange(len(x))
    elif level == "within_groups":
        x, y = (_within(values, codes, coefficient) for values in (x, y))
    elif coefficient == "pearson":
        x, y = _scaled(x), _scaled(y)
    return Rated(x, y, codes, group_count, _undefined(x, y, level))


def _missing(x: Floats, y: Floats) -> str | None:
    for name, values in (("ratings", y), ("scores", x)):
        if count := (~np.isfinite(values)).sum():
            return f"{count} of {len(values)} {name} are missing or not finite"
    return None


def _undefined(x: Floats, y: Floats, level: Level) -> str | None:
    unit, every = _LEVELS[level]
    if len(x) < _FEWEST:
        return f"{len(x)} {unit}, fewer than {_FEWEST}"
    for name, values in (("ratings", y), ("scores", x)):
        if np.ptp(_scaled(values)) == 0:
            return f"{every} {name} are equal"
    return None


def _scaled(values: Floats) -> Floats:
    """Centre and scale values into [-1, 1], so that sums neither overflow nor cancel.

    Values that differ only by rounding become 0.
    """
    largest = np.abs(values).max(initial=0.0)
    if not largest:
        return values
    values = values / largest
    if np.ptp(values) <= _ROUNDING:
        return np.zeros_like(values)
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max())


def _means(values: Floats, systems: Codes) -> Floats:
    """Return the mean of each system's values, (systems,), rounded so that equal means are ties."""
    return np.round(np.bincount(systems, _scaled(values)) / np.bincount(systems), 12)


def _within(values: Floats, groups: Codes, coefficient: Coefficient) -> Floats:
    """Subtract the mean of the group or, for rank coefficients, turn values into ranks in (-1/2, 1/2)."""
    groups = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if coefficient == "pearson":
        values = _scaled(values)
        centred = values - (np.bincount(groups, values) / sizes)[groups]
        return np.where(np.abs(centred) > _ROUNDING, centred, 0)
    # Items are ranked by group, then by value. The items of earlier groups are subtracted.
    _, codes = np.unique(values, return_inverse=True)
    ranks = stats.rankdata(groups * len(values) + codes) - (np.cumsum(sizes) - sizes)[groups]
    return np.asarray((ranks - 0.5) / sizes[groups] - 0.5)


def _pooled_kendall(items: Rated) -> float:
    """Compute Kendall's tau-b over the pairs within groups."""
    agreeing = untied_scores = untied_ratings = 0.0
    for group in np.unique(items.groups):
        members = items.groups == group
        columns = items.scores[members], items.ratings[members]
        x, y = (np.sign(np.subtract.outer(values, values)) for values in columns)
        agreeing += float((x * y).sum())
        untied_scores += float(np.abs(x).sum())
        untied_ratings += float(np.abs(y).sum())
    return agreeing / math.sqrt(untied_scores * untied_ratings)


@dataclass(frozen=True)
class CorrelationTest:
    """A test of whether one metric correlates better with the ratings than another.

    Attributes:
        difference: Pearson's r of the first metric minus that of the second, or NaN.
        p: two-sided p-value, or NaN.
        n: number of items.
        reason: why p is NaN.
    """

    difference: float
    p: float
    n: int
    reason: str | None = None


def bootstrap_interval(items: Rated, *, resamples: int = 1000, seed: int = 0) -> Interval:
    """Compute the 95 % percentile bootstrap interval of Pearson's r from resamples of groups.

    It is NaN if the correlation is NaN, overall or in more than half of the resamples, or with fewer than ten
    groups that are compared.
    """
    reason = items.reason or too_few(items.used_groups)
    return Interval(reason=reason) if reason else Interval.percentile(resampled_pearson(items, resamples, seed))


def resampled_pearson(items: Rated, resamples: int = 1000, seed: int = 0) -> Floats:
    """Compute Pearson's r in resamples of groups with replacement, (resamples,), NaN where it is undefined."""
    return bootstrap(_pearson, _group_sums(items.scores, items), resamples=resamples, seed=seed)


def compare_correlations(first: Rated, second: Rated, *, resamples: int = 1000, seed: int = 0) -> CorrelationTest:
    """Test whether one metric correlates better with the ratings (Pearson, two-sided) than another.

    Both have the same ratings, groups and level. The metrics swap their standardised scores in randomly chosen
    groups. The null hypothesis is that the metrics are exchangeable, which is slightly stronger than equal
    correlation. With G groups, p cannot fall below about 1 / 2^G. It is NaN if a correlation is NaN, or with fewer
    than ten groups that are compared.
    """
    n = len(first.scores)
    for name, items in (("first", first), ("second", second)):
        if items.reason:
            return CorrelationTest(math.nan, math.nan, n, f"{name} metric: {items.reason}")
    sums, other_sums = (np.array(_group_sums(stats.zscore(items.scores), items)).T for items in (first, second))

    def differences(signs: Floats) -> Floats:
        keep, swap = (1 + signs) / 2, (1 - signs) / 2
        first_sums, second_sums = keep @ sums + swap @ other_sums, swap @ sums + keep @ other_sums
        return _pearson(*first_sums.T) - _pearson(*second_sums.T)

    difference = float(differences(np.ones((1, len(sums))))[0])
    if reason := too_few(first.used_groups):
        return CorrelationTest(difference, math.nan, n, reason)
    swapped = randomise(differences, len(sums), resamples=resamples, seed=seed)
    return CorrelationTest(difference, permutation_p(np.abs(swapped), abs(difference)), n)


def _group_sums(scores: Floats, items: Rated) -> list[Floats]:
    """Return the sums of 1, x, y, xx, xy and yy in each group, (groups,) each, for scores x and ratings y."""
    x, y = scores, items.ratings
    columns = (np.ones_like(x), x, y, x * x, x * y, y * y)
    return [np.bincount(items.groups, column, items.group_count).astype(np.float64) for column in columns]


def _pearson(n: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats, yy: Floats) -> Floats:
    """Compute Pearson's r from sums, (resamples,) each; NaN where scores or ratings do not vary."""
    x_spread, y_spread = (
        np.where(square - total**2 / n > _ROUNDING * square, square - total**2 / n, np.nan)
        for total, square in ((x, xx), (y, yy))
    )
    return np.asarray(np.clip((xy - x * y / n) / np.sqrt(x_spread * y_spread), -1, 1))
