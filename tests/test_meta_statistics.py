"""Correlations with human ratings, their intervals and the comparison of two metrics."""

import functools
import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mars_score.stats.correlation import correlation, correlation_per_system
from mars_score.stats.levels import statistic_of
from mars_score.stats.rated import Rated
from mars_score.stats.resampling import bootstrap_interval, compare_correlations
from mars_score.stats.williams import williams_test

compare_bootstrap = functools.partial(compare_correlations, test="bootstrap")
compare_permutation = functools.partial(compare_correlations, test="permutation")
COEFFICIENTS = ["pearson", "spearman", "kendall"]
LEVELS = ["items", "within_groups", "systems"]
MAIN_LEVELS = LEVELS[:2]  # with intervals and tests
SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


class Data:
    """Ratings (whole numbers, with ties) and two metrics; groups of unequal size, one of them of one item."""

    def __init__(self, seed=0, groups=12, systems=5):
        rng = np.random.default_rng(seed)
        present = [(g, s) for g in range(groups) for s in range(systems) if g == 0 or rng.random() < 0.9]
        present = [(g, s) for g, s in present if g != 1 or s == 0]
        self.group_numbers, self.systems = np.array(present).T
        n = len(present)
        quality = rng.normal(size=groups)[self.group_numbers] + 0.5 * self.systems + rng.normal(size=n)
        self.ratings = np.round(quality)
        self.first = np.round(quality + rng.normal(size=n), 1)
        self.second = np.round(quality + 2 * rng.normal(size=n), 1)
        self.groups = [f"group {g}" for g in self.group_numbers]

    def options(self, level):
        return {"level": level, "systems": self.systems}


@pytest.fixture(scope="module")
def data():
    return Data()


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


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_coefficients_follow_their_definitions(data, coefficient, level):
    found = correlation(
        data.first, data.ratings, coefficient=coefficient, groups=data.groups, **data.options(level)
    )
    expected = by_hand(data.first, data.ratings, coefficient, level, data.groups, data.systems)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.reason is None
    assert found.n == {"items": len(data.ratings), "within_groups": len(data.ratings) - 1, "systems": 5}[level]


def test_each_system_has_the_figure_of_its_items(data):
    found = correlation_per_system(data.first, data.ratings, data.systems)
    assert list(found) == [0, 1, 2, 3, 4]
    for system, estimate in found.items():
        own = data.systems == system
        assert estimate.n == own.sum()
        assert estimate.value == pytest.approx(stats.pearsonr(data.first[own], data.ratings[own]).statistic)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_affine_and_monotone_transforms_change_nothing(data, coefficient, level):
    def value(scores, ratings):
        return correlation(
            scores, ratings, coefficient=coefficient, groups=data.groups, **data.options(level)
        ).value

    plain = value(data.first, data.ratings)
    assert value(1e6 + 3e-3 * data.first, 1e200 * data.ratings) == pytest.approx(plain, abs=1e-6)
    assert value(-data.first, data.ratings) == pytest.approx(-plain, abs=1e-12)
    assert value(data.ratings, data.first) == pytest.approx(plain, abs=1e-12)
    if level == "within_groups":
        shift = data.group_numbers**2
        assert value(data.first + shift, data.ratings - 3 * shift) == pytest.approx(plain, abs=1e-9)
    if coefficient != "pearson" and level != "systems":  # means are not kept by other than affine transforms
        assert value(np.exp(100 * data.first), np.exp(data.ratings)) == pytest.approx(plain, abs=1e-12)


