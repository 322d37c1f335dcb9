"""``mars references``: figures by hand, the command from end to end on tiny models."""

import json
import math
import sys

import numpy as np
import pytest

from mars_score import MarsScorer
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


RECORDS = [
    {"reference": ["They won <b>it</b>.", "They won <b>it</b>. "], "context": CONTEXT},
    {"reference": "They lost the old game.", "context": CONTEXT},
    {"reference": ["Nobody.", "She did."], "context": {"passages": [CONTEXT, "Who won the old game?"]}},
]


@pytest.fixture
def survey(run, tmp_path):
    """Runs ``mars references`` over records; returns exit code, standard output and standard error."""

    def run_command(*options, records=RECORDS):
        return run("references", jsonl.write(tmp_path / "rows.jsonl", records), *options, "--quiet")

    return run_command


def test_the_command(survey):
    code, out, _ = survey()
    assert code == 0
    for text in ("references per row", "1 in 1, 2 in 2", "Near-duplicates", "They won <b>it</b>. / They won"):
        assert text in out
    found = json.loads(survey("--json")[1])
    assert [row["duplicates"] for row in found["rows"]][:2] == [[[0, 1]], []]
    assert [row["copied"] for row in found["rows"]] == [0, pytest.approx(1), 0]
    assert found["rows"][1]["lexical"] is None
    assert found["encoder"].startswith("SentenceTransformer@")
    rows = json.loads(survey("--no-use-context", "--json")[1])["rows"]
    assert [row["copied"] for row in rows] == [None] * 3


def test_bad_input():
    scorer = MarsScorer("mini", variant="plus")
    for references, contexts, message in (
        ([], [], "there are no rows"),
        ([" "], ["c"], r"references\[0\] .*blank"),
    ):
        with pytest.raises(ValueError, match=message):
            survey_references(scorer, references, contexts)


def test_references_that_people_rate_highest(survey, tmp_path):
    ratings, best = [[2, 5.5], 4, [None, 3]], tmp_path / "best.jsonl"
    records = [{**row, "adequacy": of_row} for row, of_row in zip(RECORDS, ratings, strict=True)]
    lines = [
        line.split() for line in survey("--ratings=adequacy", "--best", best, records=records)[1].splitlines()
    ]
    for line in (["reference", "1", "3.000", "2", "1"], ["reference", "2", "4.250", "2", "2"]):
        assert line in lines
    assert ["best", "of", "each", "row", "4.167", "3"] in lines
    chosen = ["They won <b>it</b>.", "They lost the old game.", "She did."]
    expected = [{**row, "reference": text} for row, text in zip(records, chosen, strict=True)]
    assert [{**row, "adequacy": of_row} for row, of_row in zip(jsonl.read(best), ratings, strict=True)] == expected
    rows = json.loads(survey("--ratings=adequacy", "--json", records=records)[1])["rows"]
    assert [row["best"] for row in rows] == [1, 0, 1]


def test_the_best_references_have_the_column_of_the_file(survey, tmp_path):
    records = [{"references": row["reference"], "context": row["context"], "r": [1]} for row in RECORDS[1:2]]
    assert survey("--ratings=r", "--best", tmp_path / "best.jsonl", records=records)[0] == 0
    assert jsonl.read(tmp_path / "best.jsonl") == records
    assert survey(records=records)[0] == 0


def test_references_from_standard_input(survey, run, tmp_path, monkeypatch):
    for records in (RECORDS, [{"reference": " ", "context": ""}]):
        code, out, error = survey("--json", records=records)
        with open(tmp_path / "rows.jsonl") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            found = run("references", "-", "--json", "--quiet")
        assert found == (code, out, error.replace(str(tmp_path / "rows.jsonl"), "standard input"))
    assert code == 2


@pytest.mark.parametrize("ratings", [[1], [1, "2"], [None, None], 3, [1, 2, 3], [True, 2]])
def test_ratings_of_references_that_are_refused(ratings, survey):
    records = [{**RECORDS[0], "adequacy": ratings}]
    code, _, error = survey("--ratings", "adequacy", records=records)
    assert (code, "rows.jsonl:1: column 'adequacy'" in error) == (2, True)
    code, _, error = survey("--best", "x.jsonl", records=records)
    assert (code, "--ratings" in error) == (2, True)
