"""How well metric scores agree with human ratings, how surely, and which of two metrics agrees better.

An item is one rated text; a group holds the items that share a source (one context, the texts of all systems),
which are not independent of each other; a system wrote some of the items. Coefficients are Pearson's r,
Spearman's rho and Kendall's tau-b. What is undefined is NaN with a reason, never an exception. Items without a
rating are for the caller to leave out and to count: a rating that is missing (NaN) makes a result undefined.

Resampling draws whole groups (Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation
Metrics Using Resampling Methods"). Resamples are vectors of how often each group was drawn, and a statistic is
computed for many such vectors at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["items", "within_groups", "systems"]
Alternative = Literal["two-sided", "greater"]
Values = Sequence[float] | NDArray[Any]
Labels = Sequence[str] | Sequence[int] | NDArray[Any]

_Floats = NDArray[np.float64]
_Codes = NDArray[np.int64]
# How often each group was drawn, (resamples, groups), to one value a resample, NaN where it is undefined.
_Statistic = Callable[[_Floats], _Floats]
_Draw = Callable[[np.random.Generator, int], tuple[_Floats, ...]]

# With fewer, a coefficient can only be +-1 (or 0).
_FEWEST = 3
# Values that differ by less than this, relative to the largest, are equal but for rounding.
_ROUNDING = 1e-12
# Coefficients that differ by less than this are equal.
_SAME = 1e-9
# Numbers held at once per array while resampling.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """A correlation coefficient.

    Attributes:
        value: -1 to 1, or NaN.
        n: the items it rests on (at level "systems": the systems).
        reason: why the value is NaN; None otherwise.
    """

    value: float
    n: int
    reason: str | None = None


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


@dataclass(frozen=True)
class WilliamsTest:
    """Result of ``williams_test``.

    Attributes:
        t: positive where the first correlation is the larger one, or NaN.
        degrees_of_freedom: n - 3.
        p: p-value, or NaN.
        reason: why t and p are NaN; None otherwise.
    """

    t: float
    degrees_of_freedom: int
    p: float
    reason: str | None = None


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
        The coefficient; NaN where scores or ratings are not finite or do not vary, or for fewer than 3 items
        (systems).

    Raises:
        ValueError: lengths differ, labels are missing, or a name is unknown.
    """
    return _estimate(_Items.of(scores, ratings, level, coefficient, groups, systems))


