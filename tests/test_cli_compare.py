"""``mars compare``, with the scores of tests/word_recall.py."""

import json
import re
import sys

import jsonl
import pytest
import word_recall

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
def scored(monkeypatch):
    return word_recall.install(monkeypatch)


@pytest.fixture
def compare(tmp_path, run):
    """Runs the command over lists of rows; returns exit code, standard output, standard error."""

    def run_command(*options, first=ROWS, second=OTHERS, more=(), names=("ours", "theirs")):
        paths = []
        for name, rows in zip(names, (first, second, *more), strict=True):
            paths.append(tmp_path / f"{name}.jsonl")
            paths[-1].parent.mkdir(exist_ok=True)
            jsonl.write(paths[-1], rows)
        return run("compare", *paths, *options)

    return run_command


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
    assert lines[1].startswith("approximate randomisation p = ")
    assert "(99 resamples of 3 rows)" in lines[1]
    assert lines[2].split() == ["system", "MARS", "95%", "interval"]
    assert lines[3].split()[:2] == ["ours", "0.8333"]
    assert lines[5].split()[:2] == ["difference", "+0.5000"]
    assert lines[6] == "ours wins 2, ties 1, loses 0 of 3 rows"
    assert re.fullmatch(r"verdict: ours cannot be told apart from theirs \(p = 0\.\d+\)", lines[7])
    assert lines[8].startswith("signature mars|")
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


def test_short_signatures(compare):
    for options in ([], ["--table", "latex"]):
        _, full, _ = compare("--resamples", 9, *options)
        _, short, _ = compare("--resamples", 9, *options, "--short")
        assert ("version:" in full, "version:" in short, "ver:" in short) == (True, False, True)
        assert len(short) < len(full)


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
def test_files_that_do_not_match(compare, scored, second, message):
    code, out, err = compare(second=second)
    assert (code, out) == (2, "")
    assert message in err
    assert scored == []


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
def test_a_plot_that_cannot_be_written_is_found_first(compare, scored, tmp_path, path, message):
    code, _, err = compare("--plot", tmp_path / path)
    assert code == 2
    assert message in err
    assert scored == []


def test_a_plot_without_matplotlib(compare, scored, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = compare("--plot", "plot.svg")
    assert code == 1
    assert "pip install 'mars-score[meta]'" in err
    assert scored == []


def test_numbers_out_of_range(compare):
    for option, value, message in [
        ("--rows", -1, "--rows must be at least 0"),
        ("--confidence", 2, "confidence must lie between"),
    ]:
        code, _, err = compare(option, value)
        assert code == 2
        assert message in err


# More than two systems

MANY = [{"prediction": "a b", "reference": "a b", "context": f"number {row}"} for row in range(16)]
WEAK = [{**row, "prediction": "q" if number % 2 else "a b"} for number, row in enumerate(MANY)]
POOR = [{**row, "prediction": "q" if number % 2 else "a q"} for number, row in enumerate(MANY)]
THREE = {"first": WEAK, "second": MANY, "more": [POOR], "names": ("weak", "good", "poor")}


def test_three_systems(compare):
    code, out, err = compare("--rows", 1, **THREE)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["16 rows, 3 systems", "bootstrap intervals (10000 resamples of 16 rows)"]
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["good", "1.0000"],
        ["weak", "0.5000"],
        ["poor", "0.2500"],
    ]
    assert "p adjusted for 3 tests (Holm)" in lines[7]
    good = lines[9].split()
    assert good == ["good", "+0.5000", "+0.7500"]
    # Weak and poor differ in 8 rows, all in one direction: p = 2/256, twice that for the second of three tests.
    assert re.fullmatch(
        r"verdict: good scores higher than weak \(\+0\.500, p = 0\.01\d+\) and poor \(\+0\.750, p = 0\.000\d+\); "
        r"weak scores higher than poor \(\+0\.250, p = 0\.01\d+\)",
        lines[12],
    ), lines[12]
    assert lines[-6:] == [
        "line 2: +1.0000",
        "  context: number 1",
        "  reference: a b",
        "  good 1.0000: a b",
        "  weak 0.0000: q",
        "  poor 0.0000: q",
    ]


def test_three_systems_as_json(compare):
    found = json.loads(compare("--json", "--test", "bootstrap", **THREE)[1])
    assert [(one["name"], one["mars"]) for one in found["systems"]] == [("good", 1), ("weak", 0.5), ("poor", 0.25)]
    assert [pair["systems"] for pair in found["pairs"]] == [["good", "weak"], ["good", "poor"], ["weak", "poor"]]
    assert all(pair["adjusted_p"] >= pair["p"] for pair in found["pairs"])
    assert [(pair["wins"], pair["ties"], pair["losses"]) for pair in found["pairs"]] == [
        (8, 8, 0),
        (16, 0, 0),
        (8, 8, 0),
    ]
    assert (found["test"], found["correction"], found["groups"]) == ("bootstrap", "holm", 16)


def test_long_texts_are_cut_to_fit(compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    long = [{**ROWS[0], "prediction": "word " * 100}]
    lines = compare(first=long, second=OTHERS[:1])[1].splitlines()
    [line] = [line for line in lines if line.startswith("  ours 0.0000: word word")]
    assert len(line) == 60
    assert line.endswith("…")


def test_tables_for_papers(compare):
    names = ("100%_weak", "good", "poor")
    latex = compare("--table", "latex", **{**THREE, "names": names})[1]
    assert latex.count(r"\begin{tabular}{lrr") == latex.count(r"\bottomrule") == 2
    assert r"100\%\_weak & 0.5000 & " in latex
    assert all(line.startswith("%") or "mars|" not in line for line in latex.splitlines())
    markdown = compare("--table", "markdown", **{**THREE, "names": names})[1]
    assert "100%\\_weak" in markdown
    grids = re.findall(r"^\| +system.*\|$\n\| :-[-:| ]+\|$", markdown, flags=re.MULTILINE)
    assert len(grids) == 1
    assert "scores higher than" in markdown
    assert compare("--table", "markdown")[1].count("\n| ") == 5  # heading, rule, two systems, difference


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ((), [changed(1, context="x")], "other.jsonl:2: column 'context' differs from"),
        (("--plot", "a.svg"), [OTHERS], "--plot draws two systems, got 3 files; leave it out"),
    ],
)
def test_a_third_file_that_does_not_match(compare, scored, options, more, message):
    code, out, err = compare(*options, more=more, names=("ours", "theirs", "other"))
    assert (code, out) == (2, "")
    assert message in err
    assert scored == []


def test_one_file_is_no_comparison(tmp_path, capsys):
    assert main(["compare", str(tmp_path / "a.jsonl")]) == 2
    assert "needs at least two files" in capsys.readouterr().err


def test_a_file_given_twice(compare, tmp_path, capsys):
    compare()
    ours, theirs = (str(tmp_path / f"{name}.jsonl") for name in ("ours", "theirs"))
    assert main(["compare", ours, theirs, ours, "--json"]) == 0
    names = {one["name"] for one in json.loads(capsys.readouterr().out)["systems"]}
    assert names == {f"{ours} (1)", theirs, f"{ours} (3)"}
