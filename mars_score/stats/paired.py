"""Intervals and tests of the means of paired scores, from resamples of rows or of whole groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from mars_score.stats.draws import (
    Interval,
    bootstrap_p,
    check_resampling,
    draw_groups,
    draw_signs,
    permutation_p,
    resample,
)
from mars_score.stats.rated import Labels, Values, codes_of
from mars_score.stats.weighted import Floats


@dataclass(frozen=True)
class PairedTest:
    """Confidence of two means and of their difference.

    Attributes:
        first: of the first mean.
        second: of the second mean.
        difference: of the first mean minus the second.
        bootstrap_p: two-sided, of the paired bootstrap; or NaN.
        randomisation_p: two-sided, of approximate randomisation; or NaN.
        groups: how many were drawn from (without groups: the rows).
    """

    first: Interval
    second: Interval
    difference: Interval
    bootstrap_p: float
    randomisation_p: float
    groups: int


def paired_test(
    first: Values,
    second: Values,
    *,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PairedTest:
    """Compare the means of paired scores.

    Paired bootstrap (Koehn 2004): rows (groups) are drawn with replacement, the same for both; intervals are
    percentiles, p as in :func:`mars_score.stats.draws.bootstrap_p`. Approximate randomisation (Noreen 1989): both
    scores of a row (group) are swapped or not, at random; p as in :func:`mars_score.stats.draws.permutation_p`, of
    the size of the difference.

    Args:
        first: (rows,) scores.
        second: (rows,) scores of the same rows.
        groups: (rows,) labels, strings or integers, of rows that are not independent; None: all rows are.
        confidence: coverage of the intervals, between 0 and 1.
        resamples: how many, of each kind.
        seed: of a new generator, or a generator. The same seed gives the same digits.

    Returns:
        The test; NaN with fewer than two groups.

    Raises:
        ValueError: lengths differ or are 0, or a number is out of range.
    """
    check_resampling(confidence, resamples)
    sums = _sums(first, second, groups)
    count = len(sums)
    if count < 2:
        unknown = Interval.unknown("fewer than two groups")
        return PairedTest(unknown, unknown, unknown, nan, nan, count)
    rng = np.random.default_rng(seed)
    means = [lambda counts, column=column: counts @ sums[:, column] / (counts @ sums[:, 2]) for column in (0, 1)]
    ones, others = resample(means, draw_groups(count), count, resamples, rng)
    differences = (sums[:, 0] - sums[:, 1]) / sums[:, 2].sum()
    (swapped,) = resample([lambda signs: np.abs(signs @ differences)], draw_signs(count), count, resamples, rng)
    return PairedTest(
        Interval.of(ones, confidence),
        Interval.of(others, confidence),
        Interval.of(ones - others, confidence),
        bootstrap_p(ones - others),
        permutation_p(swapped, abs(differences.sum())),
        count,
    )


def _sums(first: Values, second: Values, groups: Labels | None) -> Floats:
    """Of each group the sums of both scores and the number of rows, (groups, 3)."""
    one, other = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise ValueError(f"scores must be two lists of one length, got shapes {one.shape} and {other.shape}")
    columns = np.stack([one, other, np.ones(len(one))], axis=1)
    if groups is None:
        return columns
    codes = codes_of("groups", groups, len(one))[1]
    return np.stack([np.bincount(codes, weights=column) for column in columns.T], axis=1)