def correlation_per_system(
    scores: Values, ratings: Values, systems: Labels, *, coefficient: Coefficient = "pearson"
) -> dict[str | int, Estimate]:
    """The correlation over the items of each system, one figure a system (the paper's Table 3).

    Args:
        scores: (items,).
        ratings: (items,).
        systems: (items,) labels, strings or integers.
        coefficient: "pearson", "spearman" or "kendall" (tau-b).

    Returns:
        By system, sorted; a system whose coefficient is undefined is there with its reason.

    Raises:
        ValueError: as ``correlation``.
    """
    items = _Items.of(scores, ratings, "systems", coefficient, None, systems)
    names, codes = _codes("systems", systems, len(items.scores))
    return {
        name: correlation(items.scores[codes == code], items.ratings[codes == code], coefficient=coefficient)
        for code, name in enumerate(names)
    }


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
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    items = _Items.of(scores, ratings, level, coefficient, groups, systems)
    reason = _estimate(items).reason or _too_few_groups(items)
    if reason:
        return Interval(math.nan, math.nan, reason=reason)
    (values,) = _resample([items.statistic()], _draw_groups(items.group_count), items.width, resamples, seed)
    defined = values[~np.isnan(values)]
    undefined = resamples - len(defined)
    if undefined > resamples / 2:
        return Interval(math.nan, math.nan, undefined, f"undefined in {undefined} of {resamples} resamples")
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), undefined)


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
    ones, others = _resample(
        [one.statistic(), other.statistic()], _draw_groups(one.group_count), one.width, resamples, seed
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
    both = _Items(
        scores=np.concatenate([one.standardised(), other.standardised()]),
        ratings=np.tile(one.ratings, 2),
        level=level,
        coefficient=coefficient,
        groups=np.concatenate([one.groups, one.groups + count]),
        systems=np.tile(one.systems, 2),
    )
    statistic = both.statistic()

    def draw(rng: np.random.Generator, rows: int) -> tuple[_Floats, ...]:
        swapped = rng.integers(0, 2, (rows, count)).astype(np.float64)
        return np.hstack([1 - swapped, swapped]), np.hstack([swapped, 1 - swapped])

    kept = np.repeat([[1.0, 0.0]], count, axis=1)
    observed = float((statistic(kept) - statistic(1 - kept))[0])
    ones, others = _resample([statistic, statistic], draw, both.width, resamples, seed)
    drawn = ones - others
    undefined = int(np.isnan(drawn).sum())
    if alternative == "two-sided":
        drawn, observed = np.abs(drawn), abs(observed)
    smaller = drawn < observed - _SAME  # false for NaN
    return Comparison(difference, (int((~smaller).sum()) + 1) / (resamples + 1), n, undefined)


def williams_test(
    r_first: float, r_second: float, r_between: float, n: int, *, alternative: Alternative = "two-sided"
) -> WilliamsTest:
    """Williams' test for two dependent Pearson correlations that share a variable (here the ratings).

    With K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23, the determinant of the correlation matrix::

        t = (r12 - r13) sqrt((n-1) (1 + r23) / (2 K (n-1)/(n-3) + ((r12 + r13)/2)^2 (1 - r23)^3))

    has about Student's distribution with n - 3 degrees of freedom (Williams 1959, "The comparison of regression
    variables"; Graham and Baldwin 2014 for metrics). It takes the items to be independent and normal. The items
    of a group are not independent: n is then too large and p too small, and the tests that draw whole groups are
    the ones to trust.

    Args:
        r_first: correlation of the first metric with the ratings.
        r_second: correlation of the second metric with the ratings.
        r_between: correlation of the two metrics with each other, over the same items.
        n: the number of items.
        alternative: "two-sided", or "greater": the first correlates better.

    Returns:
        The test; NaN where a correlation is, for fewer than 4 items, and where the metrics are linear functions
        of each other or the correlations contradict each other.

    Raises:
        ValueError: a correlation outside [-1, 1] or an unknown alternative.
    """
    _known("alternative", alternative, ("two-sided", "greater"))
    if any(abs(r) > 1 for r in (r_first, r_second, r_between)):
        raise ValueError(f"a correlation outside [-1, 1]: {r_first}, {r_second}, {r_between}")
    determinant = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    reason = None
    if any(math.isnan(r) for r in (r_first, r_second, r_between)):
        reason = "a correlation is undefined"
    elif n <= _FEWEST:
        reason = f"fewer than {_FEWEST + 1} items"
    elif 1 - abs(r_between) < _ROUNDING:
        reason = "the two metrics are linear functions of each other"
    elif determinant < -_ROUNDING:
        reason = "no items have these three correlations"
    if reason:
        return WilliamsTest(math.nan, n - 3, math.nan, reason)
    mean = (r_first + r_second) / 2
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    t = (r_first - r_second) * math.sqrt((n - 1) * (1 + r_between) / spread)
    p = stats.t.sf(t, n - 3) if alternative == "greater" else 2 * stats.t.sf(abs(t), n - 3)
    return WilliamsTest(float(t), n - 3, float(p))


@dataclass(frozen=True)
class _Items:
    """Scores and ratings with what a coefficient at a level needs; labels are numbers 0, 1, ..."""

    scores: _Floats
    ratings: _Floats
    level: Level
    coefficient: Coefficient
    groups: _Codes
    systems: _Codes

    @classmethod
    def of(
        cls,
        scores: Values,
        ratings: Values,
        level: Level,
        coefficient: Coefficient,
        groups: Labels | None,
        systems: Labels | None,
    ) -> _Items:
        """Checked: one score, rating and label an item. Absent labels: each item a group, one system."""
        _known("level", level, ("items", "within_groups", "systems"))
        _known("coefficient", coefficient, ("pearson", "spearman", "kendall"))
        score, rating = (np.asarray(values, dtype=np.float64) for values in (scores, ratings))
        if score.ndim != 1 or score.shape != rating.shape:
            raise ValueError(f"one score and one rating an item, got shapes {score.shape} and {rating.shape}")
        count = len(score)
        if (level == "within_groups" and groups is None) or (level == "systems" and systems is None):
            raise ValueError(f'level "{level}" needs {"systems" if level == "systems" else "groups"}')
        return cls(
            score,
            rating,
            level,
            coefficient,
            np.arange(count) if groups is None else _codes("groups", groups, count)[1],
            np.zeros(count, dtype=np.int64) if systems is None else _codes("systems", systems, count)[1],
        )

    @property
    def group_count(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @property
    def system_count(self) -> int:
        return int(self.systems.max(initial=-1)) + 1

    @property
    def width(self) -> int:
        """Numbers that the statistic holds at once for a resample."""
        return max(len(self.scores), self.system_count**2)

    def statistic(self) -> _Statistic:
        """The coefficient as a function of how often each group is drawn."""
        if self.level == "within_groups":
            return _within_groups(self)
        if self.level == "systems":
            return _over_systems(self)
        if self.coefficient == "pearson":
            return _pearson(_scaled(self.scores), _scaled(self.ratings), self.groups)
        return (_spearman if self.coefficient == "spearman" else _kendall)(self.scores, self.ratings, self.groups)

    def standardised(self) -> _Floats:
        """The scores, on a scale that all metrics share."""
        if self.level == "within_groups":
            scores = _within(self.scores, self.groups, self.coefficient)
        elif self.level == "items" and self.coefficient != "pearson":
            scores = np.asarray(stats.rankdata(self.scores), dtype=np.float64)
        else:
            scores = _scaled(self.scores)
        return np.asarray((scores - scores.mean()) / scores.std())


def _known(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises ValueError unless the value is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _codes(name: str, labels: Labels, count: int) -> tuple[list[str | int], _Codes]:
    """The sorted labels, and the place of each item's label among them.

    Sorted, so that the same seed draws the same groups in whatever order the items come.
    """
    listed = list(labels)
    if len(listed) != count:
        raise ValueError(f"{name} must be one label an item, got {len(listed)} for {count} items")
    # Checked one by one: numpy would make a missing label (None, NaN) among strings the label "nan".
    if not any(all(isinstance(label, kind) for label in listed) for kind in (str, int | np.integer)):
        raise ValueError(f"{name} must be all strings or all integers")
    names, codes = np.unique(np.array(listed, dtype=None if listed else np.int64), return_inverse=True)
    return names.tolist(), codes.astype(np.int64)


def _estimate(items: _Items) -> Estimate:
    """The coefficient over all groups, or why there is none."""
    n = _size(items)
    reason = _why_undefined(items, n)
    if reason:
        return Estimate(math.nan, n, reason)
    if items.level == "items":
        if items.coefficient == "pearson":
            result = stats.pearsonr(_scaled(items.scores), _scaled(items.ratings))
        else:
            result = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[items.coefficient](
                items.scores, items.ratings
            )
        value = result.statistic
    else:
        value = items.statistic()(np.ones((1, items.group_count)))[0]
    return Estimate(float(value), n)


def _size(items: _Items) -> int:
    """How many items (systems) a coefficient rests on."""
    if items.level == "systems":
        return items.system_count
    if items.level == "within_groups":
        sizes = np.bincount(items.groups)
        return int(sizes[sizes > 1].sum())
    return len(items.scores)


def _why_undefined(items: _Items, n: int) -> str | None:
    """The reason why a coefficient is undefined, or None."""
    for name, values in (("ratings", items.ratings), ("scores", items.scores)):
        bad = int((~np.isfinite(values)).sum())
        if bad:
            return f"{bad} of {len(values)} {name} are missing or not finite"
    where = {"items": "items", "within_groups": "items in groups of two or more", "systems": "systems"}
    if n < _FEWEST:
        return f"{n} {where[items.level]}, fewer than {_FEWEST}"
    for name, values in (("ratings", items.ratings), ("scores", items.scores)):
        if items.level == "systems":
            spread, of = _system_means(_scaled(values), items), "the systems' mean "
        elif items.level == "within_groups":
            spread, of = _within(values, items.groups, items.coefficient), "within every group all "
        else:
            spread, of = _scaled(values), "all "
        if np.ptp(spread) == 0:
            return f"{of}{name} are equal"
    return None


def _too_few_groups(items: _Items) -> str | None:
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
) -> tuple[_Items, _Items, float, int] | Comparison:
    """The items with the scores of each metric, the difference and n; or an undefined comparison."""
    _known("alternative", alternative, ("two-sided", "greater"))
    pair = [_Items.of(scores, ratings, level, coefficient, groups, systems) for scores in (first, second)]
    estimates = [_estimate(items) for items in pair]
    difference = estimates[0].value - estimates[1].value
    reason = _too_few_groups(pair[0])
    for name, estimate in zip(("second", "first"), reversed(estimates), strict=True):
        reason = f"{name} metric: {estimate.reason}" if estimate.reason else reason
    if reason:
        return Comparison(difference, math.nan, estimates[0].n, reason=reason)
    return pair[0], pair[1], difference, estimates[0].n


def _draw_groups(count: int) -> _Draw:
    """Draws as many groups as there are, with replacement; the same for every metric."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[_Floats, ...]:
        picks = rng.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        counts = np.bincount(picks.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)
        return counts, counts

    return draw


def _resample(
    statistics: Sequence[_Statistic], draw: _Draw, width: int, resamples: int, seed: int | np.random.Generator
) -> list[_Floats]:
    """The values of each statistic, (resamples,), some resamples at a time.

    Args:
        statistics: at most two.
        draw: how often each group is drawn, for each statistic.
        width: numbers that a statistic holds at once for a resample.
        resamples: how many.
        seed: a seed or a generator.
    """
    if resamples < 1:
        raise ValueError(f"resamples must be positive, got {resamples}")
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // width)
    chunks = []
    for start in range(0, resamples, rows):
        counts = draw(rng, min(rows, resamples - start))
        chunks.append([statistic(count) for statistic, count in zip(statistics, counts, strict=False)])
    return [np.concatenate(values) for values in zip(*chunks, strict=True)]


def _scaled(values: _Floats) -> _Floats:
    """Shifted to mean 0 and divided by the largest size, so that sums neither overflow nor cancel.

    All 0 where the values differ by rounding alone.
    """
    largest = np.abs(values).max(initial=0.0)
    if not largest:
        return values
    values = values / largest
    if np.ptp(values) <= _ROUNDING:
        return np.zeros_like(values)
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max())


def _coefficient(xy: _Floats, xx: _Floats, yy: _Floats) -> _Floats:
    """The quotient xy / sqrt(xx yy) between -1 and 1; NaN where xx or yy is not positive."""
    defined = (xx > 0) & (yy > 0)
    size = np.sqrt(np.where(defined, xx, np.nan)) * np.sqrt(np.where(defined, yy, np.nan))
    return np.asarray(np.clip(xy / size, -1, 1))


def _weighted_pearson(weights: _Floats, x: _Floats, y: _Floats) -> _Floats:
    """Pearson's r of each row; x and y: (items,) or (rows, items)."""
    total = weights.sum(axis=1)

    def centred(values: _Floats) -> tuple[_Floats, _Floats, _Floats]:
        mean = np.einsum("ri,ri->r", weights, np.broadcast_to(values, weights.shape)) / total
        deviations = values - mean[:, None]
        weighted = weights * deviations
        square = np.einsum("ri,ri->r", weighted, deviations)
        square[square <= total * (_ROUNDING * mean) ** 2] = 0
        return deviations, weighted, square

    x_deviations, _, xx = centred(x)
    _, y_weighted, yy = centred(y)
    return _coefficient(np.einsum("ri,ri->r", x_deviations, y_weighted), xx, yy)


class _Ties:
    """Items of equal value, for items with multiplicities."""

    def __init__(self, values: _Floats) -> None:
        _, self._codes = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._codes, kind="stable")
        self._starts = np.flatnonzero(np.diff(self._codes[self._order], prepend=-1))

    def sizes(self, weights: _Floats) -> _Floats:
        """(rows, items) to how many items have each of the values, (rows, values), smallest value first."""
        return np.add.reduceat(weights[:, self._order], self._starts, axis=1)

    def ranks(self, weights: _Floats) -> _Floats:
        """The rank of each item, (rows, items); equal items share the mean of their ranks."""
        sizes = self.sizes(weights)
        return (np.cumsum(sizes, axis=1) - sizes / 2 + 0.5)[:, self._codes]

    def differing(self, weights: _Floats) -> _Floats:
        """The number of ordered pairs whose values differ, (rows,)."""
        return np.asarray(weights.sum(axis=1) ** 2 - (self.sizes(weights) ** 2).sum(axis=1))


def _pearson(x: _Floats, y: _Floats, groups: _Codes) -> _Statistic:
    """Pearson's r over all items."""
    return lambda counts: _weighted_pearson(counts[:, groups], x, y)


def _spearman(x: _Floats, y: _Floats, groups: _Codes) -> _Statistic:
    """Spearman's rho over all items: ranks anew in every resample."""
    x_ties, y_ties = _Ties(x), _Ties(y)

    def statistic(counts: _Floats) -> _Floats:
        weights = counts[:, groups]
        return _weighted_pearson(weights, x_ties.ranks(weights), y_ties.ranks(weights))

    return statistic


def _kendall(x: _Floats, y: _Floats, groups: _Codes) -> _Statistic:
    """Kendall's tau-b over all items: a quadratic form of the counts (a pair of copies is a tie)."""
    x_ties, y_ties = _Ties(x), _Ties(y)
    order = np.argsort(groups, kind="stable")
    x, y, ordered = x[order], y[order], groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    # concordance[g, h]: concordant minus discordant pairs of an item of group g and one of group h.
    concordance = np.zeros((len(starts), len(starts)))
    rows = max(1, _AT_ONCE // max(len(x), 1))
    for start in range(0, len(x), rows):
        some = slice(start, start + rows)
        signs = _signs(x[some], x) * _signs(y[some], y)
        np.add.at(concordance, ordered[some], np.add.reduceat(signs, starts, axis=1, dtype=np.float64))

    def statistic(counts: _Floats) -> _Floats:
        weights = counts[:, groups]
        pairs = np.einsum("rg,rg->r", counts @ concordance, counts)
        return _coefficient(pairs, x_ties.differing(weights), y_ties.differing(weights))

    return statistic


def _signs(rows: _Floats, columns: _Floats) -> NDArray[np.int8]:
    """The sign of each row's value minus each column's; by comparison, a difference may underflow."""
    larger, smaller = rows[:, None] > columns, rows[:, None] < columns
    return larger.astype(np.int8) - smaller.astype(np.int8)


def _members(groups: _Codes) -> list[_Codes]:
    """The items of each group."""
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])


