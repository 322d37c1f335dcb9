"""Intervals and tests of the means of paired scores, from resamples of rows or of whole groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np

from mars_score.stats import Test
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

    def p(self, test: Test) -> float:
        """The p-value of one of the tests; or NaN."""
        return self.bootstrap_p if test == "bootstrap" else self.randomisation_p


def paired_tests(
    scores: Sequence[Values],
    *,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> dict[tuple[int, int], PairedTest]:
    """Compare the means of the scores of each two systems; all pairs see the same resamples.

    Paired bootstrap (Koehn 2004): rows (groups) are drawn with replacement, the same for all; intervals are
    percentiles, p as in :func:`mars_score.stats.draws.bootstrap_p`. Approximate randomisation (Noreen 1989): both
    scores of a row (group) are swapped or not, at random; p as in :func:`mars_score.stats.draws.permutation_p`, of
    the size of the difference.

    Args:
        scores: (systems, rows) scores of the same rows.
        groups: (rows,) labels, strings or integers, of rows that are not independent; None: all rows are.
        confidence: coverage of the intervals, between 0 and 1.
        resamples: how many, of each kind.
        seed: of a new generator, or a generator. The same seed gives the same digits.

    Returns:
        The test of each pair (i, j) of systems, i < j; NaN with fewer than two groups.

    Raises:
        ValueError: lengths differ or are 0, or a number is out of range.
    """
    check_resampling(resamples, confidence)
    *sums, sizes = _sums(scores, groups)
    pairs, count = list(combinations(range(len(scores)), 2)), len(sizes)
    if count < 2:
        unknown = Interval.unknown("fewer than two groups")
        return dict.fromkeys(pairs, PairedTest(unknown, unknown, unknown, nan, nan, count))
    rng = np.random.default_rng(seed)

    def means(counts: Floats) -> Floats:
        return np.stack([counts @ column / (counts @ sizes) for column in sums], axis=1)

    (drawn,) = resample([means], draw_groups(count), count, resamples, rng)
    differences = np.stack([sums[i] - sums[j] for i, j in pairs], axis=1) / sizes.sum()
    (swapped,) = resample([lambda signs: np.abs(signs @ differences)], draw_signs(count), count, resamples, rng)
    intervals = [Interval.of(column, confidence) for column in drawn.T]
    return {
        (i, j): PairedTest(
            intervals[i],
            intervals[j],
            Interval.of(drawn[:, i] - drawn[:, j], confidence),
            bootstrap_p(drawn[:, i] - drawn[:, j]),
            permutation_p(swapped[:, pair], abs(differences[:, pair].sum())),
            count,
        )
        for pair, (i, j) in enumerate(pairs)
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979): the chance of any false rejection stays below the level.

    The p-value of rank i (from 0) of m becomes the largest of (m - k) p_k over the ranks k up to i, at most 1. NaN
    is neither counted nor changed.
    """
    order = [place for place in np.argsort(p_values) if not np.isnan(p_values[place])]
    adjusted, largest = list(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def _sums(scores: Sequence[Values], groups: Labels | None) -> Floats:
    """The sums of each system's scores over each group, and the number of rows, (systems + 1, groups)."""
    columns = [np.asarray(values, dtype=np.float64) for values in scores]
    shapes = {column.shape for column in columns}
    if len(columns) < 2 or len(shapes) > 1 or columns[0].ndim != 1 or not len(columns[0]):
        found = " and ".join(str(column.shape) for column in columns)
        raise ValueError(f"scores must be two or more lists of one length, got shapes {found}")
    stacked = np.stack([*columns, np.ones(len(columns[0]))])
    if groups is None:
        return stacked
    codes = codes_of("groups", groups, len(columns[0]))[1]
    return np.stack([np.bincount(codes, weights=column) for column in stacked])
