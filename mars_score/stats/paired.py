"""Intervals and tests of the means of paired scores, from resamples of rows or of whole groups of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mars_score.stats.draws import check_confidence, check_resamples, draw_groups, percentiles
from mars_score.stats.rated import Labels, Values, codes_of
from mars_score.stats.weighted import AT_ONCE, Floats

# Means that differ by less than this are equal.
_SAME = 1e-9


@dataclass(frozen=True)
class Interval:
    """A confidence interval; NaN where nothing can be drawn from."""

    low: float
    high: float


@dataclass(frozen=True)
class PairedTest:
    """How sure two means and their difference are.

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

    Paired bootstrap (Koehn 2004): rows (groups) are drawn with replacement, the same for both. Intervals are
    percentiles. The two-sided p is twice the smaller one-sided one, at most 1, so that it and the interval of the
    difference agree; a one-sided p is (count + 1) / (resamples + 1), count: the resamples without a difference
    in that direction. Approximate randomisation (Noreen 1989): both scores of a row (group) are swapped or not, at
    random; p is (count + 1) / (resamples + 1), count: the swaps with at least the observed difference in size.

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
    if len(sums) < 2:
        unknown = Interval(math.nan, math.nan)
        return PairedTest(unknown, unknown, unknown, math.nan, math.nan, len(sums))
    rng = np.random.default_rng(seed)
    ones, others = _bootstrap(sums, resamples, rng)
    differences = ones - others
    not_better, not_worse = int((differences <= _SAME).sum()), int((differences >= -_SAME).sum())
    return PairedTest(
        Interval(*percentiles(ones, confidence)),
        Interval(*percentiles(others, confidence)),
        Interval(*percentiles(differences, confidence)),
        min(1.0, 2 * (min(not_better, not_worse) + 1) / (resamples + 1)),
        _randomisation(sums, resamples, rng),
        len(sums),
    )


def check_resampling(confidence: float, resamples: int) -> None:
    """Raise ValueError for a number out of range."""
    check_confidence(confidence)
    check_resamples(resamples)


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


def _parts(groups: int, resamples: int) -> list[int]:
    """Sizes of the parts in which resamples are drawn, so that memory stays small."""
    size = max(1, AT_ONCE // groups)
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def _bootstrap(sums: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Both means in each resample."""
    draw = draw_groups(len(sums))
    drawn = np.concatenate([draw(rng, part)[0] @ sums for part in _parts(len(sums), resamples)])
    return drawn[:, 0] / drawn[:, 2], drawn[:, 1] / drawn[:, 2]


def _randomisation(sums: Floats, resamples: int, rng: np.random.Generator) -> float:
    differences = (sums[:, 0] - sums[:, 1]) / sums[:, 2].sum()
    least = abs(differences.sum()) - _SAME
    count = 0
    for part in _parts(len(sums), resamples):
        signs = 2.0 * rng.integers(0, 2, (part, len(sums))) - 1
        count += int((np.abs(signs @ differences) >= least).sum())
    return (count + 1) / (resamples + 1)