def _within(values: _Floats, groups: _Codes, coefficient: Coefficient) -> _Floats:
    """Values as they are compared within groups, their mean 0 in every group.

    Pearson: minus the mean of the group, and 0 where only rounding is left. Rank coefficients: ranks within the
    group as fractions of its size, in (-1/2, 1/2).
    """
    if coefficient == "pearson":
        values = _scaled(values)
        centred = values - (np.bincount(groups, values) / np.bincount(groups))[groups]
        return np.where(np.abs(centred) > _ROUNDING, centred, 0)
    ranks = np.empty_like(values)
    for members in _members(groups):
        ranks[members] = (stats.rankdata(values[members]) - 0.5) / len(members) - 0.5
    return ranks


def _within_groups(items: _Items) -> _Statistic:
    """The pooled coefficient: three sums a group, which a resample adds up."""
    x, y = (_within(values, items.groups, items.coefficient) for values in (items.scores, items.ratings))
    if items.coefficient == "kendall":
        sums = np.array([_pair_sums(x[members], y[members]) for members in _members(items.groups)])
    else:
        sums = np.stack([np.bincount(items.groups, product) for product in (x * y, x * x, y * y)], axis=1)
    return lambda counts: _coefficient(*(counts @ sums).T)


def _pair_sums(x: _Floats, y: _Floats) -> tuple[int, int, int]:
    """Ordered pairs of the items: concordant minus discordant; differing in x; differing in y."""
    x_signs, y_signs = _signs(x, x).astype(np.int64), _signs(y, y).astype(np.int64)
    return int((x_signs * y_signs).sum()), int(np.abs(x_signs).sum()), int(np.abs(y_signs).sum())


