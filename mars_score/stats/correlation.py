"""How well metric scores agree with human ratings, how surely, and which of two metrics agrees better.

An item is one rated text; a group holds the items that share a source (one context, the texts of all systems),
which are not independent of each other; a system wrote some of the items. Coefficients are Pearson's r,
Spearman's rho and Kendall's tau-b. What is undefined is NaN with a reason, never an exception. Items without a
rating are to be left out by the caller: a missing rating (NaN) makes a result undefined.

Intervals and tests are from resamples of whole groups (Deutsch, Dror and Roth 2021, "A Statistical Analysis of
Summarization Evaluation Metrics Using Resampling Methods"); for items that are independent of each other each is a
group.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from mars_score.stats.labels import Codes, Floats, Labels, Values, codes_of
from mars_score.stats.resampling import Interval, draw_signs, permutation_p, resample, too_few

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["items", "within_groups", "systems"]
MainLevel = Literal["items", "within_groups"]  # at which there are intervals and tests

_FEWEST = 3  # with fewer items a coefficient can only be +-1 (or 0)
ROUNDING = 1e-12  # values that differ by less, relative to the largest, are equal
_COEFFICIENTS: dict[Coefficient, Any] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}
# What is compared at each level, and what is said where all of it is equal.
_LEVELS: dict[Level, tuple[str, str]] = {
    "items": ("items", "all"),
    "within_groups": ("items in groups of two or more", "within every group all"),
    "systems": ("systems", "the systems' mean"),
}


@dataclass(frozen=True)
class Estimate:
    """A correlation coefficient from n items (at level "systems": systems), or NaN with the reason."""

    value: float
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class Rated:
    """Scores and ratings as they are compared at a level, (n,) each."""

    scores: Floats
    ratings: Floats
    groups: Codes  # numbers of the items' groups, (n,); at level "systems" those of the systems
    group_count: int  # of all groups; at level "within_groups" some have no items that are compared
    reason: str | None = None  # why there is no coefficient

    @property
    def telling_groups(self) -> int:
        """How many groups have items that are compared."""
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
    """The correlation of a metric's scores with human ratings.

    Level "items": over all items. Level "systems": over the systems, each with the means of its items. Level
    "within_groups": over all items, but items are compared with items of their own group only, so that a group
    that is easy for every system counts neither for nor against the metric:

    - Pearson: values are centred by the mean of their group, then pooled.
    - Spearman: values are replaced by their ranks within the group, as fractions (rank - 1/2) / size, centred
      and pooled. Ranking the centred values instead would compare differences between groups again, and a
      monotone transform of the scores would change the result.
    - Kendall: concordant, discordant and tied pairs are counted within groups and summed, then put into the
      formula of tau-b. A group counts by its number of pairs.

    A group of one item says nothing there and is not in ``n``.

    Args:
        scores: (items,) of the metric, larger is better.
        ratings: (items,) by people, larger is better.
        coefficient: "pearson", "spearman" or "kendall" (tau-b).
        level: see above.
        groups: (items,) labels, strings or integers; needed at level "within_groups".
        systems: (items,) labels, strings or integers; needed at level "systems".

    Returns:
        The coefficient; NaN where scores or ratings are not finite or do not vary, or of fewer than 3 items.

    Raises:
        ValueError: lengths differ, or labels are missing.
    """
    items = at_level(scores, ratings, level, groups=groups, systems=systems, coefficient=coefficient)
    n = len(items.scores)
    if items.reason:
        return Estimate(math.nan, n, items.reason)
    if level == "within_groups" and coefficient == "kendall":
        return Estimate(_pooled_kendall(items), n)
    # Spearman's ranks within groups are pooled as they are, and so are not ranked again.
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
    """Scores and ratings as they are compared: centred and scaled, within their groups, or as systems' means.

    Arguments and errors are those of :func:`correlation`.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (scores, ratings))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"one score and one rating per item, got shapes {x.shape} and {y.shape}")
    labels = {"groups": groups, "systems": systems}
    needed = "systems" if level == "systems" else "groups"
    if labels[needed] is None and level != "items":
        raise ValueError(f'level "{level}" needs {needed}')
    codes = {name: codes_of(name, values, len(x)) for name, values in labels.items()}[needed]
    group_count = int(codes.max(initial=-1)) + 1
    bad = {"ratings": (~np.isfinite(y)).sum(), "scores": (~np.isfinite(x)).sum()}
    reasons = [f"{bad[name]} of {len(x)} {name} are missing or not finite" for name in bad if bad[name]]
    if level == "within_groups":
        several = np.bincount(codes)[codes] > 1
        x, y, codes = x[several], y[several], codes[several]
    if reasons:
        return Rated(x, y, codes, group_count, reasons[0])
    if level == "systems":
        x, y = (_means(values, codes) for values in (x, y))
        codes = np.arange(len(x))
    elif level == "within_groups":
        x, y = (_within(values, codes, coefficient) for values in (x, y))
    elif coefficient == "pearson":
        x, y = _scaled(x), _scaled(y)
    unit, every = _LEVELS[level]
    reason = None
    if len(x) < _FEWEST:
        reason = f"{len(x)} {unit}, fewer than {_FEWEST}"
    elif equal := [name for name, values in (("ratings", y), ("scores", x)) if np.ptp(_scaled(values)) == 0]:
        reason = f"{every} {equal[0]} are equal"
    return Rated(x, y, codes, group_count, reason)


