"""``mars meta``: options, files of the report, messages."""

import json
import re
import sys

import pytest

from mars_score.cli.printing import show_table
from mars_score.tables import Table
from tests import jsonl
from tests.meta.test_sets import row

pytestmark = pytest.mark.usefixtures("word_models")


@pytest.fixture
def rated(tmp_path):
    def write(name="toy.jsonl", **changes):
        jsonl.write(tmp_path / name, [row(number, **changes) for number in range(12)])
        return str(tmp_path / name)

    return write


@pytest.fixture
def run(run):
    return lambda *argv: run("meta", *argv, "--preset", "mini")


def test_prints_a_table_and_what_was_left_out_and_writes_a_report(rated, run, tmp_path):
    rows = [row(number, human=number / 2 if number < 4 else None) for number in range(24)]
    files = rated(), jsonl.write(tmp_path / "partly.jsonl", rows)
    folder = tmp_path / "new" / "report"
    options = ("--metrics", "mars,length", "--report", folder, "--resamples", 20, "--quiet")
    code, out, err = run(*files, *options)
    assert (code, err) == (0, "mars: notice: partly: 20 of 24 items have no rating and are left out\n")
    lines = out.splitlines()
    assert lines[0] == "Agreement with people"
    cells = [line.split() for line in lines if line.startswith(("metric", "MARS", "length", "n "))]
    assert [first for first, *_ in cells] == ["metric", "MARS", "length", "n"]
    assert (cells[0][1:], cells[-1][1:]) == (["toy", "partly", "mean"], ["12", "4"])
    assert lines[-1] == f"report: {folder / 'report.md'}"
    assert {path.name for path in folder.iterdir()} == {"report.md", "results.json", "scores"}


def test_a_table_on_a_terminal_shows_texts_as_they_are(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")  # without colours
    columns, row = ("metric [bold]", "r [red]"), ("mars[variant=fast]", ".5 [.4, .6]")
    show_table(Table("Per system: news[first]", "In [brackets]: 95 %", columns, (row,)))
    title, _, header, _, cells, _, note = capsys.readouterr().out.splitlines()
    assert (title.strip(), note.strip()) == ("Per system: news[first]", "In [brackets]: 95 %")
    assert tuple(map(str.strip, header.strip("┃").split("┃"))) == columns
    assert tuple(map(str.strip, cells.strip("│").split("│"))) == row


def test_prints_json(rated, run):
    code, out, _ = run(
        rated(individual=[1, 2]), "--metrics", "length", "--json", "--groups", 3, "--no-attacks", "--seed", 5
    )
    result = json.loads(out)
    toy = result["sets"]["toy"]
    assert (code, result["seed"], toy["groups"], toy["items"], toy["attacks"]) == (0, 5, 3, 6, {})
    assert toy["metrics"]["length"]["coefficients"]["items"]["pearson"]["value"] is None  # all are as long
    assert list(toy["raters"]) == ["rating"]


def test_prints_how_well_raters_agree(rated, run):
    options = ("--metrics", "length", "--no-attacks", "--resamples", 20)
    _, out, _ = run(rated(marks=[1, 2]), "--single-column", "marks", *options)
    assert "raters agree with Krippendorff's alpha -" in out.splitlines()[-1]
    assert "raters agree" not in run(rated(marks=[1, 2]), *options)[1]


def test_columns_and_settings_are_options(rated, run, word_models):
    path = rated(human=..., stars=4.5, prediction=..., output="text of a system")
    options = "--rating-column stars --prediction-column output --variant fast --context-weight 0.4 --quiet"
    code, _, err = run(path, "--metrics", "mars", *options.split())
    assert (code, err) == (0, "")
    assert {scorer.settings.config.context_weight for scorer, _ in word_models} == {0.4}


def test_of_two_columns_the_named_one_is_taken(rated, run, failing):
    path = rated(contexts="the same for all")
    options = ("--metrics", "length", "--no-attacks", "--quiet")
    assert "toy.jsonl:1: columns 'context' and 'contexts' could both hold" in failing(path, *options)
    assert run(path, "--context-column", "context", *options)[0] == 0


@pytest.mark.parametrize(
    ("typed", "tasks"),
    [
        ("toy=data,other=text", [["data"], []]),
        ("toy=data --task other=text", [["data"], []]),
        ("data", [["data"], ["data"]]),
        ("data,other=dialogue", [["data"], ["dialogue"]]),
    ],
)
def test_the_tasks_of_sets_are_options(rated, run, typed, tasks):
    files, options = (
        (rated(), rated("other.jsonl")),
        ("--metrics", "mars_fast", "--json", "--no-attacks", "--quiet"),
    )
    code, out, _ = run(*files, *options, "--task", *typed.split())
    found = [data["metrics"]["mars_fast"]["signature"] for data in json.loads(out)["sets"].values()]
    assert code == 0
    assert [re.findall(r"\|task:(\w+)\|", signature) for signature in found] == tasks


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--metrics", "mars,blue"], "unknown metric 'blue'; did you mean 'bleu'?"),
        (["--metrics", "mars_v2[sigma=0]"], "unknown metric 'mars_v2[sigma=0]'; did you mean 'mars[sigma=0]'?"),
        (["--within-groups", "other"], "unknown data set 'other'; choose among: toy"),
        (["--groups", "0"], "the number of groups must be at least 1"),
        (["--rating-column", "stars"], "'human'); add it or name another with --rating-column"),
        (["--prediction-column", "x"], "'human'); add it or name another with --prediction-column"),
        (["--reference-column", "x"], "'human'); add it or name another with --reference-column"),
        (["--context-column", "x"], "'human'); add it or name another with --context-column"),
        (["--single-column", "stars"], "toy.jsonl:1: column 'stars' is missing"),
        (["--group-column", "group.name"], "toy.jsonl:1: column 'group.name' is missing"),
        (["--metrics", "mars_paper[sigma=-1]"], "unknown metric"),
        (["--metrics", "mars[variant=paper,sigma=-1]"], "sigma must be "),
        (["--task", "toy"], "unknown task 'toy'; choose among: text, summary, dialogue, data"),
        (["--task", "toy=story"], "unknown task 'story'"),
        (["--task", "other=data"], "unknown data set 'other'; choose among: toy"),
        (["--resamples", "0"], "resamples"),
    ],
)
def test_bad_usage_is_one_line_and_runs_nothing(rated, failing, word_models, argv, message):
    assert message in failing(rated(), *argv)
    assert word_models == []


def test_fails_where_every_metric_failed(rated, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.chrf", None)
    code, out, err = run(rated(), "--metrics", "chrf", "--quiet")
    assert (code, out) == (1, "")
    assert "skipped: chrF" in err
    assert "no metric gave a score" in err