def test_system_means_that_differ_by_rounding_alone_are_ties():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point."""
    scores = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9]
    ratings = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    found = correlation(scores, ratings, coefficient="kendall", level="systems", systems=list("aaabbbcccddd"))
    assert found.value == pytest.approx(5 / math.sqrt(5 * 6))


# What is undefined

UP = [1.0, 2.0, 3.0, 4.0]
TWICE = ["a", "a", "b", "b"]
UNDEFINED = [
    (UP, [2, 2, 2, 2], {}, "all ratings are equal"),
    ([0.1 + 0.2, 0.3, 0.3, 0.3], UP, {}, "all scores are equal"),
    ([0, 0, 0, 0], UP, {}, "all scores are equal"),
    ([1, math.nan, math.inf, 2], UP, {}, "2 of 4 scores are missing or not finite"),
    (UP, [1, None, 2, 3], {}, "1 of 4 ratings are missing or not finite"),
    ([1, 2], [1, 2], {}, "2 items, fewer than 3"),
    ([], [], {}, "0 items, fewer than 3"),
    (UP, UP, {"level": "systems", "systems": ["a"] * 4}, "1 systems, fewer than 3"),
    (UP, UP, {"level": "systems", "systems": TWICE}, "2 systems, fewer than 3"),
    (UP, UP, {"level": "within_groups", "groups": list("abcd")}, "0 items in groups of two or more, fewer than 3"),
    (UP, UP, {"level": "within_groups", "groups": list("aabc")}, "2 items in groups of two or more, fewer than 3"),
    (UP, [1, 1, 2, 2], {"level": "within_groups", "groups": TWICE}, "within every group all ratings are equal"),
    ([0.1, 0.1, 9, 9], UP, {"level": "within_groups", "groups": TWICE}, "within every group all scores are equal"),
    (
        [1, 3, 3, 1, 0, 4],
        [1, 2, 3, 4, 5, 6],
        {"level": "systems", "systems": list("aabbcc")},
        "the systems' mean scores are equal",
    ),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize(("scores", "ratings", "options", "reason"), UNDEFINED)
def test_what_is_undefined_is_nan_with_a_reason(scores, ratings, options, reason, coefficient):
    found = correlation(scores, ratings, coefficient=coefficient, **options)
    assert math.isnan(found.value)
    assert found.reason == reason
    if coefficient != "pearson" or "systems" in options:
        return
    options = {"groups": range(len(scores)), **options}
    interval = bootstrap_interval(scores, ratings, **options)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.reason == reason
    for compare in (compare_bootstrap, compare_permutation):
        test = compare(scores, np.arange(len(ratings)), ratings, **options)
        assert math.isnan(test.p)
        assert test.reason == f"first metric: {reason}"


def test_the_metric_at_fault_is_named():
    test = compare_permutation(UP, [1, 1, 1, 1], UP, range(4))
    assert test.reason == "second metric: all scores are equal"


def test_a_system_without_a_figure_is_listed_with_its_reason():
    found = correlation_per_system([1, 2, 4, 1, 1, 1], [1, 2, 3, 1, 2, 3], list("bbbaaa"))
    assert list(found) == ["a", "b"]
    assert found["a"].reason == "all scores are equal"
    assert found["b"].reason is None


def test_one_group_gives_no_interval_and_no_test():
    assert bootstrap_interval(UP, [1, 3, 2, 4], ["one"] * 4).reason == "one group only, nothing to draw from"
    for compare in (compare_bootstrap, compare_permutation):
        test = compare(UP, [2, 1, 3, 4], [1, 3, 2, 4], ["one"] * 4)
        assert math.isnan(test.p)
        assert not math.isnan(test.difference)


def test_undefined_resamples_are_counted():
    """Three items: 1 resample in 9 draws one item thrice, all others are defined."""
    found = bootstrap_interval([1, 2, 3], [1, 3, 2], range(3), resamples=9000)
    assert found.undefined == pytest.approx(1000, abs=4 * math.sqrt(9000 * 1 / 9 * 8 / 9))
    # One rating of 50 differs: 36 % of resamples lack it; of two equal metrics p is 1.
    ratings = [1] + [0] * 49
    scores = np.arange(50)
    assert bootstrap_interval(scores, ratings, range(50)).undefined == pytest.approx(364, abs=60)
    test = compare_bootstrap(scores, -scores, ratings, range(50))
    assert test.undefined == pytest.approx(364, abs=60)
    assert test.p > 0.6
    # A resample needs both of the last two items: 57 % lack one of them.
    alone = bootstrap_interval([0, 0, 0, 1], [0, 0, 1, 0], range(4))
    assert math.isnan(alone.low)
    assert alone.reason == f"undefined in {alone.undefined} of 1000 resamples"


def test_what_cannot_be_meant_is_refused():
    for options, message in [
        ({"level": "documents"}, "level must be one of"),
        ({"coefficient": "tau"}, "coefficient must be one of"),
        ({"level": "systems"}, "needs systems"),
        ({"level": "within_groups"}, "needs groups"),
        ({"groups": [1, 2]}, "groups must be one label per item"),
        ({"groups": [1.0, 2.0, math.nan, 3.0]}, "groups must be all strings or all integers"),
        ({"systems": ["a", None, "b", "c"]}, "systems must be all strings or all integers"),
        ({"systems": ["a", math.nan, "b", "c"]}, "systems must be all strings or all integers"),
        ({"systems": ["1", 1, 2, 3]}, "systems must be all strings or all integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            correlation(UP, UP, **options)
    with pytest.raises(ValueError, match="one score and one rating"):
        correlation(UP, UP[:3])
    with pytest.raises(ValueError, match="resamples"):
        bootstrap_interval(UP, UP, range(4), resamples=0)
    with pytest.raises(ValueError, match="test must be one of"):
        compare_correlations(UP, UP, UP, range(4), test="guess")


# Resampling


@pytest.mark.parametrize("level", LEVELS)
def test_counts_of_groups_mean_copies_of_their_items(data, level):
    """The vectorised coefficient against the items written out as often as drawn, each copy a group."""
    items = Rated.of(data.first, data.ratings, level, data.groups, data.systems)
    counts = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12), size=30)
    found = statistic_of(items)(counts.astype(float))
    for row, value in zip(counts, found, strict=True):
        copies = [(i, c) for i, group in enumerate(items.groups) for c in range(row[group])]
        drawn = [i for i, _ in copies]
        groups = [(items.groups[i], c) for i, c in copies]
        x, y, systems = data.first[drawn], data.ratings[drawn], data.systems[drawn]
        if set(systems) != set(data.systems):
            assert math.isnan(value)
            continue
        assert value == pytest.approx(by_hand(x, y, "pearson", level, groups, systems), abs=1e-10)


def test_interval_of_single_items_is_that_of_scipy():
    """An independent reference: scipy.stats.bootstrap, paired, percentile."""
    data = Data(3)

    reference = stats.bootstrap(
        (data.first, data.ratings),
        lambda x, y: stats.pearsonr(x, y).statistic,
        paired=True,
        vectorized=False,
        method="percentile",
        confidence_level=0.95,
        n_resamples=1000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = bootstrap_interval(
        data.first,
        data.ratings,
        range(len(data.ratings)),
        resamples=20_000,
        seed=2,
    )
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.015)


def test_copies_in_a_group_do_not_make_the_interval_narrower():
    """Five copies of each item carry no more than one; drawing items instead of groups would not know."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=40)
    y = x + rng.normal(size=40)

    def width(repeats, groups):
        interval = bootstrap_interval(np.repeat(x, repeats), np.repeat(y, repeats), groups)
        return interval.high - interval.low

    single = width(1, range(40))
    assert width(5, np.repeat(range(40), 5)) == pytest.approx(single, rel=1e-9)
    assert width(5, range(200)) < 0.6 * single


