"""Contradicted rows, from models to gates, ``judge`` and outputs."""

import csv
import json

import pytest

import mars_score
from tests import belief, jsonl

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
TEXT = "The road is busy. They left at noon."
SAME = "The road is busy. They left at noon indeed."  # close to it for every encoder
FOUND = ("contradicted", "supported", "unsupported")
ROWS = [
    {"prediction": SAME, "reference": TEXT, "context": "The work began in March."},
    {"prediction": "Nobody came.", "reference": TEXT, "context": "The work began in March."},
]


@pytest.fixture
def accused(tiny_mini, monkeypatch):
    """Preset "mini" of tiny models that contradict each sentence which is close to a reference."""
    belief.believe(monkeypatch, certain=0.0, likely=0.0)
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.5)


@pytest.fixture
def rows(tmp_path):
    """A file of rows."""
    return jsonl.write(tmp_path / "rows.jsonl", ROWS)


def contradicted(path):
    return [bool(row["contradicted"]) for row in jsonl.read(path)]


def test_a_contradicted_row_fails_the_build(accused, rows, run, tmp_path):
    out = tmp_path / "out.jsonl"
    code, _, error = run("score", rows, "--fail-contradicted", "--out", out)
    assert code == 3
    assert contradicted(out)[0]
    count = sum(contradicted(out))
    assert f"{count} of 2 rows {'is' if count == 1 else 'are'} contradicted:\nmars:   line 1: " in error
    assert "contradicts " in error
    assert "cannot be checked" not in error
    assert run("score", rows, "--fail-contradicted", "0.99")[0] == (0 if count < 2 else 3)
    assert run("score", rows)[0] == 0


def test_a_gate_says_which_rows_it_cannot_check(accused, run, tmp_path):
    replies = [{**row, "context": ["They left at noon."]} for row in ROWS]
    code, _, error = run("score", jsonl.write(tmp_path / "rows.jsonl", [*replies, ROWS[0]]), "--fail-contradicted")
    assert code == 3
    assert "2 of 3 rows cannot be checked for contradictions: 2 dialogues" in error
    assert "1 of 3 rows is contradicted" in error


def test_without_belief_in_the_context_a_summary_is_checked_by_a_close_reference(
    accused, rows, run, tmp_path, monkeypatch
):
    """As with preset "mini"; nothing is said to be unsupported."""
    belief.believe(monkeypatch, belief.Reliability(1.0, False, True), certain=0.0, likely=0.0)
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.85)
    out = tmp_path / "out.jsonl"
    code, _, error = run("score", rows, "--task", "summary", "--fail-contradicted", "--out", out)
    assert code == 3
    assert "1 of 2 rows cannot be checked for contradictions: " in error
    assert "1 of 2 rows is contradicted" in error
    assert contradicted(out) == [True, False]
    assert [row["unsupported"] for row in jsonl.read(out)] == [[], []]
    run("score", rows, "--task", "summary", "--no-references", "--out", out)
    assert contradicted(out) == [False, False]


def test_judge_lets_no_contradiction_pass(accused):
    row = {"reference": TEXT, "context": "The work began in March."}
    judged = mars_score.judge(SAME, **row, threshold=-5.0)
    assert judged["passed"] is False
    assert "contradicts" in judged["reason"]
    names = {"sentence", "probability", "premise", "source", "words", "number", "absent"}
    assert judged["metadata"]["contradicted"][0].keys() == names
    assert mars_score.judge(SAME, **row)["passed"] is False
    assert mars_score.judge(SAME, **row, threshold=-5.0, allow_contradictions=True)["passed"] is True
    assert mars_score.judge(SAME, **row, allow_contradictions=True)["passed"] is None


def test_sentences_are_numbered_without_reasoning(accused):
    row = {"reference": TEXT, "context": "The work began in March.", "clean": True}
    thought = "<think>Is it? It is.\n\nSo.</think>\n\n"
    judged = mars_score.judge(f"{thought}Yes! They left at noon indeed. The road is busy.<|im_end|>", **row)
    told = [(one["number"], one["sentence"]) for one in judged["metadata"]["contradicted"]]
    assert told == [(2, "They left at noon indeed."), (3, "The road is busy.")]
    assert "sentence 2 contradicts" in judged["reason"]
    assert "sentence 3 contradicts" in judged["reason"]


def test_outputs_have_what_is_contradicted_and_supported(accused, rows, run, tmp_path, monkeypatch):
    belief.believe(monkeypatch, belief.ALL._replace(max_support=1.1), certain=0.0, likely=0.0)
    out = tmp_path / "out.csv"
    code, text, _ = run("score", rows, "--task", "summary", "--out", out)
    assert code == 0
    with out.open(encoding="utf-8", newline="") as file:
        cells = [{name: json.loads(row[name]) for name in FOUND} for row in csv.DictReader(file)]
    columns = [[row[name] for row in ROWS] for name in ROWS[0]]
    result = mars_score.MarsScorer().score(*columns, tasks="summary")
    details = result.to_dict()
    assert any(details["contradicted"])
    assert any(details["unsupported"])
    for name in FOUND:
        for rows_of_output in (cells, details["rows"], result.to_records()):
            assert [row[name] for row in rows_of_output] == details[name]
    assert details["faithfulness"] == pytest.approx(sum(details["supported"]) / len(ROWS))
    assert f"faithfulness {details['faithfulness']:.4f}: " in text
    printed = json.loads(run("score", rows, "--task", "summary", "--json")[1])
    assert printed["faithfulness"] == pytest.approx(details["faithfulness"], abs=1e-6)
    of_texts = mars_score.MarsScorer().score(*columns)
    assert [row.unsupported for row in of_texts.row_scores] == [(), ()]
    assert of_texts.faithfulness is None
    assert "faithfulness" not in run("score", rows)[1]


def test_compare_counts_contradicted_rows(accused, rows, run, tmp_path):
    other = jsonl.write(tmp_path / "other.jsonl", [{**row, "prediction": "Nobody came?"} for row in ROWS])
    assert "contradicted" in run("compare", rows, other)[1].splitlines()[2]
    systems = json.loads(run("compare", rows, other, "--json")[1])["systems"]
    by_name = {system["name"]: system["contradicted"] for system in systems}
    assert 0 in by_name["rows"]
    assert by_name["other"] == []