def _scaled(values: Floats) -> Floats:
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


def _means(values: Floats, systems: Codes) -> Floats:
    """The mean of each system's values, (systems,); rounded, as means that are equal must be ties."""
    return np.round(np.bincount(systems, _scaled(values)) / np.bincount(systems), 12)


def _within(values: Floats, groups: Codes, coefficient: Coefficient) -> Floats:
    """Values as they are compared within groups, their mean 0 in every group.

    Pearson: minus the mean of the group, and 0 where only rounding is left. Rank coefficients: ranks within the
    group as fractions of its size, in (-1/2, 1/2).
    """
    groups = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if coefficient == "pearson":
        values = _scaled(values)
        centred = values - (np.bincount(groups, values) / sizes)[groups]
        return np.where(np.abs(centred) > ROUNDING, centred, 0)
    # Ranks over all items sorted by group, then by value; less the items of the groups before.
    _, codes = np.unique(values, return_inverse=True)
    ranks = stats.rankdata(groups * len(values) + codes) - (np.cumsum(sizes) - sizes)[groups]
    return np.asarray((ranks - 0.5) / sizes[groups] - 0.5)


def _pooled_kendall(items: Rated) -> float:
    """Kendall's tau-b of the pairs within groups."""
    agreeing = untied_scores = untied_ratings = 0.0
    for group in np.unique(items.groups):
        own = items.groups == group
        x, y = (np.sign(np.subtract.outer(values, values)) for values in (items.scores[own], items.ratings[own]))
        agreeing += float((x * y).sum())
        untied_scores += float(np.abs(x).sum())
        untied_ratings += float(np.abs(y).sum())
    return agreeing / math.sqrt(untied_scores * untied_ratings)


@dataclass(frozen=True)
class Comparison:
    """A test of whether the scores of one metric correlate better with the ratings than those of another."""

    difference: float  # Pearson's r of the first metric minus that of the second, or NaN
    p: float  # two-sided, or NaN
    n: int  # the items the correlations rest on
    reason: str | None = None  # why p is NaN


def bootstrap_interval(items: Rated, *, resamples: int = 1000, seed: int = 0) -> Interval:
    """95 % percentile bootstrap interval of Pearson's r, from resamples of whole groups with replacement.

    It is NaN where the correlation is, with fewer than ten groups (at level "within_groups": of two items or
    more), or where the correlation is undefined in more than half of the resamples. The same seed gives the same
    digits.
    """
    reason = items.reason or too_few(items.telling_groups)
    return Interval(reason=reason) if reason else Interval.of(resampled_pearson(items, resamples, seed))


def resampled_pearson(items: Rated, resamples: int = 1000, seed: int = 0) -> Floats:
    """Pearson's r in resamples of groups, (resamples,), NaN where it is undefined."""
    sums = _group_sums(items.scores, items)
    return resample(lambda counts: _pearson(counts @ sums), len(sums), resamples, seed)


def compare_correlations(first: Rated, second: Rated, *, resamples: int = 1000, seed: int = 0) -> Comparison:
    """Test whether one metric correlates better with the ratings (Pearson, two-sided) than another.

    Both have the same ratings, groups and level. The metrics swap their standardised scores in randomly chosen
    groups; p is that of the size of the difference. Standardised so that the scores of both metrics mean the same:
    mean 0 and deviation 1 over the items; at level "within_groups" centred by group first. What is tested is that
    the two metrics could be exchanged, which is a little more than that they correlate equally well. With G groups
    p cannot fall below about 1 / 2^G. It is NaN where a correlation is, or with fewer than ten groups (see
    :func:`bootstrap_interval`).
    """
    n = len(first.scores)
    for name, items in (("first", first), ("second", second)):
        if items.reason:
            return Comparison(math.nan, math.nan, n, f"{name} metric: {items.reason}")
    sums, other_sums = (_group_sums(stats.zscore(items.scores), items) for items in (first, second))

    def between(signs: Floats) -> Floats:
        """The differences where the metrics swap the groups whose sign is -1."""
        keep, swap = (1 + signs) / 2, (1 - signs) / 2
        return _pearson(keep @ sums + swap @ other_sums) - _pearson(swap @ sums + keep @ other_sums)

    difference = float(between(np.ones((1, len(sums))))[0])
    if reason := too_few(first.telling_groups):
        return Comparison(difference, math.nan, n, reason)
    swapped = resample(between, len(sums), resamples, seed, draw_signs)
    return Comparison(difference, permutation_p(np.abs(swapped), abs(difference)), n)


def _group_sums(scores: Floats, items: Rated) -> Floats:
    """What each group adds to Pearson's r of scores with the ratings: n, x, y, xx, xy, yy, (groups, 6)."""
    x, y = scores, items.ratings
    columns = (np.ones_like(x), x, y, x * x, x * y, y * y)
    return np.stack([np.bincount(items.groups, column, items.group_count) for column in columns], axis=1)


def _pearson(sums: Floats) -> Floats:
    """Pearson's r from sums of what groups add, (resamples, 6); NaN where scores or ratings do not vary."""
    n, x, y, xx, xy, yy = sums.T
    x_spread, y_spread = (
        np.where(square - total**2 / n > ROUNDING * square, square - total**2 / n, np.nan)
        for total, square in ((x, xx), (y, yy))
    )
    return np.asarray(np.clip((xy - x * y / n) / np.sqrt(x_spread * y_spread), -1, 1))