@pytest.mark.parametrize("level", MAIN_LEVELS)
def test_results_are_reproducible_and_the_order_of_items_is_irrelevant(data, level):
    order = np.random.default_rng(6).permutation(len(data.ratings))

    def results(first, second, ratings, groups, seed=7):
        options = {"level": level, "resamples": 200, "seed": seed}
        interval = bootstrap_interval(first, ratings, groups, **options)
        return [
            interval.low,
            interval.high,
            *(
                compare(first, second, ratings, groups, **options).p
                for compare in (compare_bootstrap, compare_permutation)
            ),
        ]

    columns = (data.first, data.second, data.ratings, np.array(data.groups))
    once = results(*columns)
    assert results(*columns) == once
    assert results(*columns, seed=np.random.default_rng(7))[:2] == once[:2]
    assert results(*(column[order] for column in columns)) == pytest.approx(once, abs=1e-9)
    assert results(*columns, seed=8)[:2] != once[:2]


# Comparing two metrics


def test_permutation_test_is_that_of_scipy():
    """An independent reference: scipy.stats.permutation_test over all 2^8 swaps."""
    rng = np.random.default_rng(9)
    ratings = rng.normal(size=8)
    first, second = ratings + 0.7 * rng.normal(size=8), ratings + 1.5 * rng.normal(size=8)
    standard = [stats.zscore(scores) for scores in (first, second)]

    def difference(swapped):
        """``swapped``: a group's index is below 8 where it kept its scores, else 8 more."""
        keeps = swapped < 8
        values = [
            stats.pearsonr(scores, ratings).statistic
            for scores in (np.where(keeps, *standard), np.where(keeps, *standard[::-1]))
        ]
        return values[0] - values[1]

    exact = stats.permutation_test(
        (np.arange(8), np.arange(8) + 8),
        lambda kept, _: difference(kept),
        permutation_type="samples",
        vectorized=False,
        n_resamples=np.inf,
    )
    found = compare_permutation(first, second, ratings, range(8), resamples=20_000, seed=1)
    assert found.p == pytest.approx(exact.pvalue, abs=0.02)


