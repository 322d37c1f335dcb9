"""Correlations with human ratings, their intervals and the comparison of two metrics."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy import stats

from mars_score.stats.correlation import (
    at_level,
    bootstrap_interval,
    compare_correlations,
    correlation,
    resampled_pearson,
)

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
LEVELS = ["items", "within_groups", "systems"]
of_each_coefficient = pytest.mark.parametrize("coefficient", SCIPY)
at_each_level = pytest.mark.parametrize("level", LEVELS)
at_main_levels = pytest.mark.parametrize("level", LEVELS[:2])  # with intervals and tests


class Data:
    """Ratings (whole numbers, with ties) and two metrics; groups of unequal size, the second of one item."""

    def __init__(self, seed=0, groups=12, systems=5):
        rng = np.random.default_rng(seed)
        present = [(g, s) for g in range(groups) for s in range(systems) if g == 0 or rng.random() < 0.9]
        self.groups, self.systems = np.array([(g, s) for g, s in present if g != 1 or s == 0]).T
        n = len(self.groups)
        quality = rng.normal(size=groups)[self.groups] + 0.5 * self.systems + rng.normal(size=n)
        self.ratings = np.round(quality)
        self.first = np.round(quality + rng.normal(size=n), 1)
        self.second = np.round(quality + 2 * rng.normal(size=n), 1)

    @property
    def labels(self):
        return {"groups": [f"group {g:02}" for g in self.groups], "systems": self.systems}


@pytest.fixture(scope="module")
def data():
    return Data()


def interval_of(scores, ratings, groups, level="items", **options):
    return bootstrap_interval(at_level(scores, ratings, level, groups=groups), **options)


def compare(first, second, ratings, groups, level="items", **options):
    rated = (at_level(scores, ratings, level, groups=groups) for scores in (first, second))
    return compare_correlations(*rated, **options)


def by_hand(x, y, coefficient, level, groups, systems):
    """The coefficient from its definition, with plain loops and scipy."""
    if level == "items":
        return SCIPY[coefficient](x, y).statistic
    if level == "systems":
        means = [
            [np.mean(values[np.asarray(systems) == label]) for label in sorted(set(systems))] for values in (x, y)
        ]
        return SCIPY[coefficient](*np.round(means, 12)).statistic
    members = [[i for i, g in enumerate(groups) if g == group] for group in sorted(set(groups))]
    if coefficient == "kendall":
        pairs = [pair for items in members for pair in itertools.combinations(items, 2)]
        signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
        agreeing = sum(a * b for a, b in signs)
        return agreeing / math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    pooled = [[], []]
    for items in members:
        for pool, values in zip(pooled, (x, y), strict=True):
            own = np.array([values[i] for i in items])
            if coefficient == "spearman":
                own = stats.rankdata(own) / len(own)
            pool += list(own - own.mean())
    return stats.pearsonr(*pooled).statistic


# Coefficients


@at_each_level
@of_each_coefficient
def test_coefficients_follow_their_definitions_and_affine_transforms_change_nothing(data, coefficient, level):
    def estimate(scores, ratings):
        return correlation(scores, ratings, coefficient=coefficient, level=level, **data.labels)

    plain = estimate(data.first, data.ratings)
    expected = by_hand(data.first, data.ratings, coefficient, level, data.groups, data.systems)
    assert plain.value == pytest.approx(expected, abs=1e-12)
    assert plain.reason is None
    assert plain.n == {"items": len(data.ratings), "within_groups": len(data.ratings) - 1, "systems": 5}[level]
    transformed = estimate(1e6 + 3e-3 * data.first, 1e200 * data.ratings)
    assert transformed.value == pytest.approx(plain.value, abs=1e-6)
    assert estimate(-data.first, data.ratings).value == pytest.approx(-plain.value, abs=1e-12)
    if level == "within_groups":
        shift = data.groups**2
        shifted = estimate(data.first + shift, data.ratings - 3 * shift)
        assert shifted.value == pytest.approx(plain.value, abs=1e-9)


def test_system_means_that_differ_by_rounding_alone_are_ties():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point."""
    scores = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9]
    ratings = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    estimate = correlation(scores, ratings, coefficient="kendall", level="systems", systems=list("aaabbbcccddd"))
    assert estimate.value == pytest.approx(5 / math.sqrt(5 * 6))


# What is undefined

UP = [1.0, 2.0, 3.0, 4.0]
TWICE = {"level": "within_groups", "groups": ["a", "a", "b", "b"]}
UNEVEN = [1, 3, 3, 1, 0, 4]
UNDEFINED = [
    (UP, [2, 2, 2, 2], {}, "all ratings are equal"),
    ([0.1 + 0.2, 0.3, 0.3, 0.3], UP, {}, "all scores are equal"),
    ([1, math.nan, math.inf, 2], UP, {}, "2 of 4 scores are missing or not finite"),
    (UP, [1, None, 2, 3], {}, "1 of 4 ratings are missing or not finite"),
    ([], [], {}, "0 items, fewer than 3"),
    (UP, UP, {"level": "systems", "systems": ["a"] * 4}, "1 systems, fewer than 3"),
    (UP, UP, {"level": "within_groups", "groups": list("aabc")}, "2 items in groups of two or more, fewer than 3"),
    (UP, [1, 1, 2, 2], TWICE, "within every group all ratings are equal"),
    ([0.1, 0.1, 9, 9], UP, TWICE, "within every group all scores are equal"),
    (UNEVEN, range(6), {"level": "systems", "systems": list("aabbcc")}, "the systems' mean scores are equal"),
]


