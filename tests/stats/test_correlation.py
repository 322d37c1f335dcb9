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
at_main_levels = pytest.mark.parametrize("level", LEVELS[:2])  # with intervals and tests

# Texts of 5 systems in 12 groups, some missing, the second group of one text; ratings are whole, with ties.
RNG = np.random.default_rng(0)
PRESENT = [(g, s) for g in range(12) for s in range(5) if g == 0 or RNG.random() < 0.9]
GROUPS, SYSTEMS = np.array([(g, s) for g, s in PRESENT if g != 1 or s == 0]).T
QUALITY = RNG.normal(size=12)[GROUPS] + 0.5 * SYSTEMS + RNG.normal(size=len(GROUPS))
RATINGS = np.round(QUALITY)
FIRST, SECOND = (np.round(QUALITY + noise * RNG.normal(size=len(GROUPS)), 1) for noise in (1, 2))
COLUMNS = np.array([FIRST, SECOND, RATINGS, GROUPS])


def interval_of(scores, ratings, groups, level="items", **options):
    return bootstrap_interval(at_level(scores, ratings, level, groups=groups), **options)


def compare(first, second, ratings, groups, level="items", **options):
    rated = (at_level(scores, ratings, level, groups=groups) for scores in (first, second))
    return compare_correlations(*rated, **options)


def by_hand(x, y, coefficient, level, groups, systems):
    """The coefficient from its definition, group by group or pair by pair."""
    if level == "items":
        return SCIPY[coefficient](x, y).statistic
    labels = np.asarray(systems if level == "systems" else groups)
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if level == "systems":
        means = [[np.mean(values[items]) for items in members] for values in (x, y)]
        return SCIPY[coefficient](*np.round(means, 12)).statistic
    if coefficient == "kendall":
        pairs = [pair for items in members for pair in itertools.combinations(items, 2)]
        signs = np.sign([(x[i] - x[j], y[i] - y[j]) for i, j in pairs])
        return signs.prod(axis=1).sum() / math.sqrt(abs(signs).sum(axis=0).prod())
    pooled = []
    for values in (x, y):
        parts = [values[items] for items in members]
        if coefficient == "spearman":
            parts = [stats.rankdata(part) / len(part) for part in parts]
        pooled.append(np.concatenate([part - part.mean() for part in parts]))
    return stats.pearsonr(*pooled).statistic


@pytest.mark.parametrize("level", LEVELS)
@of_each_coefficient
def test_coefficients_follow_their_definitions_and_affine_transforms_change_nothing(coefficient, level):
    labels = {"groups": [f"group {g:02}" for g in GROUPS], "systems": SYSTEMS}

    def value_of(scores, ratings):
        return correlation(scores, ratings, coefficient=coefficient, level=level, **labels).value

    plain = correlation(FIRST, RATINGS, coefficient=coefficient, level=level, **labels)
    expected = by_hand(FIRST, RATINGS, coefficient, level, GROUPS, SYSTEMS)
    assert (plain.value, plain.reason) == (pytest.approx(expected, abs=1e-12), None)
    assert plain.n == {"items": len(RATINGS), "within_groups": len(RATINGS) - 1, "systems": 5}[level]
    assert value_of(1e6 + 3e-3 * FIRST, 1e200 * RATINGS) == pytest.approx(expected, abs=1e-6)
    assert value_of(-FIRST, RATINGS) == pytest.approx(-expected, abs=1e-12)
    if level == "within_groups":
        assert value_of(FIRST + GROUPS**2, RATINGS - 3 * GROUPS**2) == pytest.approx(expected, abs=1e-9)


def test_system_means_that_differ_by_rounding_alone_are_ties():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point."""
    scores = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9]
    systems = np.repeat(range(4), 3)
    estimate = correlation(scores, systems, coefficient="kendall", level="systems", systems=systems)
    assert estimate.value == pytest.approx(5 / math.sqrt(5 * 6))


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
def test_fewer_than_ten_groups_give_no_interval_and_no_test(level, count):
    """Of the first nine groups one has a single item, which says nothing within its group."""
    first, second, ratings, groups = COLUMNS[:, GROUPS < 9]
    groups = groups.astype(int)
    comparison = compare(first, second, ratings, groups, level)
    reason = f"{count} groups, fewer than 10"
    assert interval_of(first, ratings, groups, level).reason == comparison.reason == reason
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "systems"}, "needs systems"),
        ({"level": "within_groups"}, "needs groups"),
        ({"groups": [1, 2]}, "groups must be one label per item"),
        ({"groups": [1.0, 2.0, math.nan, 3.0]}, "groups must be all strings or all integers"),
        ({"systems": ["1", 1, 2, 3]}, "systems must be all strings or all integers"),
        ({"ratings": UP[:3]}, "one score and one rating"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        correlation(**{"scores": UP, "ratings": UP, **options})


@at_main_levels
def test_a_resample_is_the_coefficient_of_the_items_written_out(level):
    """Against the same draws, each copy of a group being a group of its own."""
    items = at_level(FIRST, RATINGS, level, groups=GROUPS)
    picks = np.random.default_rng(1).integers(0, 12, (30, 12))
    for row, value in zip(picks, resampled_pearson(items, 30, seed=1), strict=True):
        copies = [(i, copy) for copy, group in enumerate(row) for i in np.flatnonzero(group == GROUPS)]
        drawn, groups = map(list, zip(*copies, strict=True))
        expected = by_hand(FIRST[drawn], RATINGS[drawn], "pearson", level, groups, None)
        assert value == pytest.approx(expected, abs=1e-10)


@at_main_levels
def test_results_are_reproducible_and_the_order_of_items_is_irrelevant(level):
    def results(columns, seed=7):
        first, second, ratings, groups = columns
        options = {"groups": groups.astype(int), "level": level, "resamples": 200, "seed": seed}
        return [*interval_of(first, ratings, **options).ends, compare(first, second, ratings, **options).p]

    once = results(COLUMNS)
    assert results(COLUMNS) == once
    assert results(RNG.permutation(COLUMNS, axis=1)) == pytest.approx(once, abs=1e-9)
    assert results(COLUMNS, seed=8)[:2] != once[:2]


@at_main_levels
def test_p_is_the_share_of_all_swaps_with_a_larger_difference(level):
    """Groups swap the standardised scores of both metrics; 2^10 swaps."""
    first, second, ratings, groups = COLUMNS[:, GROUPS >= 2]
    groups = groups.astype(int) - 2
    centre = np.equal.outer(groups, groups) / np.bincount(groups)[groups] if level == "within_groups" else 0
    scores = [stats.zscore(metric - np.dot(centre, metric)) for metric in (first, second)]

    def difference(swaps):
        swapped = np.array(swaps)[groups]
        pair = np.where(swapped, *scores[::-1]), np.where(swapped, *scores)
        return np.subtract(*(by_hand(x, ratings, "pearson", level, groups, None) for x in pair))

    differences = np.array([difference(swaps) for swaps in itertools.product((False, True), repeat=10)])
    comparison = compare(first, second, ratings, groups, level, resamples=10_000)
    assert comparison.difference == pytest.approx(differences[0])
    assert comparison.p == pytest.approx(np.mean(abs(differences) > abs(differences[0]) - 1e-9), abs=0.015)
    assert compare(first, 3 * first + 7, ratings, groups, level).p == 1
