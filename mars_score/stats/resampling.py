"""Confidence of a correlation, and which of two metrics correlates better, from resamples of whole groups.

See Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
Methods". Level, groups and ratings are those of :func:`mars_score.stats.correlation.at_level`; for items that are
independent of each other each is a group.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from mars_score.stats.correlation import ROUNDING, Rated
from mars_score.stats.draws import Interval, draw_signs, permutation_p, resample, too_few
from mars_score.stats.labels import Floats

MainLevel = Literal["items", "within_groups"]  # at which there are intervals and tests


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
    more), or where the correlation is undefined in more than half of the resamples.

    Args:
        items: scores and ratings at level "items" or "within_groups".
        resamples: how many, at least 1 (else ValueError).
        seed: the same gives the same digits.
    """
    reason = items.reason or too_few(items.telling_groups)
    return Interval(reason=reason) if reason else Interval.of(resampled_pearson(items, resamples, seed))


def resampled_pearson(items: Rated, resamples: int = 1000, seed: int = 0) -> Floats:
    """Pearson's r in resamples of groups, (resamples,), NaN where it is undefined."""
    sums = _group_sums(items.scores, items)
    return resample(lambda counts: _pearson(counts @ sums), len(sums), resamples, seed)


def compare_correlations(first: Rated, second: Rated, *, resamples: int = 1000, seed: int = 0) -> Comparison:
    """Test whether one metric correlates better with the ratings (Pearson, two-sided) than another.

    The metrics swap their standardised scores in randomly chosen groups; p as in
    :func:`mars_score.stats.draws.permutation_p`, of the size of the difference. Standardised so that the scores of
    both metrics mean the same: mean 0 and deviation 1 over the items; at level "within_groups" centred by group
    first. What is tested is that the two metrics could be exchanged, which is a little more than that they
    correlate equally well. With G groups p cannot fall below about 1 / 2^G. It is NaN where a correlation is, or
    with fewer than ten groups (see ``bootstrap_interval``).

    Args:
        first: scores of the first metric, with the ratings.
        second: scores of the second metric, with the same ratings, groups and level.
        resamples: as in ``bootstrap_interval``.
        seed: likewise.
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
