"""``mars compare``, with a fake scorer in the place of the models."""

from __future__ import annotations

import json
import sys

import fakes
import pytest

from mars_score.cli import main

ROWS = [
    {"prediction": "a b", "reference": "a b", "context": "first", "story": 7},
    {"prediction": "x q", "reference": ["x y", "c z"], "context": ["second", "part"], "story": 7},
    {"prediction": "d", "reference": "d", "context": "", "story": 8},
]
OTHERS = [
    {"prediction": "a q", "reference": ["a b"], "context": "first"},
    {"prediction": "x q", "reference": ["x y", "c z"], "context": "second\npart"},
    {"prediction": "q\x1b[31m", "reference": "d", "context": ""},
]


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fakes.install(monkeypatch)


@pytest.fixture
def compare(tmp_path, capsys):
    """Runs the command over two lists of rows; returns exit code, standard output, standard error."""

    def run(*options, first=ROWS, second=OTHERS, names=("ours", "theirs")):
        paths = []
        for name, rows in zip(names, (first, second), strict=True):
            paths.append(tmp_path / f"{name}.jsonl")
            paths[-1].parent.mkdir(exist_ok=True)
            paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        code = main(["compare", *map(str, paths), *map(str, options)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def changed(row, **values):
    return [*OTHERS[:row], {**OTHERS[row], **values}, *OTHERS[row + 1 :]]


def test_json(compare):
    code, out, err = compare("--json", "--resamples", 99, "--rows", 1)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [(one["name"], one["mars"]) for one in found["systems"]] == [
        ("ours", pytest.approx(2.5 / 3)),
        ("theirs", pytest.approx(1 / 3)),
    ]
    assert (found["wins"], found["ties"], found["losses"]) == (2, 1, 0)
    assert found["groups"] == 3
    assert [row["row"] for row in found["most_different"]] == [2]


def test_text(compare):
    code, out, _ = compare("--resamples", 99)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "3 rows, two systems"
    assert lines[1].startswith("paired bootstrap p = ")
    assert "(99 resamples of 3 rows)" in lines[1]
    assert lines[2].split() == ["system", "MARS", "95%", "interval"]
    assert lines[3].split()[:2] == ["ours", "0.8333"]
    assert lines[5].split()[:2] == ["difference", "+0.5000"]
    assert lines[6] == "ours wins 2, ties 1, loses 0 of 3 rows"
    assert lines[7].startswith("signature mars|")
    shown = lines.index("rows that differ most")
    assert lines[shown + 1 :] == [
        "line 3: +1.0000",
        "  reference: d",
        "  ours 1.0000: d",
        "  theirs 0.0000: q [31m",
        "line 1: +0.5000",
        "  context: first",
        "  reference: a b",
        "  ours 1.0000: a b",
        "  theirs 0.5000: a q",
    ]


def test_rows_of_a_group_are_drawn_together(compare):
    out = compare("--json", "--group-column", "story")[1]
    assert json.loads(out)["groups"] == 2
    code, _, err = compare("--group-column", "tale")
    assert code == 2
    assert "ours.jsonl:1: column 'tale' is missing" in err
    code, _, err = compare("--group-column", "story", first=[{**ROWS[0], "story": None}, *ROWS[1:]])
    assert code == 2
    assert "ours.jsonl:1: column 'story' must be a string or an integer, got None" in err


def test_one_group_has_no_intervals(compare):
    out = compare("--group-column", "context", first=ROWS[:1], second=OTHERS[:1])[1]
    assert "nothing to draw from" in out
    assert "n/a" in out


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (changed(1, reference=["c z", "x y"]), "theirs.jsonl:2: column 'reference' differs from"),
        (changed(2, context="other"), "theirs.jsonl:3: column 'context' differs from"),
        (OTHERS[:2], "ours.jsonl:3: "),
        ([*OTHERS, OTHERS[0]], "theirs.jsonl:4: "),
        (OTHERS[1:], "theirs.jsonl:1: column 'reference' differs from"),
        (changed(0, prediction=None), "theirs.jsonl:1: column 'prediction' must be a string"),
    ],
)
def test_files_that_do_not_match(compare, fake, second, message):
    code, out, err = compare(second=second)
    assert (code, out) == (2, "")
    assert message in err
    assert fake.loads == 0


def test_without_contexts(compare):
    rows = [{name: value for name, value in row.items() if name != "context"} for row in OTHERS]
    assert compare(first=rows, second=rows)[0] == 2
    code, out, _ = compare("--no-use-context", "--json", first=rows, second=rows)
    assert (code, json.loads(out)["ties"]) == (0, 3)


def test_files_of_one_name(compare):
    out = compare("--json", names=("one/rows", "two/rows"))[1]
    names = [one["name"] for one in json.loads(out)["systems"]]
    assert names[0].endswith("one/rows.jsonl")
    assert names[1].endswith("two/rows.jsonl")


def test_plot(compare, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = compare("--plot", tmp_path / "plot.svg")
    assert code == 0
    assert out.splitlines()[-1] == f"plot: {tmp_path / 'plot.svg'}"
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "message"), [("plot.pdf", "written as .svg or .png"), ("nowhere/plot.svg", "folder does not exist")]
)
def test_a_plot_that_cannot_be_written_is_found_first(compare, fake, tmp_path, path, message):
    code, _, err = compare("--plot", tmp_path / path)
    assert code == 2
    assert message in err
    assert fake.loads == 0


def test_a_plot_without_matplotlib(compare, fake, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = compare("--plot", "plot.svg")
    assert code == 1
    assert "pip install 'mars-score[meta]'" in err
    assert fake.loads == 0


def test_numbers_out_of_range(compare):
    for option, value, message in [
        ("--rows", -1, "--rows must be at least 0"),
        ("--confidence", 2, "confidence must lie between"),
        ("--tie-margin", -1, "tie_margin must be"),
    ]:
        code, _, err = compare(option, value)
        assert code == 2
        assert message in err
