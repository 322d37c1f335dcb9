"""Confidence of a correlation, and which of two metrics correlates better, from resamples of whole groups.

See Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
Methods".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from mars_score.stats.correlation import ROUNDING, Compared, at_level
from mars_score.stats.draws import (
    Interval,
    Seed,
    bootstrap_p,
    check_resampling,
    draw_signs,
    permutation_p,
    resample,
    too_few,
)
from mars_score.stats.labels import Floats, Labels, Values, check_known

Test = Literal["bootstrap", "permutation"]
MainLevel = Literal["items", "within_groups"]  # at which there are intervals and tests


@dataclass(frozen=True)
class Comparison:
    """A test of whether the scores of one metric correlate better with the ratings than those of another.

    Attributes:
        difference: Pearson's r of the first metric minus that of the second, or NaN.
        p: two-sided, or NaN.
        n: the items the correlations rest on.
        reason: why p is NaN; None otherwise.
    """

    difference: float
    p: float
    n: int
    reason: str | None = None


def bootstrap_interval(
    scores: Values,
    ratings: Values,
    groups: Labels,
    *,
    level: MainLevel = "items",
    resamples: int = 1000,
    seed: Seed = 0,
) -> Interval:
    """95 % percentile bootstrap interval of Pearson's r, from resamples of whole groups with replacement.

    A group that is drawn twice counts twice. For items that are independent give each a group of its own
    (``range(len(scores))``), for one system its items alone.

    Args:
        scores: (items,).
        ratings: (items,).
        groups: (items,) labels, strings or integers.
        level: as in ``correlation``.
        resamples: how many.
        seed: of a new generator, or a generator. The same seed gives the same digits.

    Returns:
        The interval; NaN where the correlation is, with fewer than ten groups (at level "within_groups": of two
        items or more), or where the correlation is undefined in more than half of the resamples.

    Raises:
        ValueError: as ``correlation``; ``resamples`` out of range.
    """
    check_resampling(resamples)
    items = at_level(scores, ratings, level, groups=groups)
    reason = items.reason or too_few(len(np.unique(items.groups)))
    if reason:
        return Interval(reason=reason)
    return Interval.of(resampled_pearson(items, resamples, seed))


def resampled_pearson(items: Compared, resamples: int = 1000, seed: Seed = 0) -> Floats:
    """Pearson's r in resamples of groups, (resamples,), NaN where it is undefined.

    The same seed and groups give the same draws, so that values of several metrics can be compared one by one.
    """
    sums = group_sums(items)
    return resample(lambda counts: pearson_of_sums(counts @ sums), len(sums), resamples, seed)


def compare_correlations(
    first: Values,
    second: Values,
    ratings: Values,
    groups: Labels,
    *,
    test: Test = "bootstrap",
    level: MainLevel = "items",
    resamples: int = 1000,
    seed: Seed = 0,
) -> Comparison:
    """Test whether one metric correlates better with the ratings (Pearson, two-sided) than another.

    "bootstrap": both are compared on the same resamples of groups; p as in
    :func:`mars_score.stats.draws.bootstrap_p`.

    "permutation": the metrics swap their standardised scores in randomly chosen groups; p as in
    :func:`mars_score.stats.draws.permutation_p`, of the size of the difference. Standardised so that the scores of
    both metrics mean the same: mean 0 and deviation 1 over the items; at level "within_groups" centred by group
    first. What is tested is that the two metrics could be exchanged, which is a little more than that they
    correlate equally well. With G groups p cannot fall below about 1 / 2^G.

    Args:
        first: (items,) scores of the first metric.
        second: (items,) scores of the second metric.
        ratings: (items,).
        groups: (items,) labels, strings or integers, as in ``bootstrap_interval``.
        test: see above.
        level: as in ``correlation``.
        resamples: how many.
        seed: as in ``bootstrap_interval``.

    Returns:
        The comparison; NaN where a correlation is, or with fewer than ten groups (see ``bootstrap_interval``).

    Raises:
        ValueError: as ``correlation``; ``resamples`` out of range, an unknown test.
    """
    check_known("test", test, ("bootstrap", "permutation"))
    check_resampling(resamples)
    compared = [at_level(scores, ratings, level, groups=groups) for scores in (first, second)]
    n = len(compared[0].scores)
    for name, items in zip(("first", "second"), compared, strict=True):
        if items.reason:
            return Comparison(math.nan, math.nan, n, reason=f"{name} metric: {items.reason}")
    one, other = (group_sums(_standardised(items)) for items in compared)

    def between(counts: Floats) -> Floats:
        return pearson_of_sums(counts @ one) - pearson_of_sums(counts @ other)

    def between_swapped(signs: Floats) -> Floats:
        keep, swap = (1 + signs) / 2, (1 - signs) / 2
        return pearson_of_sums(keep @ one + swap @ other) - pearson_of_sums(swap @ one + keep @ other)

    difference = float(between(np.ones((1, len(one))))[0])
    reason = too_few(len(np.unique(compared[0].groups)))
    if reason:
        return Comparison(difference, math.nan, n, reason=reason)
    if test == "bootstrap":
        p = bootstrap_p(resample(between, len(one), resamples, seed))
    else:
        swapped = resample(between_swapped, len(one), resamples, seed, draw_signs)
        p = permutation_p(np.abs(swapped), abs(difference))
    return Comparison(difference, p, n)


def _standardised(items: Compared) -> Compared:
    """With scores of mean 0 and deviation 1."""
    return replace(items, scores=stats.zscore(items.scores))


def group_sums(items: Compared) -> Floats:
    """What each group adds to Pearson's r: n, x, y, xx, xy, yy, (groups, 6)."""
    x, y = items.scores, items.ratings
    columns = (np.ones_like(x), x, y, x * x, x * y, y * y)
    return np.stack([np.bincount(items.groups, column, items.group_count) for column in columns], axis=1)


def pearson_of_sums(sums: Floats) -> Floats:
    """Pearson's r from sums of what groups add, (resamples, 6); NaN where scores or ratings do not vary."""
    n, x, y, xx, xy, yy = sums.T
    x_spread, y_spread = (
        np.where(square - total**2 / n > ROUNDING * square, square - total**2 / n, np.nan)
        for total, square in ((x, xx), (y, yy))
    )
    return np.asarray(np.clip((xy - x * y / n) / np.sqrt(x_spread * y_spread), -1, 1))
