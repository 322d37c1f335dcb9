"""Two systems compared: the statistics against brute force and scipy, and what goes through the scorer."""

import itertools
import json
import math
import random
import re
import statistics

import numpy as np
import pytest
import word_recall
from scipy import stats

from mars_score.compare import compare_systems, rank_systems
from mars_score.compare.verdict import verdict
from mars_score.errors import BLANK
from mars_score.scorer import MarsScorer
from mars_score.stats.means import mean_interval
from mars_score.stats.paired import holm, paired_tests

RNG = np.random.default_rng(5)
FIRST, SECOND = RNG.normal(0.55, 0.1, 12), RNG.normal(0.5, 0.1, 12)
GROUPS = list("aaabbbbcdddd")  # of unequal sizes
REFERENCES = ["a b", ["x y", "c z"], "d", "e f"]
CONTEXTS = ["first", ["second", "part"], "", "fourth"]


@pytest.fixture
def scored(monkeypatch):
    return word_recall.install(monkeypatch)


@pytest.fixture
def scorer(scored):
    return MarsScorer("mini")


def paired_test(first, second, **options):
    return paired_tests((first, second), **options)[0, 1]


def means(counts):
    """Both means where each group is drawn so many times, the plainest way."""
    rows = [row for label, count in zip("abcd", counts, strict=True) for row in rows_of(label) * count]
    return FIRST[rows].mean(), SECOND[rows].mean()


def rows_of(label):
    return [row for row, one in enumerate(GROUPS) if one == label]


# Statistics


def test_randomisation_against_scipy():
    found = paired_test(FIRST, SECOND, resamples=20_000)
    exact = stats.permutation_test(
        (FIRST, SECOND),
        lambda one, other, axis: one.mean(axis) - other.mean(axis),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert found.randomisation_p == pytest.approx(exact.pvalue, abs=0.01)


def test_randomisation_of_groups_against_all_swaps():
    differences = np.array([(FIRST - SECOND)[rows_of(label)].sum() for label in "abcd"])
    swaps = np.abs(np.array(list(itertools.product([1, -1], repeat=4))) @ differences)
    exact = np.mean(swaps >= abs(differences.sum()) - 1e-12)
    found = paired_test(FIRST, SECOND, groups=GROUPS, resamples=20_000)
    assert found.randomisation_p == pytest.approx(exact, abs=0.01)


def test_bootstrap_against_scipy():
    found = paired_test(FIRST, SECOND, resamples=20_000, confidence=0.9)
    options = {"method": "percentile", "confidence_level": 0.9, "n_resamples": 20_000, "rng": 1}
    for interval, scores in ((found.first, FIRST), (found.second, SECOND), (found.difference, FIRST - SECOND)):
        expected = stats.bootstrap((scores,), np.mean, **options).confidence_interval
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.003)


def test_bootstrap_of_groups_against_all_draws():
    draws = [np.bincount(draw, minlength=4) for draw in itertools.product(range(4), repeat=4)]
    ones, others = np.array([means(counts) for counts in draws]).T
    differences = ones - others
    found = paired_test(FIRST, SECOND, groups=GROUPS, resamples=40_000)
    below, above = np.mean(differences <= 0), np.mean(differences >= 0)
    assert found.bootstrap_p == pytest.approx(min(1, 2 * min(below, above)), abs=0.01)
    for interval, values in ((found.first, ones), (found.second, others), (found.difference, differences)):
        # The distribution has 35 steps: an end must be a quantile of nearly the right level.
        assert np.mean(values < interval.low - 1e-9) <= 0.03
        assert np.mean(values <= interval.low + 1e-9) >= 0.02
        assert np.mean(values > interval.high + 1e-9) <= 0.03
        assert np.mean(values >= interval.high - 1e-9) >= 0.02


def test_p_is_count_plus_one():
    certain = paired_test(SECOND + 1, SECOND, resamples=99)
    assert (certain.bootstrap_p, certain.randomisation_p) == (2 / 100, 1 / 100)
    equal = paired_test(FIRST, FIRST, resamples=99)
    assert (equal.bootstrap_p, equal.randomisation_p) == (1, 1)
    assert (equal.difference.low, equal.difference.high) == (0, 0)


