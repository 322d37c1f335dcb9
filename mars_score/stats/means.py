"""Confidence of a mean, from resamples of whole groups."""

from __future__ import annotations

import numpy as np

from mars_score.stats.draws import Interval, draw_groups, resample
from mars_score.stats.rated import Labels, Values, codes_of

RESAMPLES = 1000


def mean_interval(scores: Values, groups: Labels | None = None) -> Interval:
    """95 % percentile bootstrap interval of the mean (Koehn 2004), from resamples of groups with replacement.

    Args:
        scores: (rows,).
        groups: (rows,) labels, strings or integers, of rows that are not independent; None: all rows are.

    Returns:
        The interval; NaN with fewer than two groups.

    Raises:
        ValueError: lengths differ.
    """
    values = np.asarray(scores, dtype=np.float64)
    codes = np.arange(len(values)) if groups is None else codes_of("groups", groups, len(values))[1]
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes).astype(np.float64)
    if len(sums) < 2:
        return Interval.unknown("fewer than two groups")
    (means,) = resample(
        [lambda drawn: drawn @ sums / (drawn @ sizes)], draw_groups(len(sums)), len(sums), RESAMPLES, seed=0
    )
    return Interval.of(means, 0.95)
