"""The scale of a score: its anchors are scores of the rows' own references."""

import json
import types

import pytest

from mars_score.cli import main
from mars_score.compare.anchors import ROWS, Anchors, find_anchors
from mars_score.scorer import MarsScorer

REFERENCES = [["The boys look at the boats."], ["Bread is warm.", "It is bread."], ["A train is quick."]]
CONTEXTS = ["They walk to the river.", "The baker opens her shop.", "The baker opens her shop."]


class Counting:
    """A scorer whose scores say which texts were scored together."""

    def __init__(self):
        self.calls = []

    def score(self, candidates, references, contexts):
        self.calls.append(list(zip(candidates, references, contexts, strict=True)))
        return types.SimpleNamespace(scores=[1.0 if one in row else 0.25 for one, row, _ in self.calls[-1]])


def test_each_reference_against_itself_and_against_another_context():
    scorer = Counting()
    assert find_anchors(scorer, REFERENCES, CONTEXTS) == Anchors(unrelated=0.25, identical=1.0)
    [rows] = scorer.calls
    assert [one for one, _, _ in rows[:3]] == [row[0] for row in REFERENCES]
    assert [one for one, _, _ in rows[3:]] == ["Bread is warm.", *["The boys look at the boats."] * 2]


def test_percent():
    anchors = Anchors(0.25, 0.75)
    assert [anchors.percent(score) for score in (0.25, 0.5, 0.75, 0.125)] == [0, 50, 100, -25]


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


def test_the_command(named_models, tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    names = ("prediction", "reference", "context")
    rows = zip(["The boats.", "Bread.", "A train."], REFERENCES, CONTEXTS, strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    encoder = named_models["encoder"]
    command = [
        "score",
        str(path),
        "--variant",
        "fast",
        "--encoder",
        encoder,
        "--samples",
        "0",
        "--dtype",
        "float64",
    ]
    scorer = MarsScorer(variant="fast", encoder=encoder, samples=0, dtype="float64")
    anchors = find_anchors(scorer, REFERENCES, CONTEXTS)
    if anchors.identical <= anchors.unrelated:
        pytest.fail("the tiny encoder tells nothing apart")
    assert main([*command, "--scale", "--json", "--chunk-size", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scale"] == pytest.approx(anchors.to_dict(found["mars"]))
    assert main([*command, "--scale"]) == 0
    assert f"scale: {found['scale']['percent']:.1f} % of the way" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    assert "scale" not in json.loads(capsys.readouterr().out)
