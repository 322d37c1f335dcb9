"""Systems compared in Python: what goes through the scorer, what is tested, and the picture of it."""

import json
import math

import numpy as np
import pytest
import word_recall

from mars_score.compare import SystemPair, SystemRanking, SystemScore, rank_systems
from mars_score.errors import BLANK
from mars_score.scorer import MarsScorer
from mars_score.stats.resampling import Interval, holm, mean_interval, mean_p

REFERENCES = ["a b", ["x y", "c z"], "d", "e f"]
CONTEXTS = ["first", ["second", "part"], "", "fourth"]
SYSTEMS = {"poor": ["q", "q", "q", "q"], "A": ["a b", "x q", "d", "q"], "B": ["a q", "x q", "q", " "]}
# Twelve contexts, the first of which has three rows.
MANY = [f"context {max(row - 2, 0):02}" for row in range(14)]
LONG = {"B": ["a q"] * 7 + ["q"] * 7, "A": ["a b"] * 7 + ["a q"] * 7, "C": ["a q"] * 14}


@pytest.fixture
def scored(monkeypatch):
    return word_recall.install(monkeypatch)


@pytest.fixture
def scorer(scored):
    return MarsScorer("mini")


def test_systems_rows_and_notices_are_in_the_order_of_the_ranking(scorer):
    """Of four contexts there are no intervals and no p-values."""
    ranking = rank_systems(scorer, SYSTEMS, REFERENCES, CONTEXTS)
    assert [(system.name, system.score) for system in ranking.systems] == [("A", 0.625), ("B", 0.25), ("poor", 0)]
    assert ranking.systems[0].scores == (1.0, 0.5, 1.0, 0.0)
    pairs = [(pair.first, pair.second, pair.difference, pair.wins, pair.ties) for pair in ranking.pairs]
    assert pairs == [("A", "B", 0.375, 2, 2), ("A", "poor", 0.625, 3, 1), ("B", "poor", 0.25, 2, 2)]
    assert [row.row for row in ranking.most_different(9)] == [0, 2, 1]
    row = ranking.rows[1]
    assert (row.candidates, row.references, row.context) == (("x q", "x q", "q"), ("x y", "c z"), "second\npart")
    assert ranking.notices[0] == f"{BLANK}: 1 of 12 rows (11) [rows 0-3: poor, rows 4-7: A, rows 8-11: B]"
    assert ranking.notices[-1] == "no intervals and no p-values: 4 different contexts, fewer than 10"
    assert "no test" in ranking.verdict
    plain = json.loads(json.dumps(ranking.to_dict(rows=1), allow_nan=False))
    assert (plain["pairs"][0]["p"], plain["pairs"][0]["interval"], plain["systems"][0]["interval"]) == (None,) * 3
    assert [row["candidates"] for row in plain["most_different"]] == [["a b", "a q", "q"]]


def test_rows_of_one_context_are_drawn_together(scorer):
    """Intervals are those that ``mars score`` prints; p-values are adjusted for the three pairs."""
    options = {"resamples": 200}
    ranking = rank_systems(scorer, LONG, ["a b"] * 14, MANY, **options)
    assert ranking.groups == 12
    labels = [f"label {context}" for context in MANY]
    assert rank_systems(scorer, LONG, ["a b"] * 14, MANY, groups=labels, **options).pairs == ranking.pairs
    scores = {system.name: np.array(system.scores) for system in ranking.systems}
    for system in ranking.systems:
        assert system.interval == mean_interval(system.scores, MANY)
    differences = [scores[pair.first] - scores[pair.second] for pair in ranking.pairs]
    assert [pair.interval for pair in ranking.pairs] == [mean_interval(one, MANY) for one in differences]
    assert [pair.p for pair in ranking.pairs] == holm([mean_p(one, MANY, **options) for one in differences])
    alone = rank_systems(scorer, LONG, ["a b"] * 14, MANY, groups=range(14), confidence=0.8, **options)
    assert alone.groups == 14
    assert alone.systems[0].interval == mean_interval(alone.systems[0].scores, confidence=0.8)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"systems": {"A": ["a"] * 4}}, "at least two systems, got 1"),
        (
            {"systems": {"A": ["a"], "B": ["b"] * 4}},
            r"systems\['A'\] has 1, systems\['B'\] has 4, references has 4",
        ),
        ({"systems": {"A": ["a"] * 4, "B": ["a", None]}}, r"systems\['B'\]\[1\] must be a string, got None"),
        ({"contexts": None}, "contexts are missing"),
        ({"groups": [1]}, "groups must be one label per item"),
        ({"resamples": 0}, "resamples must be positive"),
        ({"confidence": 1}, "confidence must lie between 0 and 1"),
        ({"systems": {"A": [], "B": []}, "references": [], "contexts": []}, "there are no rows to compare"),
    ],
)
def test_bad_input_is_found_before_scoring(scorer, scored, changed, message):
    rows = {"systems": {"A": ["a"] * 4, "B": ["b"] * 4}, "references": REFERENCES, "contexts": CONTEXTS}
    with pytest.raises((ValueError, TypeError), match=message):
        rank_systems(scorer, **{**rows, **changed})
    assert not scored


def test_scores_are_those_of_each_system_alone(gpt2, encoder):
    scorer = MarsScorer("mini", language_model=gpt2, encoder=encoder, planner="none", dtype="float64", store=False)
    references = ["She went to work by bus.", "He waited for the ferry."]
    contexts = ["The car broke down on Monday.", "It rained in the morning."]
    systems = {"A": ["She took the bus.", "He was late."], "B": ["The cat slept.", "He waited for the ferry."]}
    ranking = rank_systems(scorer, systems, references, contexts)
    for system in ranking.systems:
        alone = scorer.score(systems[system.name], references, contexts)
        assert system.scores == pytest.approx(alone.scores, abs=1e-9)
        assert ranking.signature == alone.signature


def test_verdict():
    unknown = Interval(reason="too few")

    def verdict(*pairs):
        names = dict.fromkeys(name for pair in pairs for name in pair[:2])
        systems = tuple(SystemScore(name, (0.0,), unknown) for name in names)
        tested = tuple(SystemPair(*pair[:3], unknown, pair[3], 0, 1, 0) for pair in pairs)
        return SystemRanking(systems, tested, (), 1, 0.95, 1, None).verdict

    better, close, equal = ("B", "A", 0.03, 0.01), ("B", "C", 0.031, 0.06), ("A", "C", 0.001, 0.8)
    start = "B scores higher than A (+0.030, p = 0.01)"
    assert verdict(better, ("B", "C", 0.031, 0.03), equal) == (
        f"{start} and C (+0.031, p = 0.03); A cannot be told apart from C (p = 0.8)"
    )
    assert verdict(better, close, equal).startswith(f"{start}, but cannot be told apart from C (p = 0.06); ")
    assert verdict(("A", "B", 1.0, math.nan)) == "A cannot be told apart from B (no test)"
    assert verdict(("A", "B", 1.0, 0.05)).startswith("A scores higher")
