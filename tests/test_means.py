"""Intervals of means against a plain bootstrap and a case worked by hand."""

import math
import random
import statistics

import pytest

from mars_score.stats.means import mean_interval


def test_against_a_plain_bootstrap():
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


def test_too_few_groups_and_bad_input():
    assert math.isnan(mean_interval([0.5, 0.7], ["a", "a"]).low)
    assert mean_interval([]).reason == "fewer than two groups"
    assert (mean_interval([0.5, 0.5]).low, mean_interval([0.5, 0.5]).high) == (0.5, 0.5)
    with pytest.raises(ValueError, match="one label per item"):
        mean_interval([0.5, 0.7], ["a"])