@pytest.mark.filterwarnings("error")
@of_each_coefficient
@pytest.mark.parametrize(("scores", "ratings", "options", "reason"), UNDEFINED)
def test_what_is_undefined_is_nan_with_a_reason(scores, ratings, options, reason, coefficient):
    estimate = correlation(scores, ratings, coefficient=coefficient, **options)
    assert math.isnan(estimate.value)
    assert estimate.reason == reason
    if coefficient == "pearson" and "systems" not in options:
        options = {"groups": range(len(scores)), **options}
        interval = interval_of(scores, ratings, **options)
        comparison = compare(scores, np.arange(len(ratings)), ratings, **options)
        assert math.isnan(interval.low)
        assert math.isnan(comparison.p)
        assert (interval.reason, comparison.reason) == (reason, f"first metric: {reason}")


@pytest.mark.parametrize(("level", "count"), [("items", 9), ("within_groups", 8)])
def test_fewer_than_ten_groups_give_no_interval_and_no_test(data, level, count):
    """Of the first nine groups one has a single item, which says nothing within its group."""
    first, second, ratings, groups = (
        column[data.groups < 9] for column in (data.first, data.second, data.ratings, data.groups)
    )
    comparison = compare(first, second, ratings, groups, level=level)
    reason = f"{count} groups, fewer than 10"
    assert interval_of(first, ratings, groups, level=level).reason == comparison.reason == reason
    assert math.isnan(comparison.p)
    assert not math.isnan(comparison.difference)


def test_undefined_resamples_are_left_out_of_intervals():
    assert compare(UP, [1] * 4, UP, range(4)).reason == "second metric: all scores are equal"
    # One rating of 50 differs: 36 % of resamples lack it.
    assert interval_of(np.arange(50), [1] + [0] * 49, range(50)).reason is None
    # A resample needs both of the last two items: 60 % lack one of them.
    interval = interval_of([*[0] * 48, 0, 1], [*[0] * 48, 1, 0], range(50))
    assert math.isnan(interval.low)
    assert re.fullmatch(r"undefined in 6\d\d of 1000 resamples", interval.reason)


def test_what_cannot_be_meant_is_refused():
    for options, message in [
        ({"level": "systems"}, "needs systems"),
        ({"level": "within_groups"}, "needs groups"),
        ({"groups": [1, 2]}, "groups must be one label per item"),
        ({"groups": [1.0, 2.0, math.nan, 3.0]}, "groups must be all strings or all integers"),
        ({"systems": ["1", 1, 2, 3]}, "systems must be all strings or all integers"),
        ({"ratings": UP[:3]}, "one score and one rating"),
    ]:
        with pytest.raises(ValueError, match=message):
            correlation(**{"scores": UP, "ratings": UP, **options})


# Resampling


@at_main_levels
def test_a_resample_is_the_coefficient_of_the_items_written_out(data, level):
    """Against the same draws, each copy of a group being a group of its own."""
    items = at_level(data.first, data.ratings, level, groups=data.groups)
    picks = np.random.default_rng(1).integers(0, 12, (30, 12))
    for row, value in zip(picks, resampled_pearson(items, 30, seed=1), strict=True):
        copies = [(i, copy) for copy, group in enumerate(row) for i in np.flatnonzero(data.groups == group)]
        drawn = [i for i, _ in copies]
        x, y = data.first[drawn], data.ratings[drawn]
        expected = by_hand(x, y, "pearson", level, [copy for _, copy in copies], None)
        assert value == pytest.approx(expected, abs=1e-10)


@at_main_levels
def test_results_are_reproducible_and_the_order_of_items_is_irrelevant(data, level):
    order = np.random.default_rng(6).permutation(len(data.ratings))

    def results(first, second, ratings, groups, seed=7):
        options = {"level": level, "resamples": 200, "seed": seed}
        interval = interval_of(first, ratings, groups, **options)
        return [interval.low, interval.high, compare(first, second, ratings, groups, **options).p]

    columns = (data.first, data.second, data.ratings, data.groups)
    once = results(*columns)
    assert results(*columns) == once
    assert results(*(column[order] for column in columns)) == pytest.approx(once, abs=1e-9)
    assert results(*columns, seed=8)[:2] != once[:2]


# Comparing two metrics


@at_main_levels
def test_p_is_the_share_of_all_swaps_with_a_larger_difference(data, level):
    """Groups swap the standardised scores of both metrics; 2^10 swaps."""
    chosen = data.groups >= 2
    ratings, groups = data.ratings[chosen], data.groups[chosen] - 2
    scores = []
    for metric in (data.first[chosen], data.second[chosen]):
        if level == "within_groups":
            metric = np.concatenate(
                [values - values.mean() for values in (metric[groups == g] for g in range(10))]
            )
        scores.append(stats.zscore(metric))

    def difference(swaps):
        swapped = np.array(swaps)[groups]
        pair = np.where(swapped, *scores[::-1]), np.where(swapped, *scores)
        return np.subtract(*(by_hand(x, ratings, "pearson", level, groups, None) for x in pair))

    differences = np.array([difference(swaps) for swaps in itertools.product((False, True), repeat=10)])
    p = np.mean(abs(differences) > abs(differences[0]) - 1e-9)
    columns = (data.first[chosen], data.second[chosen], ratings, groups, level)
    comparison = compare(*columns, resamples=20_000)
    assert comparison.difference == pytest.approx(differences[0])
    assert comparison.p == pytest.approx(p, abs=0.015)
    assert compare(columns[0], 3 * columns[0] + 7, *columns[2:]).p == 1
