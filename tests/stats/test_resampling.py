"""Intervals of means and tests of their differences, against scipy and brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mars_score.stats.resampling import ContextLabels, holm, mean_interval, mean_p

SCORES = np.random.default_rng(5).normal(0.05, 0.1, 30)
GROUPS = np.repeat(range(12), [3, 4, 1, 4, 2, 2, 2, 2, 2, 3, 3, 2])


@pytest.mark.parametrize("groups", [range(30), GROUPS])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_intervals_are_those_of_scipy(groups, confidence):
    """Over rows, and over groups of rows."""
    sums, sizes = np.bincount(groups, SCORES), np.bincount(groups)
    expected = stats.bootstrap(
        (np.arange(len(sums)),),
        lambda places, axis: sums[places].sum(axis) / sizes[places].sum(axis),
        method="percentile",
        confidence_level=confidence,
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    interval = mean_interval(SCORES, groups, confidence=confidence)
    assert interval.ends == pytest.approx([expected.low, expected.high], abs=0.005)
    assert interval == mean_interval(SCORES, groups, confidence=confidence)


@pytest.mark.parametrize("groups", [range(12), GROUPS])
def test_randomisation_is_that_of_scipy_over_all_swaps(groups):
    """Of rows, and of groups of rows."""
    scores = SCORES[: len(groups)]
    exact = stats.permutation_test(
        (np.bincount(groups, scores), np.zeros(12)),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert mean_p(scores, groups, resamples=40_000) == pytest.approx(exact.pvalue, abs=0.01)


def test_p_is_count_plus_one_and_repeats_with_the_seed():
    assert mean_p(np.linspace(1, 2, 12), resamples=99) == 1 / 100
    assert mean_p([0] * 12, resamples=99) == 1
    assert mean_p(SCORES, seed=3) == mean_p(SCORES, seed=3) != mean_p(SCORES, seed=4)


def test_many_groups_are_drawn_in_parts():
    """More numbers than one array holds."""
    scores = np.random.default_rng(0).normal(0.02, 1, 3000)
    half = 1.96 * scores.std() / math.sqrt(3000)
    assert mean_interval(scores).ends == pytest.approx([scores.mean() - half, scores.mean() + half], abs=0.005)


@pytest.mark.parametrize("groups", [[], np.repeat(range(9), 3)])
def test_nothing_is_said_of_fewer_than_ten_groups(groups):
    scores = SCORES[: len(groups)]
    assert mean_interval(scores, groups).reason == f"{len(set(groups))} groups, fewer than 10"
    assert math.isnan(mean_p(scores, groups))


def test_rows_of_a_context_share_a_label():
    labels = ContextLabels()
    assert labels.of(["a", "b", "a", "", " ", "b"]) == [0, 1, 0, 2, 3, 1]
    assert labels.of(["", "a", "\ud800"]) == [4, 0, 5]


def test_holm_is_the_closure_of_bonferroni():
    """The adjusted p is the largest over all sets of hypotheses with this one, each tested by Bonferroni."""
    for size in (1, 2, 3, 6):
        subsets = [subset for length in range(size) for subset in itertools.combinations(range(size), length + 1)]
        for p_values in np.random.default_rng(size).uniform(0, 1, (20, size)) ** 3:
            tests = [(subset, min(1, len(subset) * p_values[list(subset)].min())) for subset in subsets]
            expected = [max(p for subset, p in tests if place in subset) for place in range(size)]
            assert holm(list(p_values)) == pytest.approx(expected)
    assert all(map(math.isnan, holm([math.nan] * 3)))
