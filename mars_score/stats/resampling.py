"""Confidence of a correlation, and which of two metrics correlates better, from resamples of whole groups.

See Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
Methods".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mars_score.stats.correlation import estimate
from mars_score.stats.draws import Interval, bootstrap_p, check_resampling, draw_groups, permutation_p, resample
from mars_score.stats.levels import standardised, statistic_of
from mars_score.stats.rated import Labels, MainLevel, Rated, Values, check_known
from mars_score.stats.weighted import Floats

Seed = int | np.random.Generator
Test = Literal["bootstrap", "permutation"]


@dataclass(frozen=True)
class Comparison:
    """A test of whether the scores of one metric correlate better with the ratings than those of another.

    Attributes:
        difference: Pearson's r of the first metric minus that of the second, or NaN.
        p: two-sided, or NaN.
        n: the items the correlations rest on.
        undefined: the resamples in which a correlation was undefined; they count against a difference.
        reason: why p is NaN; None otherwise.
    """

    difference: float
    p: float
    n: int
    undefined: int = 0
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

    A group that is drawn twice is two groups. For items that are independent give each a group of its own
    (``range(len(scores))``), for one system its items alone.

    Args:
        scores: (items,).
        ratings: (items,).
        groups: (items,) labels, strings or integers.
        level: as in ``correlation``.
        resamples: how many.
        seed: of a new generator, or a generator. The same seed gives the same digits.

    Returns:
        The interval; NaN where the correlation is, with one group only, or where the correlation is undefined in
        more than half of the resamples.

    Raises:
        ValueError: as ``correlation``; ``resamples`` out of range.
    """
    check_resampling(resamples)
    items = Rated.of(scores, ratings, level, groups, None)
    reason = estimate(items).reason or _too_few_groups(items)
    if reason:
        return Interval.unknown(reason)
    (values,) = resample([statistic_of(items)], draw_groups(items.group_count), len(items.scores), resamples, seed)
    return Interval.of(values, 0.95)


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
        The comparison; NaN where a correlation is, or with one group only.

    Raises:
        ValueError: as ``correlation``; ``resamples`` out of range, an unknown test.
    """
    check_known("test", test, ("bootstrap", "permutation"))
    one, other = (Rated.of(scores, ratings, level, groups, None) for scores in (first, second))
    estimates = estimate(one), estimate(other)
    difference, n = estimates[0].value - estimates[1].value, estimates[0].n
    reason = _too_few_groups(one)
    for name, found in zip(("second", "first"), reversed(estimates), strict=True):
        reason = f"{name} metric: {found.reason}" if found.reason else reason
    if reason:
        return Comparison(difference, math.nan, n, reason=reason)
    p, undefined = (_bootstrap if test == "bootstrap" else _permutation)(one, other, resamples, seed)
    return Comparison(difference, p, n, undefined)


def _bootstrap(one: Rated, other: Rated, resamples: int, seed: Seed) -> tuple[float, int]:
    """p, and the undefined resamples."""
    statistics = [statistic_of(one), statistic_of(other)]
    ones, others = resample(statistics, draw_groups(one.group_count), len(one.scores), resamples, seed)
    return bootstrap_p(ones - others), int(np.isnan(ones - others).sum())


def _permutation(one: Rated, other: Rated, resamples: int, seed: Seed) -> tuple[float, int]:
    """p, and the undefined resamples.

    The scores of both metrics stand side by side, each with its own copy of the groups: a permutation draws one
    copy of each group for the first metric, and the other copies for the second.
    """
    count = one.group_count
    both = Rated(
        scores=np.concatenate([standardised(one), standardised(other)]),
        ratings=np.tile(one.ratings, 2),
        level=one.level,
        groups=np.concatenate([one.groups, one.groups + count]),
        systems=np.tile(one.systems, 2),
    )
    statistic = statistic_of(both)

    def draw(rng: np.random.Generator, rows: int) -> tuple[Floats, ...]:
        swapped = rng.integers(0, 2, (rows, count)).astype(np.float64)
        return np.hstack([1 - swapped, swapped]), np.hstack([swapped, 1 - swapped])

    kept = np.repeat([[1.0, 0.0]], count, axis=1)
    observed = float(abs(statistic(kept) - statistic(1 - kept))[0])
    ones, others = resample([statistic, statistic], draw, len(both.scores), resamples, seed)
    drawn = ones - others
    return permutation_p(np.abs(drawn), observed), int(np.isnan(drawn).sum())


def _too_few_groups(items: Rated) -> str | None:
    """The reason why groups cannot be drawn, or None."""
    return "one group only, nothing to draw from" if items.group_count < 2 else None
