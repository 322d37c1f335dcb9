"""``mars references``: numbers by hand, the command from end to end on tiny models."""

import json
import math

import jsonl
import numpy as np
import pytest

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.meta.reference_survey import reference_row, survey_references
from mars_score.sampling.samples import Samples

CONTEXT = "It was late and they lost the old game."
SAMPLES = ("They won.", "By the river, where they waited.")


def unit(degrees):
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])


def mean_cosine(*degrees):
    return pytest.approx(np.mean([unit(angle)[0] for angle in degrees]))


def test_the_numbers_of_a_row():
    vectors = {"a b": unit(0), "a b.": unit(10), "c d e": unit(80), "x": unit(30), "y": unit(90), "p q": unit(20)}
    row = reference_row(3, ["a b", "a b.", "c d e"], "p q", ("x", "y"), vectors)
    assert (row.row, row.words, row.copied) == (3, pytest.approx(7 / 3), 0)
    assert row.lexical == pytest.approx(1 - (1 + 0 + 0) / 3)
    assert row.closeness == mean_cosine(20, 10, 60)
    assert 1 - row.embedding == mean_cosine(10, 80, 70)
    assert row.agreement == mean_cosine(80)
    assert row.duplicates == ((0, 1),)
    assert 1 - row.openness == mean_cosine(60)
    assert row.nearest == mean_cosine(30, 20, 10)
    assert row.samples == ("x", "y")  # x is 20 degrees from its nearest reference, y 10
    assert row.need == pytest.approx(row.openness / 3)


def test_what_is_undefined():
    row = reference_row(0, ["a b"], "", (), {"a b": unit(0)})
    numbers = row.copied, row.closeness, row.lexical, row.embedding, row.agreement, row.openness
    assert all(map(math.isnan, numbers))
    assert (row.duplicates, row.need) == ((), 0)


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tiny_mini):
    """Preset "mini" is of tiny models, whose samples are two set texts."""
    monkeypatch.setenv("MARS_PRESET", "mini")
    monkeypatch.setattr(
        "mars_score.sampling.samples.draw_samples",
        lambda model, request, settings: Samples(SAMPLES),
    )


@pytest.fixture
def rows(tmp_path):
    """A file: near-duplicates, one reference, and a question, for which no samples are drawn."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {"reference": ["They won <b>it</b>.", "They won <b>it</b>. "], "context": CONTEXT},
        {"reference": "They lost.", "context": CONTEXT},
        {"reference": ["Nobody.", "She did."], "context": "Who won the old game?"},
    ]
    jsonl.write(path, rows)
    return str(path)


def test_the_command(rows, capsys):
    assert main(["references", rows, "--suggest", "2", "--quiet"]) == 0
    out = capsys.readouterr().out
    for text in ("references per row", "1 in 1, 2 in 2", "Near-duplicates"):
        assert text in out
    assert out.index("They lost.") < out.rindex("They won <b>it</b>.")  # one reference needs another more than two
    assert main(["references", rows, "--suggest", "5", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["suggested"] == [1, 0]  # only rows with samples
    assert [row["duplicates"] for row in found["rows"]][:2] == [[[0, 1]], []]
    assert [len(row["samples"]) for row in found["rows"]] == [2, 2, 0]
    assert found["rows"][1]["lexical"] is None
    assert "variant:plus|references:varying" in found["signature"]


def test_bad_input(rows, capsys):
    assert main(["references", rows, "--suggest", "-1"]) == 2
    scorer = MarsScorer("mini", variant="plus")
    for references, contexts, message in (
        ([], [], "there are no rows"),
        ([" "], ["c"], r"references\[0\] .*blank"),
    ):
        with pytest.raises(ValueError, match=message):
            survey_references(scorer, references, contexts)
