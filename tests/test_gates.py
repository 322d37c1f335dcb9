"""Thresholds for builds and tests."""

import json
import subprocess
import sys
from pathlib import Path

import jsonl
import pytest
import word_recall

from mars_score.compare.gates import SHOWN, assert_scores
from mars_score.scorer import MarsScorer

ROWS = [
    {"prediction": "a b", "reference": "a b", "context": "first"},
    {"prediction": "c\nq\x1b[2J\x07", "reference": "c d", "context": "second"},
    {"prediction": " ", "reference": "d", "context": "third"},
]
# They score 1, 0.5 and 0.


@pytest.fixture
def score(tmp_path, monkeypatch, run):
    """Runs ``mars score`` over the rows; returns exit code, standard output, standard error."""
    word_recall.install(monkeypatch)
    return lambda *options, rows=ROWS: run("score", jsonl.write(tmp_path / "rows.jsonl", rows), *options)


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


def test_the_lowest_of_many_rows_are_shown(score):
    code, _, err = score("--fail-rows-under", 0.6, rows=ROWS[1:2] * 300)
    assert code == 3
    assert err.splitlines()[0] == f"mars: 300 scores are below 0.6; the {SHOWN} lowest are:"
    assert len(err.splitlines()) == SHOWN + 1


@pytest.mark.parametrize("option", ["--fail-under", "--fail-rows-under"])
def test_thresholds_that_are_no_numbers(score, option):
    code, out, err = score(option, "nan")
    assert (code, out) == (2, "")
    assert f"{option} must be a finite number, got nan" in err
    assert score(option, "x")[0] == 2


@pytest.fixture
def result(monkeypatch):
    word_recall.install(monkeypatch)
    return MarsScorer("mini").score(["a b", "c q", "q " * 99], ["a b", "c d", "d"], ["first", "second", "third"])


def test_a_test_that_passes_and_one_that_fails(result):
    assert_scores(result, fail_under=0.5, fail_rows_under=0)
    with pytest.raises(AssertionError) as caught:
        assert_scores(result, fail_under=0.6, fail_rows_under=0.6)
    lines = str(caught.value).splitlines()
    assert lines[:2] == ["the mean score 0.5000 is below 0.6", "2 scores are below 0.6:"]
    assert lines[2].startswith("  row 2: 0.0000  q q q")
    assert lines[2].endswith("…")
    assert lines[3] == "  row 1: 0.5000  c q"
    assert lines[4].startswith("signature mars|")


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "give fail_under"), ({"fail_under": float("inf")}, "fail_under must be a finite number, got inf")],
)
def test_bad_thresholds(result, options, message):
    with pytest.raises(ValueError, match=message):
        assert_scores(result, **options)


@pytest.mark.slow
def test_what_pytest_shows(tmp_path):
    """A real pytest over a test that fails: the line of the test and the reason, nothing from within MARS."""
    (tmp_path / "test_it.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import word_recall\nfrom mars_score import MarsScorer\n"
        "from mars_score.compare.gates import assert_scores\n\n\n"
        "def test_answers(monkeypatch):\n"
        "    word_recall.install(monkeypatch)\n"
        "    assert_scores(MarsScorer('mini').score(['q'], ['a'], ['b']), fail_under=0.5)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert ">       assert_scores(MarsScorer" in printed
    assert "E       AssertionError: the mean score 0.0000 is below 0.5\n" in printed
    assert "gates.py" not in printed
