"""Confidence of mean scores and of differences of means, from resamples of whole groups of rows."""

import math
from collections.abc import Sequence

import numpy as np

from mars_score.stats.draws import Interval, check_resampling, draw_signs, permutation_p, resample, too_few
from mars_score.stats.labels import Floats, Labels, Values, codes_of

_RESAMPLES = 1000  # of intervals


def mean_interval(scores: Values, groups: Labels | None = None, *, confidence: float = 0.95) -> Interval:
    """Percentile bootstrap interval of a mean (Koehn 2004), from resamples of groups with replacement.

    Of the differences of two systems' scores, row by row, it is the interval of the difference of their means.

    Args:
        scores: (rows,).
        groups: (rows,) labels, strings or integers, of rows that are not independent; None: all rows are.
        confidence: coverage, between 0 and 1.

    Returns:
        The interval; NaN with fewer than ten groups.

    Raises:
        ValueError: lengths differ, or confidence is out of range.
    """
    check_resampling(confidence=confidence)
    sums, sizes = _group_sums(scores, groups)
    if reason := too_few(len(sums)):
        return Interval(reason=reason)
    means = resample(lambda counts: counts @ sums / (counts @ sizes), len(sums), _RESAMPLES, seed=0)
    return Interval.of(means, confidence)


def mean_p(differences: Values, groups: Labels | None = None, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Two-sided p-value of the difference of two means of paired scores, by approximate randomisation.

    Both scores of a row (group) are swapped or not, at random (Noreen 1989); p is the share of swaps with a
    difference of at least this size, see :func:`mars_score.stats.draws.permutation_p`.

    Args:
        differences: (rows,) of the paired scores.
        groups: as for :func:`mean_interval`.
        resamples: how many.
        seed: of a new generator.

    Returns:
        The p-value; NaN with fewer than ten groups.

    Raises:
        ValueError: lengths differ, or fewer than one resample.
    """
    sums, sizes = _group_sums(differences, groups)
    if too_few(len(sums)):
        return math.nan
    shares = sums / sizes.sum()
    swapped = resample(lambda signs: np.abs(signs @ shares), len(sums), resamples, seed, draw_signs)
    return permutation_p(swapped, abs(float(shares.sum())))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979): the chance of any false rejection stays below the level.

    The p-value of rank i (from 0) of m becomes the largest of (m - k) p_k over the ranks k up to i, at most 1. All
    are NaN where one is.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.arange(len(values), 0, -1) * values[order]).clip(max=1)
    return list(map(float, adjusted))


def _group_sums(scores: Values, groups: Labels | None) -> tuple[Floats, Floats]:
    """The sum of the scores of each group, and its number of rows."""
    values = np.asarray(scores, dtype=np.float64)
    codes = codes_of("groups", groups, len(values))
    return np.bincount(codes, values).astype(np.float64), np.bincount(codes).astype(np.float64)