def test_the_seed_decides():
    assert paired_test(FIRST, SECOND, seed=3) == paired_test(FIRST, SECOND, seed=3)
    assert paired_test(FIRST, SECOND, seed=3) != paired_test(FIRST, SECOND, seed=4)


def test_many_rows_are_drawn_in_parts(monkeypatch):
    whole = paired_test(FIRST, SECOND, resamples=500)
    monkeypatch.setattr("mars_score.stats.draws.AT_ONCE", 100)
    parts = paired_test(FIRST, SECOND, resamples=500)
    assert parts.bootstrap_p == pytest.approx(whole.bootstrap_p, abs=0.1)
    assert parts.groups == 12


@pytest.mark.parametrize("groups", [["a"] * 12, None])
def test_with_one_there_is_nothing_to_draw_from(groups):
    found = paired_test(FIRST[: 12 if groups else 1], SECOND[: 12 if groups else 1], groups=groups)
    assert found.groups == 1
    assert all(map(math.isnan, (found.first.low, found.difference.high, found.bootstrap_p, found.randomisation_p)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1}, "confidence must lie between 0 and 1, got 1"),
        ({"resamples": 0}, "resamples must be positive, got 0"),
        ({"groups": ["a"]}, "one label per item, got 1 for 12"),
    ],
)
def test_numbers_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        paired_test(FIRST, SECOND, **options)


def test_scores_that_are_not_paired():
    with pytest.raises(ValueError, match="two or more lists of one length"):
        paired_test(FIRST, SECOND[:-1])


def test_all_pairs_are_tested_as_two_alone():
    third = FIRST + SECOND
    found = paired_tests((FIRST, SECOND, third), groups=GROUPS, resamples=20_000)
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    for pair, scores in {(0, 1): (FIRST, SECOND), (0, 2): (FIRST, third), (1, 2): (SECOND, third)}.items():
        alone = paired_test(*scores, groups=GROUPS, resamples=20_000)
        assert found[pair].randomisation_p == pytest.approx(alone.randomisation_p, abs=0.01)
        assert found[pair].bootstrap_p == pytest.approx(alone.bootstrap_p, abs=0.01)
        assert found[pair].difference.low == pytest.approx(alone.difference.low, abs=1e-9)  # the same draws


def closed(p_values, place):
    """The closure of Bonferroni's tests: the worst p over all intersections of hypotheses with this one."""
    others = [other for other in range(len(p_values)) if other != place]
    subsets = ((place, *some) for size in range(len(others) + 1) for some in itertools.combinations(others, size))
    return max(min(1, len(subset) * min(p_values[one] for one in subset)) for subset in subsets)


def test_holm_is_the_closure_of_bonferroni():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 6):
        for p_values in rng.uniform(0, 1, (20, size)) ** 3:
            expected = [closed(p_values, place) for place in range(size)]
            assert holm(list(p_values)) == pytest.approx(expected)
    assert holm([0.01, math.nan, 0.03])[::2] == pytest.approx([0.02, 0.03])
    assert math.isnan(holm([0.01, math.nan])[1])


def test_interval_of_a_mean_against_a_plain_bootstrap():
    draw = random.Random(0)
    groups = [f"group {number // 3}" for number in range(60)]
    offsets = {group: draw.gauss(0, 1) for group in groups}
    scores = [offsets[group] + draw.gauss(0, 0.1) for group in groups]
    by_group = [[score for score, one in zip(scores, groups, strict=True) if one == group] for group in offsets]
    means = sorted(
        statistics.fmean(score for group in draw.choices(by_group, k=len(by_group)) for score in group)
        for _ in range(5000)
    )
    found = mean_interval(scores, groups)
    assert (found.low, found.high) == pytest.approx((means[125], means[4875]), abs=0.05)
    rows = mean_interval(scores)
    assert rows.high - rows.low < 0.8 * (found.high - found.low)  # rows of a group say less than as many groups
    assert mean_interval(scores, groups) == mean_interval(scores, groups)


