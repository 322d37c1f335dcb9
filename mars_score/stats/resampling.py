"""How sure a correlation is, and which of two metrics correlates better, from resamples of whole groups.

See Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
Methods". A resample is a vector of how often each group was drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mars_score.stats.correlation import estimate
from mars_score.stats.draws import check_confidence, draw_groups, percentiles, resample
from mars_score.stats.levels import standardised, statistic_of
from mars_score.stats.rated import Alternative, Coefficient, Labels, Level, Rated, Values, check_known
from mars_score.stats.weighted import Floats

# Coefficients that differ by less than this are equal.
_SAME = 1e-9


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: lower end, or NaN.
        high: upper end, or NaN.
        undefined: the resamples in which the coefficient was undefined; they are left out.
        reason: why the ends are NaN; None otherwise.
    """

    low: float
    high: float
    undefined: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class Comparison:
    """A test of whether the scores of one metric correlate better with the ratings than those of another.

    Attributes:
        difference: coefficient of the first metric minus that of the second, or NaN.
        p: p-value, or NaN.
        n: the items the coefficients rest on (at level "systems": the systems).
        undefined: the resamples in which a coefficient was undefined; they count against a difference.
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
    coefficient: Coefficient = "pearson",
    level: Level = "items",
    systems: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int | np.random.Generator = 0,
) -> Interval:
    """Percentile bootstrap interval of ``correlation``, from resamples of whole groups with replacement.

    A group that is drawn twice is two groups. At level "systems" the systems stay and their means are taken
    over the drawn groups. For items that are independent give each a group of its own (``range(len(scores))``),
    for one system its items alone. Kendall at level "items" takes memory that goes with the square of the number
    of groups, and time with the square of the number of items.

    Args:
        scores: (items,).
        ratings: (items,).
        groups: (items,) labels, strings or integers.
        coefficient: as in ``correlation``.
        level: as in ``correlation``.
        systems: (items,) labels, needed at level "systems".
        confidence: coverage, between 0 and 1.
        resamples: how many.
        seed: of a new generator, or a generator. The same seed gives the same digits.

    Returns:
        The interval; NaN where the coefficient is, with one group only, or where the coefficient is undefined in
        more than half of the resamples.

    Raises:
        ValueError: as ``correlation``; ``confidence`` or ``resamples`` out of range.
    """
    check_confidence(confidence)
    items = Rated.of(scores, ratings, level, coefficient, groups, systems)
    reason = estimate(items).reason or _too_few_groups(items)
    if reason:
        return Interval(math.nan, math.nan, reason=reason)
    (values,) = resample([statistic_of(items)], draw_groups(items.group_count), items, resamples, seed)
    defined = values[~np.isnan(values)]
    undefined = resamples - len(defined)
    if undefined > resamples / 2:
        return Interval(math.nan, math.nan, undefined, f"undefined in {undefined} of {resamples} resamples")
    return Interval(*percentiles(defined, confidence), undefined)


def compare_bootstrap(
    first: Values,
    second: Values,
    ratings: Values,
    groups: Labels,
    *,
    coefficient: Coefficient = "pearson",
    level: Level = "items",
    systems: Labels | None = None,
    alternative: Alternative = "two-sided",
    resamples: int = 1000,
    seed: int | np.random.Generator = 0,
) -> Comparison:
    """Paired bootstrap test over groups: both metrics are compared on the same resamples (Koehn 2004).

    The one-sided p is (count + 1) / (resamples + 1), count: the resamples in which the first metric does not
    correlate better. The two-sided p is twice the smaller of the two one-sided ones, at most 1, so that it and
    the percentile interval of the difference agree.

    Args:
        first: (items,) scores of the first metric.
        second: (items,) scores of the second metric.
        ratings: (items,).
        groups: (items,) labels, strings or integers, as in ``bootstrap_interval``.
        coefficient: as in ``correlation``.
        level: as in ``correlation``.
        systems: (items,) labels, needed at level "systems".
        alternative: "two-sided", or "greater": the first correlates better.
        resamples: how many.
        seed: as in ``bootstrap_interval``.

    Returns:
        The comparison; NaN where a coefficient is, or with one group only.

    Raises:
        ValueError: as ``correlation``; ``resamples`` out of range or an unknown alternative.
    """
    pair = _pair(first, second, ratings, level, coefficient, groups, systems, alternative)
    if isinstance(pair, Comparison):
        return pair
    one, other, difference, n = pair
    ones, others = resample(
        [statistic_of(one), statistic_of(other)], draw_groups(one.group_count), one, resamples, seed
    )
    drawn = ones - others
    undefined = int(np.isnan(drawn).sum())
    # The comparisons are false for NaN, so undefined resamples are counted in both tails.
    not_better, not_worse = int((~(drawn > _SAME)).sum()), int((~(drawn < -_SAME)).sum())
    count = not_better if alternative == "greater" else min(not_better, not_worse)
    p = (count + 1) / (resamples + 1)
    return Comparison(difference, p if alternative == "greater" else min(1.0, 2 * p), n, undefined)


def compare_permutation(
    first: Values,
    second: Values,
    ratings: Values,
    groups: Labels,
    *,
    coefficient: Coefficient = "pearson",
    level: Level = "items",
    systems: Labels | None = None,
    alternative: Alternative = "two-sided",
    resamples: int = 1000,
    seed: int | np.random.Generator = 0,
) -> Comparison:
    """Permutation test: the two metrics swap their standardised scores in randomly chosen groups.

    p is (count + 1) / (resamples + 1), count: the permutations whose difference between the two coefficients is
    at least the observed one (two-sided: in size). Standardised so that the scores of both metrics mean the same:
    mean 0 and deviation 1 over the items; for rank coefficients at level "items" ranks, so that monotone
    transforms change nothing; at level "within_groups" centred by group first. What is tested is that the two
    metrics could be exchanged, which is a little more than that they correlate equally well.

    Args:
        first: (items,) scores of the first metric.
        second: (items,) scores of the second metric.
        ratings: (items,).
        groups: (items,) labels, strings or integers; with G groups p cannot fall below about 1 / 2^G.
        coefficient: as in ``correlation``.
        level: as in ``correlation``.
        systems: (items,) labels, needed at level "systems".
        alternative: "two-sided", or "greater": the first correlates better.
        resamples: how many.
        seed: as in ``bootstrap_interval``.

    Returns:
        The comparison; NaN where a coefficient is, or with one group only.

    Raises:
        ValueError: as ``compare_bootstrap``.
    """
    pair = _pair(first, second, ratings, level, coefficient, groups, systems, alternative)
    if isinstance(pair, Comparison):
        return pair
    one, other, difference, n = pair
    # The scores of both metrics side by side, each with its own copy of the groups: a permutation is a drawing
    # of one copy of each group for the first metric, and of the other copies for the second.
    count = one.group_count
    both = Rated(
        scores=np.concatenate([standardised(one), standardised(other)]),
        ratings=np.tile(one.ratings, 2),
        level=level,
        coefficient=coefficient,
        groups=np.concatenate([one.groups, one.groups + count]),
        systems=np.tile(one.systems, 2),
    )
    statistic = statistic_of(both)

    def draw(rng: np.random.Generator, rows: int) -> tuple[Floats, ...]:
        swapped = rng.integers(0, 2, (rows, count)).astype(np.float64)
        return np.hstack([1 - swapped, swapped]), np.hstack([swapped, 1 - swapped])

    kept = np.repeat([[1.0, 0.0]], count, axis=1)
    observed = float((statistic(kept) - statistic(1 - kept))[0])
    ones, others = resample([statistic, statistic], draw, both, resamples, seed)
    drawn = ones - others
    undefined = int(np.isnan(drawn).sum())
    if alternative == "two-sided":
        drawn, observed = np.abs(drawn), abs(observed)
    smaller = drawn < observed - _SAME  # false for NaN
    return Comparison(difference, (int((~smaller).sum()) + 1) / (resamples + 1), n, undefined)


def _too_few_groups(items: Rated) -> str | None:
    """The reason why groups cannot be drawn, or None."""
    return "one group only, nothing to draw from" if items.group_count < 2 else None


def _pair(
    first: Values,
    second: Values,
    ratings: Values,
    level: Level,
    coefficient: Coefficient,
    groups: Labels,
    systems: Labels | None,
    alternative: Alternative,
) -> tuple[Rated, Rated, float, int] | Comparison:
    """The items with the scores of each metric, the difference and n; or an undefined comparison."""
    check_known("alternative", alternative, ("two-sided", "greater"))
    pair = [Rated.of(scores, ratings, level, coefficient, groups, systems) for scores in (first, second)]
    estimates = [estimate(items) for items in pair]
    difference = estimates[0].value - estimates[1].value
    reason = _too_few_groups(pair[0])
    for name, found in zip(("second", "first"), reversed(estimates), strict=True):
        reason = f"{name} metric: {found.reason}" if found.reason else reason
    if reason:
        return Comparison(difference, math.nan, estimates[0].n, reason=reason)
    return pair[0], pair[1], difference, estimates[0].n