def test_permutation_within_groups_swaps_whole_groups(data):
    """Against all 2^6 swaps written out, on scores standardised within their groups."""
    some = data.group_numbers < 6
    ratings, groups = data.ratings[some], data.group_numbers[some]
    scores = []
    for metric in (data.first[some], data.second[some]):
        own = np.concatenate([values - values.mean() for values in (metric[groups == g] for g in range(6))])
        scores.append(own / own.std())

    def difference(swaps):
        swapped = np.array(swaps)[groups] == 1
        pair = np.where(swapped, *scores[::-1]), np.where(swapped, *scores)
        return np.subtract(*(by_hand(x, ratings, "pearson", "within_groups", groups, None) for x in pair))

    every = np.array([difference(swaps) for swaps in itertools.product([0, 1], repeat=6)])
    exact = np.mean(np.abs(every) >= abs(every[0]) - 1e-12)
    found = compare_permutation(
        data.first[some],
        data.second[some],
        ratings,
        groups,
        level="within_groups",
        resamples=20_000,
    )
    assert found.difference == pytest.approx(every[0])
    assert found.p == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("level", MAIN_LEVELS)
def test_p_values_agree_with_the_interval_and_with_each_other(data, level):
    options = {"level": level, "resamples": 400}
    for compare in (compare_bootstrap, compare_permutation):
        columns = (data.ratings, data.groups)
        forward = compare(data.first, data.second, *columns, **options)
        back = compare(data.second, data.first, *columns, **options)
        assert forward.difference == -back.difference
        assert forward.p == back.p
        # One metric under two linear maps.
        same = compare(data.first, 3 * data.first + 7, *columns, **options)
        assert same.difference == pytest.approx(0, abs=1e-12)
        assert same.p == 1
        # The ratings themselves against noise.
        noise = np.random.default_rng(0).normal(size=len(data.ratings))
        assert compare(data.ratings, noise, *columns, **options).p < 0.05


def test_bootstrap_p_counts_the_resamples_on_the_wrong_side(data):
    """Against the same drawings, written out."""
    count = 12
    picks = np.random.default_rng(3).integers(0, count, (200, count))
    wrong = 0
    codes = np.array([sorted(set(data.groups)).index(label) for label in data.groups])
    assert len(set(codes)) == count
    for row in picks:
        drawn = np.concatenate([np.flatnonzero(codes == code) for code in row])
        pair = [
            stats.pearsonr(metric[drawn], data.ratings[drawn]).statistic for metric in (data.first, data.second)
        ]
        wrong += pair[0] <= pair[1]
    both = compare_bootstrap(data.first, data.second, data.ratings, data.groups, resamples=200, seed=3)
    assert both.p == min(1, 2 * (min(wrong, 200 - wrong) + 1) / 201)
    assert both.n == len(data.ratings)


def equally_good_metrics(rng, groups=15, size=3):
    """Two metrics with the same distribution; the items of a group share most of their errors."""
    shared = rng.normal(size=(3, groups, 1)) + 0.5 * rng.normal(size=(3, groups, size))
    ratings, first, second = shared.reshape(3, -1)
    return ratings + first, ratings + second, ratings, np.repeat(np.arange(groups), size)