def test_means_of_too_few_groups_and_bad_input():
    assert math.isnan(mean_interval([0.5, 0.7], ["a", "a"]).low)
    assert mean_interval([]).reason == "fewer than two groups"
    assert (mean_interval([0.5, 0.5]).low, mean_interval([0.5, 0.5]).high) == (0.5, 0.5)
    with pytest.raises(ValueError, match="one label per item"):
        mean_interval([0.5, 0.7], ["a"])


# Systems


def rank(scorer, **options):
    systems = {"poor": ["q", "q", "q", "q"], "A": ["a b", "x q", "d", "q"], "B": ["a q", "x q", "q", " "]}
    return rank_systems(scorer, systems, REFERENCES, CONTEXTS, **options)


def test_ranking(scorer):
    found = rank(scorer)
    assert [(one.name, one.score) for one in found.systems] == [("A", 0.625), ("B", 0.25), ("poor", 0.0)]
    two = compare(scorer)
    assert found.pairs[0].interval == two.test.difference
    assert (found.intervals[0], found.intervals[1]) == (two.test.first, two.test.second)
    assert [pair.win_tie_loss for pair in found.pairs] == [(2, 2, 0), (3, 1, 0), (2, 2, 0)]
    assert [row.row for row in found.most_different(9)] == [0, 2, 1]
    assert found.rows[0].candidates == ("a b", "a q", "q")
    assert found.notices[0] == f"{BLANK}: 1 of 12 rows (11) [rows 0-3: poor, rows 4-7: A, rows 8-11: B]"
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"systems": {"A": ["a"]}}, "at least two systems, got 1"),
        ({"systems": {"A": ["a"], "references": ["a", "b"]}}, r"systems\['references'\] has 2"),
        ({"systems": {"A": ["a"], "B": [None]}}, r"systems\['B'\]\[0\] must be a string, got NoneType"),
        ({"test": "t"}, "test must be one of randomisation, bootstrap, got 't'"),
    ],
)
def test_bad_systems(scorer, scored, options, message):
    rows = {"systems": {"A": ["a"], "B": ["b"]}, "references": ["a"], "contexts": [""]}
    with pytest.raises((ValueError, TypeError), match=message):
        rank_systems(scorer, **{**rows, **options})
    assert not scored


def test_verdict():
    pairs = [("B", "A", 0.03, 0.01), ("B", "C", 0.031, 0.03), ("A", "C", 0.001, 0.8)]
    expected = "B scores higher than A (+0.030, p = 0.01) and C (+0.031, p = 0.03); "
    assert verdict(pairs, 0.95) == expected + "A cannot be told apart from C (p = 0.8)"
    assert verdict([("A", "B", 1.0, math.nan)], 0.95) == "A cannot be told apart from B (no test)"
    pairs[1] = ("B", "C", 0.031, 0.06)
    expected = "B scores higher than A (+0.030, p = 0.01), but cannot be told apart from C (p = 0.06); "
    assert verdict(pairs, 0.95).startswith(expected)
    assert verdict([("A", "B", 1.0, 0.05)], 0.95).startswith("A scores higher")


def compare(scorer, **options):
    return compare_systems(
        scorer, ["a b", "x q", "d", "q"], ["a q", "x q", "q", " "], REFERENCES, CONTEXTS, **options
    )


def test_both_systems_in_one_call(scorer):
    found = compare(scorer, names=("ours", "theirs"))
    ours, theirs = found.systems
    assert ours.scores == (1.0, 0.5, 1.0, 0.0)
    assert theirs.scores == (0.5, 0.5, 0.0, 0.0)
    assert (ours.score, theirs.score, found.difference) == (0.625, 0.25, 0.375)
    assert found.win_tie_loss == (2, 2, 0)
    assert found.test == paired_test(ours.scores, theirs.scores)
    assert [(row.row, row.candidates) for row in found.most_different(3)] == [(2, ("d", "q")), (0, ("a b", "a q"))]
    assert found.rows[1].references == ("x y", "c z")
    assert found.rows[1].context == "second\npart"
    assert found.notices[0] == f"{BLANK}: 1 of 8 rows (7) [rows 0-3: ours, rows 4-7: theirs]"


