"""Candidates without references wherever rows come in; tests/variants/test_scores.py has their scores."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from mars_metric import Mars
from mars_score import MarsScorer
from mars_score.compare import rank_systems
from mars_score.integrations.trainer import compute_metrics
from tests import jsonl

ROWS = [  # candidate, context
    ("She took a train.", "Her old car broke down."),
    (" ", "It was late, and they lost it."),
    ("They won the old game \u2014 \u4f60\u597d!", "They won the old game. It was late."),
    ("At the museum.", "Where did they go?"),
    ("  The end.  ", "Was it the end?\nI think so."),
]
CANDIDATES, CONTEXTS = ([row[column] for row in ROWS] for column in range(2))
pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")


@pytest.fixture(autouse=True)
def mini(monkeypatch, tiny_mini):
    """Preset "mini", of tiny models, is the default."""
    monkeypatch.setenv("MARS_PRESET", "mini")


@pytest.fixture
def plus():
    return MarsScorer(variant="plus")


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ({}, {}, "references and contexts are missing"),
        ({}, {"contexts": ["c", " "]}, r"contexts\[1\] is blank.*without references"),
        ({}, {"contexts": ["c"]}, "predictions has 2, contexts has 1"),
        ({}, {"references": ["r", []], "contexts": ["c", "c"]}, r"references\[1\] is an empty list.*at all"),
        ({"variant": "paper"}, {"contexts": ["c", "c"]}, "'paper' needs references.*variant='plus' or"),
        ({"use_context": False}, {"contexts": ["c", "c"]}, "leave out use_context=False"),
    ],
)
def test_bad_input(settings, rows, message):
    with pytest.raises(ValueError, match=message):
        MarsScorer(store=False, **{"variant": "plus", **settings}).score(["a", "b"], **rows)


def test_evaluate(plus, tmp_path):
    metric = Mars("plus", cache_dir=str(tmp_path))
    rows = {"predictions": CANDIDATES[2:], "contexts": CONTEXTS[2:]}
    result = plus.score(**rows)
    computed = metric.compute(**rows, detailed=True)
    assert computed["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert "variant:plus|references:0" in computed["signature"]
    assert computed["augmented_references"] == [[], [], []]
    metric.add(prediction=CANDIDATES[2], context=CONTEXTS[2])
    with pytest.raises(ValueError, match="some rows have references and some have none"):
        metric.compute(**rows, references=["r"] * 3)
    assert metric.compute()["mars"] == pytest.approx(result.scores[0], abs=1e-6)  # the added row is still there


def test_trainer(plus):
    tokenizer = SimpleNamespace(batch_decode=lambda rows, **_: ["They won it."] * len(rows))
    ids = np.ones((2, 3), int)
    prediction = SimpleNamespace(predictions=ids, label_ids=ids, inputs=None)
    computed = compute_metrics(plus, tokenizer, CONTEXTS[:2], use_references=False)(prediction)
    assert computed["mars"] == plus.score(["They won it."] * 2, None, CONTEXTS[:2]).score


def test_command_line(plus, tmp_path, run):
    rows = [{"prediction": candidate, "context": context} for candidate, context in ROWS]
    path = jsonl.write(tmp_path / "rows.jsonl", rows)
    free = ("--no-references", "--variant", "plus")
    code, out, _ = run("score", path, *free, "--json", "--detailed")
    computed, result = json.loads(out), plus.score(CANDIDATES, None, CONTEXTS)
    assert (code, computed["signature"]) == (0, str(result.signature))
    assert computed["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert [len(row["references"]) for row in computed["rows"]] == [0] * 5
    mixed = jsonl.write(tmp_path / "mixed.jsonl", [{**rows[0], "reference": "r"}, {**rows[2], "reference": []}])
    blank = jsonl.write(tmp_path / "blank.jsonl", [{**rows[0], "context": " "}])
    for arguments, *messages in (
        ((path,), "'reference' is missing", "--no-references"),
        ((mixed,), "mixed.jsonl:2: column 'reference' is an empty list"),
        ((blank, *free), "blank.jsonl:1: column 'context' is blank"),
        ((path, *free, "--no-use-context"), "leave out use_context=False"),
    ):
        code, _, error = run("score", *arguments)
        assert code == 2
        assert all(message in error for message in messages)


def test_two_systems(plus, tmp_path, run):
    systems = {"one": CANDIDATES[2:], "other": ["It was late.", *CANDIDATES[3:]]}
    for name, candidates in systems.items():
        rows = [{"prediction": a, "context": b} for a, b in zip(candidates, CONTEXTS[2:], strict=True)]
        jsonl.write(tmp_path / f"{name}.jsonl", rows)
    paths = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    options = ("--no-references", "--variant", "plus", "--json", "--resamples", 10)
    printed = json.loads(run("compare", *paths, *options)[1])
    ranking = rank_systems(plus, systems, contexts=CONTEXTS[2:], resamples=10)
    assert printed["pairs"][0]["difference"] == ranking.pairs[0].difference != 0
    assert "variant:plus|references:0" in printed["signature"]
