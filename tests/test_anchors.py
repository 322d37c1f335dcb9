"""The scale of a score: its anchors are scores of the rows' own references."""

import json
import types

import jsonl
import pytest

from mars_score.compare.anchors import ROWS, Anchors, find_anchors
from mars_score.scorer import MarsScorer

REFERENCES = [["The boys look at the boats."], ["Bread is warm.", "It is bread."], ["A train is quick."]]
CONTEXTS = ["They walk to the river.", "The baker opens her shop.", "The baker opens her shop."]


class Counting:
    """A scorer that notes which texts were scored together."""

    def __init__(self):
        self.calls = []

    def score(self, candidates, references, contexts):
        self.calls.append(list(zip(candidates, references, contexts, strict=True)))
        return types.SimpleNamespace(scores=[1.0 if text in row else 0.25 for text, row, _ in self.calls[-1]])


def test_each_reference_against_itself_and_against_another_context():
    scorer = Counting()
    assert find_anchors(scorer, REFERENCES, CONTEXTS) == Anchors(unrelated=0.25, identical=1.0)
    [rows] = scorer.calls
    assert [row[1:] for row in rows] == [*zip(REFERENCES, CONTEXTS, strict=True)] * 2
    assert [text for text, _, _ in rows[:3]] == [row[0] for row in REFERENCES]
    assert [text for text, _, _ in rows[3:]] == ["Bread is warm.", *["The boys look at the boats."] * 2]
    places = [Anchors(0.25, 0.75).to_dict(score)["percent"] for score in (0.25, 0.5, 0.75, 0.125)]
    assert places == [0, 50, 100, -25]


def test_of_many_rows_some_are_scored():
    scorer = Counting()
    find_anchors(scorer, [[f"text {row}"] for row in range(1000)], [f"context {row}" for row in range(1000)])
    assert len(scorer.calls[0]) == 2 * ROWS
    assert scorer.calls[0][1][0] == "text 3"


@pytest.mark.parametrize(
    ("references", "contexts", "message"),
    [
        (REFERENCES[:1], CONTEXTS[:1], "differ"),
        ([["a"], ["a"]], ["one", "two"], "differ"),
        ([["a"], ["b"]], ["one", "one"], "differ"),
        ([["a"], []], ["one", "two"], "needs references"),
    ],
)
def test_rows_without_a_scale(references, contexts, message):
    with pytest.raises(ValueError, match=message):
        find_anchors(Counting(), references, contexts)


def test_the_command(named_models, tmp_path, run):
    names = ("prediction", "reference", "context")
    rows = zip(["The boats.", "Bread.", "A train."], REFERENCES, CONTEXTS, strict=True)
    path = jsonl.write(tmp_path / "rows.jsonl", [dict(zip(names, row, strict=True)) for row in rows])
    models = {"variant": "fast", "encoder": named_models["encoder"], "dtype": "float64"}
    command = ["score", path, *(f"--{name}={value}" for name, value in models.items())]
    anchors = find_anchors(MarsScorer(**models), REFERENCES, CONTEXTS)
    code, out, _ = run(*command, "--scale", "--json", "--chunk-size", "2")
    assert code == 0
    printed = json.loads(out)
    assert printed["scale"] == pytest.approx(anchors.to_dict(printed["mars"]))
    assert f"scale: {printed['scale']['percent']:.1f} % of the way" in run(*command, "--scale")[1]
    assert "scale" not in json.loads(run(*command, "--json")[1])
