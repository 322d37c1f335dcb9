"""``mars compare``, with the scores of tests/word_recall.py."""

import json
import re

import jsonl
import pytest
import word_recall

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


MANY = [{"prediction": "a b", "reference": "a b", "context": f"number {row}"} for row in range(16)]
WEAK = [{**row, "prediction": "q" if number % 2 else "a b"} for number, row in enumerate(MANY)]
POOR = [{**row, "prediction": "q" if number % 2 else "a q"} for number, row in enumerate(MANY)]
THREE = {"first": WEAK, "second": MANY, "more": [POOR], "names": ("weak", "good", "poor")}


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


def test_text(compare):
    code, out, err = compare("--rows", 1, **THREE)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["16 rows, 3 systems", "bootstrap intervals over 16 rows"]
    assert lines[2].split() == ["system", "MARS", "95%", "interval"]
    scores = [line.split()[:2] for line in lines[3:6]]
    assert scores == [["good", "1.0000"], ["weak", "0.5000"], ["poor", "0.2500"]]
    assert lines[6:8] == [
        "differences",
        "approximate randomisation, 10000 resamples of 16 rows, p adjusted for 3 tests (Holm)",
    ]
    assert re.fullmatch(r"good - weak +\+0\.5000 +0\.\d+ \.\. 0\.\d+ +0\.01\d+ +8, 8, 0", lines[9])
    # Weak and poor differ in 8 rows, all in one direction: p = 2/256, twice that for the second of three tests.
    assert re.fullmatch(
        r"verdict: good scores higher than weak \(\+0\.500, p = 0\.01\d+\) and poor \(\+0\.750, p = 0\.000\d+\); "
        r"weak scores higher than poor \(\+0\.250, p = 0\.01\d+\)",
        lines[12],
    ), lines[12]
    assert lines[13].startswith("signature mars|version:")
    assert lines[-6:] == [
        "line 2: 1.0000 apart",
        "  context: number 1",
        "  reference: a b",
        "  good 1.0000: a b",
        "  weak 0.0000: q",
        "  poor 0.0000: q",
    ]


def test_two_systems_in_few_rows(compare):
    """Nothing can be said of three contexts; what would move the cursor is not printed."""
    code, out, _ = compare()
    assert code == 0
    lines = out.splitlines()
    assert re.fullmatch(r"ours - theirs +\+0\.5000 +n/a +n/a +2, 1, 0", lines[8])
    assert lines[9] == "verdict: ours cannot be told apart from theirs (no test)"
    assert "notice: no intervals and no p-values: 3 different contexts, fewer than 10" in lines
    assert "  theirs 0.0000: q [31m" in lines
    assert "\x1b" not in out


def test_json_has_the_interval_of_score(compare, tmp_path, run):
    """Rows of a context are drawn together by both commands."""
    repeated = [{**row, "context": f"number {number // 2}"} for number, row in enumerate(WEAK * 2)]
    code, out, err = compare("--json", "--rows", 0, first=repeated, second=repeated)
    assert (code, err) == (0, "")
    plain = json.loads(out)
    assert (plain["groups"], plain["pairs"][0]["ties"], plain["most_different"]) == (16, 32, [])
    scored = json.loads(run("score", tmp_path / "ours.jsonl", "--json")[1])
    assert [system["interval"] for system in plain["systems"]] == [scored["interval"]] * 2


def test_rows_of_a_group_are_drawn_together(compare):
    assert json.loads(compare("--json", "--group-column", "story")[1])["groups"] == 2


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ((), {"second": changed(1, reference=["c z", "x y"])}, "theirs.jsonl:2: column 'reference' differs from"),
        ((), {"second": changed(2, context="other")}, "theirs.jsonl:3: column 'context' differs from"),
        ((), {"second": OTHERS[:2]}, "ours.jsonl:3: "),
        ((), {"second": [*OTHERS, OTHERS[0]]}, "theirs.jsonl:4: "),
        ((), {"second": OTHERS[1:]}, "theirs.jsonl:1: column 'reference' differs from"),
        ((), {"second": changed(0, prediction=None)}, "theirs.jsonl:1: column 'prediction' must be a string"),
        ((), {"more": [changed(1, context="x")], "names": "abc"}, "c.jsonl:2: column 'context' differs from"),
        (("--group-column", "tale"), {}, "ours.jsonl:1: column 'tale' is missing"),
        (
            ("--group-column", "story"),
            {"first": [{**ROWS[0], "story": None}, *ROWS[1:]]},
            "ours.jsonl:1: column 'story' must be a string or an integer, got None",
        ),
        (("--rows", -1), {}, "--rows must be at least 0"),
        (("--confidence", 2), {}, "confidence must lie between"),
    ],
)
def test_what_is_wrong_is_found_before_scoring(compare, scored, options, changes, message):
    code, out, err = compare(*options, **changes)
    assert (code, out) == (2, "")
    assert message in err
    assert scored == []


def test_without_contexts(compare):
    rows = [{name: value for name, value in row.items() if name != "context"} for row in OTHERS]
    assert compare(first=rows, second=rows)[0] == 2
    code, out, _ = compare("--no-use-context", "--json", first=rows, second=rows)
    assert (code, json.loads(out)["pairs"][0]["ties"]) == (0, 3)


def test_long_texts_are_cut_to_fit(compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = compare(first=[{**ROWS[0], "prediction": "word " * 100}], second=OTHERS[:1])[1]
    assert re.search(r"^  ours 0\.0000: [word ]{44}…$", out, flags=re.MULTILINE)


def test_tables_for_papers(compare):
    names = ("100%_weak", "good", "poor")
    latex = compare("--table", "latex", **{**THREE, "names": names})[1]
    assert "mars|version:" in latex
    assert latex.count(r"\begin{tabular}{lrr") == latex.count(r"\bottomrule") == 2
    assert r"100\%\_weak & 0.5000 & " in latex
    assert all(line.startswith("%") or "mars|" not in line for line in latex.splitlines())
    markdown = compare("--table", "markdown", **{**THREE, "names": names})[1]
    assert "100%\\_weak" in markdown
    assert len(re.findall(r"^\| +systems? .*\|$\n\| :-[-:| ]+\|$", markdown, flags=re.MULTILINE)) == 2
    assert "scores higher than" in markdown
    assert "fewer than 10" in compare("--table", "markdown")[1]


def test_names_of_systems(compare, run, tmp_path):
    """Files without their endings; paths where these are equal, numbered where a file is given twice."""

    def names(out):
        return {system["name"].removeprefix(f"{tmp_path}/") for system in json.loads(out)["systems"]}

    assert names(compare("--json")[1]) == {"ours", "theirs"}
    assert names(compare("--json", names=("one/rows", "two/rows"))[1]) == {"one/rows.jsonl", "two/rows.jsonl"}
    ours, theirs = (tmp_path / f"{name}.jsonl" for name in ("ours", "theirs"))
    again = run("compare", ours, theirs, ours, "--json")[1]
    assert names(again) == {"ours.jsonl (1)", "theirs.jsonl", "ours.jsonl (3)"}
    code, _, err = run("compare", ours)
    assert code == 2
    assert "needs at least two files" in err
