"""``mars references``: figures by hand, the command from end to end on tiny models."""

import json
import math
import sys

import numpy as np
import pytest

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.meta.reference_survey import reference_row, survey_references
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Row
from tests import jsonl

CONTEXT = "It was late and they lost the old game."
DEGREES = {"a b": 0, "a b.": 10, "c d e": 80, "p q": 20}


def cosine(text, other):
    return math.cos(math.radians(DEGREES[text] - DEGREES[other]))


def mean_cosine(*degrees):
    return pytest.approx(np.mean([math.cos(math.radians(angle)) for angle in degrees]))


def test_the_figures_of_a_row():
    row = reference_row(3, Row("", ("a b", "a b.", "c d e"), "p q"), cosine, PlusConfig())
    assert (row.row, row.words, row.copied) == (3, pytest.approx(7 / 3), 0)
    assert row.lexical == pytest.approx(1 - (1 + 0 + 0) / 3)
    assert row.context_cosine == mean_cosine(20, 10, 60)
    assert 1 - row.embedding == mean_cosine(10, 80, 70)
    assert row.lowest_cosine == mean_cosine(80)
    assert row.duplicates == ((0, 1),)


def test_what_is_undefined():
    row = reference_row(0, Row("", ("a b",)), cosine, PlusConfig())
    figures = row.copied, row.context_cosine, row.lexical, row.embedding, row.lowest_cosine
    assert all(map(math.isnan, figures))
    assert row.duplicates == ()


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tiny_mini):
    """Preset "mini", of tiny models, is the default."""
    monkeypatch.setenv("MARS_PRESET", "mini")


@pytest.fixture
def rows(tmp_path):
    """A file: equal references, one reference, and the passages of two contexts."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {"reference": ["They won <b>it</b>.", "They won <b>it</b>. "], "context": CONTEXT},
        {"reference": "They lost the old game.", "context": CONTEXT},
        {"reference": ["Nobody.", "She did."], "context": {"passages": [CONTEXT, "Who won the old game?"]}},
    ]
    jsonl.write(path, rows)
    return str(path)


def test_the_command(rows, capsys):
    assert main(["references", rows, "--quiet"]) == 0
    out = capsys.readouterr().out
    for text in ("references per row", "1 in 1, 2 in 2", "Near-duplicates", "They won <b>it</b>. / They won"):
        assert text in out
    assert main(["references", rows, "--json", "--quiet"]) == 0
    survey = json.loads(capsys.readouterr().out)
    assert [row["duplicates"] for row in survey["rows"]][:2] == [[[0, 1]], []]
    assert [row["copied"] for row in survey["rows"]] == [0, pytest.approx(1), 0]
    assert survey["rows"][1]["lexical"] is None
    assert survey["encoder"].startswith("SentenceTransformer@")
    assert main(["references", rows, "--no-use-context", "--json", "--quiet"]) == 0
    assert [row["copied"] for row in json.loads(capsys.readouterr().out)["rows"]] == [None] * 3


def test_bad_input():
    scorer = MarsScorer("mini", variant="plus")
    for references, contexts, message in (
        ([], [], "there are no rows"),
        ([" "], ["c"], r"references\[0\] .*blank"),
    ):
        with pytest.raises(ValueError, match=message):
            survey_references(scorer, references, contexts)


def test_references_that_people_rate_highest(rows, tmp_path, capsys):
    records = jsonl.read(rows)
    ratings = [[2, 5.5], 4, [None, 3]]
    path = jsonl.write(
        tmp_path / "rated.jsonl", [{**row, "adequacy": r} for row, r in zip(records, ratings, strict=True)]
    )
    best = tmp_path / "best.jsonl"
    command = ["references", str(path), "--ratings", "adequacy", "--quiet"]
    assert main([*command, "--best", str(best)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for line in (["reference", "1", "3.000", "2", "1"], ["reference", "2", "4.250", "2", "2"]):
        assert line in lines
    assert ["best", "of", "each", "row", "4.167", "3"] in lines
    chosen = ["They won <b>it</b>.", "They lost the old game.", "She did."]
    assert [row["reference"] for row in jsonl.read(best)] == chosen
    assert [row["context"] for row in jsonl.read(best)] == [row["context"] for row in records]
    assert main([*command, "--json"]) == 0
    assert [row["best"] for row in json.loads(capsys.readouterr().out)["rows"]] == [1, 0, 1]


def test_the_best_references_have_the_column_of_the_file(rows, tmp_path):
    records = [{"references": row["reference"], "context": row["context"], "r": [1]} for row in jsonl.read(rows)]
    path, best = jsonl.write(tmp_path / "plural.jsonl", records[1:2]), tmp_path / "best.jsonl"
    assert main(["references", str(path), "--ratings", "r", "--best", str(best), "--quiet"]) == 0
    assert jsonl.read(best) == records[1:2]
    assert main(["references", str(best), "--quiet"]) == 0


def test_references_from_standard_input(rows, tmp_path, monkeypatch, capsys):
    assert main(["references", rows, "--json", "--quiet"]) == 0
    expected = capsys.readouterr().out
    with open(rows) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["references", "-", "--json", "--quiet"]) == 0
    assert capsys.readouterr().out == expected
    path = jsonl.write(tmp_path / "blank.jsonl", [{"reference": " ", "context": ""}])
    with path.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["references", "-", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("mars: error: standard input:1: column 'reference'")


@pytest.mark.parametrize("ratings", [[1], [1, "2"], [None, None], 3, [1, 2, 3], [True, 2]])
def test_ratings_of_references_that_are_refused(ratings, rows, tmp_path, capsys):
    records = jsonl.read(rows)
    path = jsonl.write(tmp_path / "rated.jsonl", [{**row, "adequacy": ratings} for row in records[:1]])
    assert main(["references", str(path), "--ratings", "adequacy", "--quiet"]) != 0
    assert "rated.jsonl:1: column 'adequacy'" in capsys.readouterr().err
    assert main(["references", str(path), "--best", "x.jsonl", "--quiet"]) != 0
    assert "--ratings" in capsys.readouterr().err