@pytest.mark.slow
def test_p_values_are_uniform_where_both_metrics_are_equally_good():
    """Over 400 samples with dependent items, at the levels of 5, 10, 20, ... %; Williams' test, which knows
    nothing of groups, finds differences much too often there."""
    rng = np.random.default_rng(10)
    permuted, drawn, naive = [], [], []
    for _ in range(400):
        first, second, ratings, groups = equally_good_metrics(rng)
        permuted.append(compare_permutation(first, second, ratings, groups, resamples=199, seed=rng).p)
        drawn.append(compare_bootstrap(first, second, ratings, groups, resamples=199, seed=rng).p)
        correlations = [
            correlation(*pair).value for pair in ((first, ratings), (second, ratings), (first, second))
        ]
        naive.append(williams_test(*correlations, len(ratings)).p)
    assert stats.kstest(permuted, "uniform").pvalue > 0.01
    assert np.mean(np.array(permuted) <= 0.05) == pytest.approx(0.05, abs=0.03)
    # The percentile bootstrap is known to be a little too bold in small samples.
    assert np.mean(np.array(drawn) <= 0.05) == pytest.approx(0.05, abs=0.05)
    assert np.mean(np.array(naive) <= 0.05) > 0.15


# Williams' test


@pytest.mark.parametrize(
    ("correlations", "n", "t", "p"),
    [
        # The help page of r.test in R's psych (the last example but one prints p < 0.1000759).
        ((0.693458895410494, 0.695966022434845, 0.988475791500198), 5105, None, 0.1000759),
        # Printed by R's cocor (line "williams1959") for data of other people, with rounded correlations.
        ((0.8066, 0.2383, 0.2255), 177, 9.3823, None),
        ((-0.1741, 0.2015, 0.3734), 646, -9.0340, None),
        ((0.5447, 0.8, 0.0729), 70, -2.8114, 0.0065),
    ],
)
def test_williams_gives_what_r_gives(correlations, n, t, p):
    found = williams_test(*correlations, n)
    assert found.degrees_of_freedom == n - 3
    if t is not None:
        assert found.t == pytest.approx(t, abs=2e-3)
    if p is not None:
        assert found.p == pytest.approx(p, abs=5e-8 if p == 0.1000759 else 5e-5)


@pytest.mark.parametrize(
    ("correlations", "n"),
    [(("1/2", "2/5", "1/10"), 103), (("-1/3", "1/4", "2/7"), 12), (("9/10", "8/9", "19/20"), 4)],
)
def test_williams_formula_in_exact_fractions(correlations, n):
    """An independent reference: t^2 in fractions, with the determinant expanded over all permutations."""
    r12, r13, r23 = map(Fraction, correlations)
    matrix = [[1, r12, r13], [r12, 1, r23], [r13, r23, 1]]
    determinant = sum(
        (-1) ** sum(a > b for a, b in itertools.combinations(columns, 2))
        * math.prod(matrix[row][column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(3))
    )
    square = (r12 - r13) ** 2 * (n - 1) * (1 + r23)
    square /= 2 * determinant * Fraction(n - 1, n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3
    found = williams_test(float(r12), float(r13), float(r23), n)
    assert found.t**2 == pytest.approx(float(square), rel=1e-12)
    assert (found.t > 0) == (r12 > r13)


def test_williams_swapped():
    one, other = williams_test(0.5, 0.4, 0.1, 103), williams_test(0.4, 0.5, 0.1, 103)
    assert (one.t, one.p) == (-other.t, other.p)
    assert williams_test(0.4, 0.4, 0.3, 50).p == 1


@pytest.mark.parametrize(
    ("correlations", "n", "reason"),
    [
        ((math.nan, 0.5, 0.5), 20, "a correlation is undefined"),
        ((0.4, 0.5, 0.5), 3, "fewer than 4 items"),
        ((0.5, 0.5, 1.0), 20, "the two metrics are linear functions of each other"),
        ((0.5, -0.5, -1.0), 20, "the two metrics are linear functions of each other"),
        ((0.9, -0.9, 0.9), 20, "no items have these three correlations"),
    ],
)
def test_williams_undefined(correlations, n, reason):
    found = williams_test(*correlations, n)
    assert math.isnan(found.t)
    assert math.isnan(found.p)
    assert found.reason == reason


def test_williams_refuses_what_is_no_correlation():
    with pytest.raises(ValueError, match="outside"):
        williams_test(1.2, 0.5, 0.5, 20)


# Time


def test_a_thousand_resamples_of_a_thousand_items_are_quick():
    """Measured: .03 s of processor time."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=1000)
    start = time.process_time()
    bootstrap_interval(x, x + rng.normal(size=1000), np.repeat(range(100), 10))
    assert time.process_time() - start < 1
