"""The evaluate module with models: tiny ones as settings, in evaluate's and in transformers' hands."""

import json
from pathlib import Path

import pytest

import mars_metric
from mars_score.models import loading as models
from mars_score.scorer import MarsScorer

ROOT = Path(mars_metric.__file__).parent
ROWS = {
    "predictions": ["She took a train home.", "They won the game!", "Nobody came."],
    "references": [["She called a friend."], ["They didn't win.", "They lost."], ["It closed early."]],
    "contexts": ["Her old car broke.", "", "The library is near."],
}


@pytest.fixture(scope="module")
def settings(gpt2, encoder):
    """Tiny models as settings of MARS."""
    values = {"language_model": gpt2, "encoder": encoder, "dtype": "float64"}
    return {"preset": "mini", **values, "store": False, "sample_count": 0, "max_mask_ratio": 0.4}


@pytest.fixture(autouse=True)
def own_scorers(monkeypatch):
    monkeypatch.setattr(models, "_loaded", {})


@pytest.fixture(scope="module")
def expected(settings):
    """What the scorer says of the rows."""
    return MarsScorer(**settings).score(*ROWS.values())


def check(found, expected):
    assert set(found) == {"mars", "scores", "signature", "augmented_references"}
    assert found["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert found["scores"] == pytest.approx(expected.scores, abs=1e-9)
    assert found["signature"] == str(expected.signature)
    texts = [[text for one in row.references for text in one.augmented.texts] for row in expected.rows]
    assert found["augmented_references"] == [list(dict.fromkeys(row)) for row in texts]
    json.dumps(found)


@pytest.fixture
def make(settings, tmp_path):
    return lambda **arguments: mars_metric.Mars(cache_dir=str(tmp_path / "cache"), **{**settings, **arguments})


def test_compute_is_what_the_scorer_says(make, expected):
    metric = make()
    check(metric.compute(**ROWS, detailed=True), expected)
    assert metric.compute(**ROWS) == {"mars": pytest.approx(expected.score, abs=1e-9)}
    assert 0 < expected.score < 1


def test_batches_equal_one_call(make, expected):
    """IDF is counted over all rows that were added, not batch by batch."""
    metric = make()
    for part in (slice(0, 1), slice(1, 3)):
        metric.add_batch(**{name: values[part] for name, values in ROWS.items()})
    check(metric.compute(detailed=True), expected)


def test_models_are_loaded_once_until_they_are_freed(make, named_models, expected):
    """Metrics and calls share the models of a name, whatever their other settings."""
    named = {name: named_models[name] for name in ("language_model", "encoder")}
    reports = []
    first = make(**named, progress=lambda *report: reports.append(report))
    second = make(**named, context_weight=0.3)
    loading = [(f"load {name}", done, 1) for name in named.values() for done in (0, 1)]
    assert first.compute(**ROWS)["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert sorted(report for report in reports if report[0].startswith("load")) == sorted(loading)
    second.compute(**ROWS)
    first.compute(**ROWS)
    assert sum(report in loading for report in reports) == 4
    second.free()
    first.compute(**ROWS)
    assert sum(report in loading for report in reports) == 8
