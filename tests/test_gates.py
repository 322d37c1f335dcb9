"""Thresholds for builds: ``mars score --fail-under`` and ``--fail-rows-under``."""

import json
import math
from dataclasses import replace

import jsonl
import pytest
import word_recall

from mars_score.rows import RowScore
from mars_score.variants import plus_variant

ROWS = [
    {"prediction": "a b", "reference": "a b", "context": "first"},
    {"prediction": "c\nq\x1b[2J\x07", "reference": "c d", "context": "second"},
    {"prediction": " ", "reference": "d", "context": "third"},
]
# They score 1, 0.5 and 0.


@pytest.fixture
def score(tmp_path, word_models, run):
    """Runs ``mars score`` over the rows; returns exit code, standard output, standard error."""

    def run_command(*options, rows=ROWS):
        return run("score", jsonl.write(tmp_path / "rows.jsonl", rows), *word_recall.OPTIONS, *options)

    return run_command


def test_a_build_that_passes(score):
    for options in (("--fail-under", 0.49), ("--fail-under", 0.1, "--fail-rows-under", 0)):
        code, out, err = score(*options)
        assert (code, err) == (0, "")
        assert out.startswith("MARS 0.5000")


def test_a_build_that_fails(score, tmp_path):
    code, out, err = score("--fail-under", 0.51, "--fail-rows-under", 0.6, "--out", tmp_path / "scores.jsonl")
    assert code == 3
    assert out.startswith("MARS 0.5000")
    assert err.splitlines() == [
        "mars: the mean score 0.5000 is below 0.51",
        "mars: 2 scores are below 0.6:",
        "mars:   line 3: 0.0000  ",
        "mars:   line 2: 0.5000  c q [2J",  # nothing that a terminal obeys
    ]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 3  # written all the same
    code, out, _ = score("--fail-under", 0.51, "--json")
    assert (code, len(json.loads(out)["scores"])) == (3, 3)


def test_a_score_that_is_no_number_passes_no_gate(score, monkeypatch):
    """It is refused where it enters; if one comes through nevertheless, it is below every threshold."""
    plus, from_dict = plus_variant.plus, RowScore.from_dict
    with monkeypatch.context() as patch:
        patch.setattr(plus_variant, "plus", lambda *args: [replace(term, value=math.nan) for term in plus(*args)])
        code, out, err = score("--fail-under", 0.1)
    assert (code, out) == (2, "")
    assert "the score of 'a b' is nan, no finite number" in err
    monkeypatch.setattr(RowScore, "from_dict", lambda *args: replace(from_dict(*args), score=math.nan))
    for options in (("--fail-under", -9), ("--fail-rows-under", -9)):
        assert score(*options)[0] == 3


def test_the_lowest_of_many_rows_are_shown(score):
    code, _, err = score("--fail-rows-under", 0.6, rows=ROWS[1:2] * 300)
    assert code == 3
    assert err.splitlines()[0] == "mars: 300 scores are below 0.6; the 20 lowest are:"
    assert len(err.splitlines()) == 21


@pytest.mark.parametrize("option", ["--fail-under", "--fail-rows-under"])
@pytest.mark.parametrize("value", ["nan", "x"])
def test_thresholds_that_are_no_numbers(failing, option, value):
    assert f"{option}: must be a finite number, got '{value}'" in failing("score", "rows.jsonl", option, value)
