"""Modules of evaluate as metrics of a meta-evaluation."""

import json

import jsonl
import pytest

from mars_score.cli import main
from mars_score.meta.metrics import make_metric, parse_names
from mars_score.meta.metrics.base import Models
from mars_score.settings import resolve_settings

MODULE = """
import datasets
import evaluate


class Local(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        columns = {{"predictions": text, {columns}}}
        return evaluate.MetricInfo(
            description="", citation="", inputs_description="", features=datasets.Features(columns)
        )

    def _compute(self, predictions, **columns):
        {body}
"""
ONE, MANY = '"references": text', '"references": datasets.Sequence(text)'
SHARED = "len(set(one.split()) & set(other.split()))"
LIST = f"return {{'f1': [{SHARED} for one, other in zip(predictions, columns['references'])], 'hash': 'x'}}"
FIGURE = (
    f"return {{'local': sum(max({SHARED} for other in others) for one, others in "
    "zip(predictions, columns['references'])) / len(predictions), 'rows': len(predictions)}"
)
SOURCES = f"return {{'scores': [{SHARED} for one, other in zip(predictions, columns['sources'])]}}"
ROWS = [("a b c", ("a x", "b c"), "c"), ("d", ("e",), "d e"), ("a a", ("a", "z"), "q")]


@pytest.fixture
def module(tmp_path):
    def write(columns, body):
        path = tmp_path / "local.py"
        path.write_text(MODULE.format(columns=columns, body=body))
        return str(path)

    return write


def make(path):
    return make_metric(f"evaluate:{path}", Models(resolve_settings("mini", variant="plus")))


@pytest.mark.parametrize(
    ("columns", "body", "scores"),
    [(ONE, LIST, [2, 0, 1]), (MANY, FIGURE, [2, 0, 1]), (f'{ONE}, "sources": text', SOURCES, [1, 1, 0])],
)
def test_scores(module, columns, body, scores):
    metric = make(module(columns, body))
    assert metric.score(ROWS, ()) == scores
    assert metric.title == "local"


@pytest.mark.parametrize(
    ("columns", "body", "message"),
    [
        (f'"images": text, {ONE}', "return {'score': 1.0}", "needs images; a rated set has no such column"),
        (ONE, "return {'good': 1.0, 'better': 2.0}", "gives good, better; none of them is one figure named score"),
    ],
)
def test_what_is_refused(module, columns, body, message):
    with pytest.raises(ValueError, match=message):
        make(module(columns, body)).score(ROWS, ())


def test_on_the_command_line(module, tmp_path, capsys):
    name, missing = f"evaluate:{module(ONE, LIST)}", f"evaluate:{tmp_path / 'nothing.py'}"
    assert parse_names(f"length,{name}") == ["length", name]
    rated = tmp_path / "rated.jsonl"
    rows = [("a " * n + "b", ["b " + "a " * (n % 2)], f"{n}", n % 2) for n in range(1, 9)]
    names = ("candidate", "references", "context", "human")
    jsonl.write(rated, [dict(zip(names, row, strict=True)) for row in rows])
    options = ["--no-attacks", "--resamples", "20", "--preset", "mini", "--json", "--quiet"]
    assert main(["meta", str(rated), "--metrics", f"{missing},{name}", *options]) == 0
    found = json.loads(capsys.readouterr().out)["sets"]["rated"]["metrics"]
    assert found[name]["coefficients"]["items"]["pearson"]["value"] == pytest.approx(1)
    assert "nothing.py" in found[missing]["failure"]