def test_groups_and_seed_reach_the_test(scorer):
    found = compare(scorer, groups=[1, 1, 2, 2], seed=7, confidence=0.8, resamples=50)
    scores = [one.scores for one in found.systems]
    assert found.test == paired_test(*scores, groups=[1, 1, 2, 2], seed=7, confidence=0.8, resamples=50)


def test_plain_data(scorer):
    found = json.loads(json.dumps(compare(scorer).to_dict(rows=1), allow_nan=False))
    assert (found["wins"], found["ties"], found["losses"]) == (2, 2, 0)
    assert found["most_different"] == [
        {
            "row": 2,
            "difference": 1.0,
            "context": "",
            "references": ["d"],
            "candidates": ["d", "q"],
            "scores": [1, 0],
        }
    ]
    alone = compare_systems(scorer, ["a"], ["b"], ["a"], [""]).to_dict()
    assert (alone["interval"], alone["bootstrap_p"]) == ([None, None], None)
    json.dumps(alone, allow_nan=False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"first": ["a"]}, "first has 1, second has 4, references has 4"),
        ({"second": ["a", 3, "b", "c"]}, r"second\[1\] must be a string, got int"),
        ({"contexts": None}, "contexts are missing"),
        ({"groups": [1]}, "groups must be one label per item"),
        ({"resamples": 0}, "resamples must be positive"),
        ({key: [] for key in ("first", "second", "references", "contexts")}, "there are no rows to compare"),
    ],
)
def test_bad_input_is_found_before_scoring(scorer, scored, changed, message):
    rows = {"first": ["a"] * 4, "second": ["b"] * 4, "references": REFERENCES, "contexts": CONTEXTS}
    with pytest.raises((ValueError, TypeError), match=message):
        compare_systems(scorer, **{**rows, **changed})
    assert not scored


def test_scores_are_those_of_each_system_alone(gpt2, encoder):
    scorer = MarsScorer("mini", language_model=gpt2, encoder=encoder, planner="none", dtype="float64", store=False)
    references = ["She went to work by bus.", "He waited for the ferry."]
    contexts = ["The car broke down on Monday.", "It rained in the morning."]
    systems = [["She took the bus.", "He was late."], ["The cat slept.", "He waited for the ferry."]]
    found = compare_systems(scorer, *systems, references, contexts)
    for one, candidates in zip(found.systems, systems, strict=True):
        alone = scorer.score(candidates, references, contexts)
        assert one.scores == pytest.approx(alone.scores, abs=1e-9)
        assert found.signature == alone.signature


# Plot


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_plot(scorer, tmp_path, kind):
    pytest.importorskip("matplotlib")
    from mars_score.compare.plot import write_plot

    path = tmp_path / f"plot.{kind}"
    found = compare(scorer, names=("$ours$ <\x00>", "\u05e9\u6771"))
    write_plot(found, path)
    drawn = path.read_bytes()
    write_plot(found, path)
    assert path.read_bytes() == drawn
    if kind == "png":
        assert drawn.startswith(b"\x89PNG")
        return
    text = drawn.decode()
    for shown in ("0.625", "0.250", "$ours$ &lt;\ufffd&gt;", "2 won, 2 tied, 0 lost", "95% intervals"):
        assert shown in text


def test_the_plot_shows_every_difference(scorer):
    pytest.importorskip("matplotlib")
    from mars_score.compare.plot import comparison_figure
    from mars_score.report.charts import chart_settings

    with chart_settings():
        left, right = comparison_figure(compare(scorer)).axes
    assert [line.get_xdata() for line in left.lines[1::2]] == [[0.625], [0.25]]
    heights = np.concatenate([area.get_paths()[0].vertices[:, 1] for area in right.collections])
    assert {round(float(one), 6) for one in heights} == {0.0, 0.5, 1.0}


def test_a_plot_of_one_row(scorer, tmp_path):
    pytest.importorskip("matplotlib")
    from mars_score.compare.plot import write_plot

    write_plot(compare_systems(scorer, ["a"], ["b"], ["a"], [""]), tmp_path / "one.svg")
    assert re.search("1 won, 0 tied", (tmp_path / "one.svg").read_text(encoding="utf-8"))