def _system_sums(values: _Floats, items: _Items) -> _Floats:
    """Sums of values by (group, system)."""
    shape = (items.group_count, items.system_count)
    cells = items.groups * items.system_count + items.systems
    return np.asarray(np.bincount(cells, values, shape[0] * shape[1]), dtype=np.float64).reshape(shape)


def _means(sums: _Floats, sizes: _Floats) -> _Floats:
    """Means, NaN where there are no items; rounded, as means that are equal must be ties."""
    return np.round(sums / np.where(sizes > 0, sizes, np.nan), 12)


def _system_means(values: _Floats, items: _Items) -> _Floats:
    """The mean of each system's values, (systems,)."""
    return _means(*(_system_sums(v, items).sum(axis=0) for v in (values, np.ones_like(values))))


def _over_systems(items: _Items) -> _Statistic:
    """The coefficient over the systems' means; undefined in a resample that lacks one of the systems."""
    x, y, ones = (
        _system_sums(values, items)
        for values in (_scaled(items.scores), _scaled(items.ratings), np.ones_like(items.scores))
    )
    coefficient = items.coefficient

    def statistic(counts: _Floats) -> _Floats:
        sizes = counts @ ones
        x_means, y_means = _means(counts @ x, sizes), _means(counts @ y, sizes)
        if coefficient == "kendall":
            x_signs, y_signs = (np.sign(means[:, :, None] - means[:, None, :]) for means in (x_means, y_means))
            return _coefficient(
                np.einsum("rst,rst->r", x_signs, y_signs),
                np.einsum("rst,rst->r", x_signs, x_signs),
                np.einsum("rst,rst->r", y_signs, y_signs),
            )
        if coefficient == "spearman":
            x_means, y_means = stats.rankdata(x_means, axis=1), stats.rankdata(y_means, axis=1)
        return _weighted_pearson(np.ones_like(x_means), x_means, y_means)

    return statistic
