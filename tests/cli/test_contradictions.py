"""Contradicted rows: gates, ``judge``, outputs; and the options of a project."""

import csv
import json

import pytest

import mars_score
from mars_score.cli.project import project_settings
from tests import belief, jsonl

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
TEXT = "The road is busy. They left at noon."
SAME = "The road is busy. They left at noon indeed."  # close to it for every encoder
ROWS = [
    {"prediction": SAME, "reference": TEXT, "context": "The work began in March."},
    {"prediction": "Nobody came.", "reference": TEXT, "context": "The work began in March."},
]


@pytest.fixture
def accused(tiny_mini, monkeypatch):
    """Preset "mini" of tiny models that contradict each sentence which is close to a reference."""
    belief.believe(monkeypatch, certain=0.0, likely=0.0)
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.5)


@pytest.fixture
def rows(tmp_path):
    """A file of rows, in the working folder's place."""
    path = tmp_path / "rows.jsonl"
    jsonl.write(path, ROWS)
    return str(path)


def contradicted(path):
    return [bool(row["contradicted"]) for row in jsonl.read(path)]


def test_a_contradicted_row_fails_the_build(accused, rows, run, tmp_path):
    out = str(tmp_path / "out.jsonl")
    code, _, error = run("score", rows, "--fail-contradicted", "--out", out)
    assert code == 3
    assert contradicted(out)[0]
    count = sum(contradicted(out))
    assert f"{count} of 2 rows {'is' if count == 1 else 'are'} contradicted:" in error
    assert "line 1: " in error
    assert "contradicts " in error
    assert run("score", rows, "--fail-contradicted", "0.99")[0] == (0 if count < 2 else 3)
    assert run("score", rows)[0] == 0


def test_a_gate_says_what_it_cannot_check(accused, rows, run, tmp_path):
    path = tmp_path / "replies.jsonl"
    jsonl.write(path, [{**row, "context": ["They left at noon."]} for row in ROWS] + ROWS[:1])
    code, _, error = run("score", str(path), "--fail-contradicted")
    assert code == 3
    assert "2 of 3 rows cannot be checked for contradictions: 2 " in error
    assert "1 of 3 rows is contradicted" in error
    assert "cannot be checked" not in run("score", str(path))[2]
    assert "cannot be checked" not in run("score", rows, "--fail-contradicted")[2]


def test_without_belief_in_the_context_a_summary_is_checked_by_a_close_reference(
    accused, rows, run, tmp_path, monkeypatch
):
    """As with preset "mini"; nothing is said to be unsupported."""
    belief.believe(monkeypatch, belief.Reliability(1.0, False, True), certain=0.0, likely=0.0)
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.85)
    out = str(tmp_path / "out.jsonl")
    code, _, error = run("score", rows, "--task", "summary", "--fail-contradicted", "--out", out)
    assert code == 3
    assert "1 of 2 rows cannot be checked for contradictions: " in error
    assert "1 of 2 rows is contradicted" in error
    assert contradicted(out) == [True, False]
    assert [row["unsupported"] for row in jsonl.read(out)] == [[], []]
    run("score", rows, "--task", "summary", "--no-references", "--out", out)
    assert contradicted(out) == [False, False]


@pytest.mark.parametrize("share", ["-0.1", "1", "x"])
def test_a_share_is_below_one(share, rows, run):
    code, _, error = run("score", rows, f"--fail-contradicted={share}")
    assert (code == 2 and "share" in error) or "number" in error


def test_what_nobody_believes_fails_nothing(tiny_mini, rows, run):
    assert run("score", rows, "--fail-contradicted")[0] == 0


def test_the_mark_in_the_list_of_rows(accused, rows, run):
    _, text, _ = run("score", rows)
    line = next(line for line in text.splitlines() if line.endswith("indeed."))
    assert "[contradicted] " in line


def test_judge_lets_no_contradiction_pass(accused):
    row = {"reference": TEXT, "context": "The work began in March."}
    judged = mars_score.judge(SAME, **row, threshold=-5.0)
    assert judged["passed"] is False
    assert "contradicts" in judged["reason"]
    assert judged["metadata"]["contradicted"][0].keys() == {
        "sentence",
        "probability",
        "premise",
        "source",
        "words",
        "number",
        "absent",
    }
    assert mars_score.judge(SAME, **row)["passed"] is False
    assert mars_score.judge(SAME, **row, threshold=-5.0, allow_contradictions=True)["passed"] is True
    assert mars_score.judge(SAME, **row, allow_contradictions=True)["passed"] is None


@pytest.mark.parametrize("thought", ["", "<think>Hm. Is it? It is.</think>", "<think>No.\n\nSo.</think>\n\n"])
def test_sentences_are_numbered_without_reasoning(accused, thought):
    row = {"reference": TEXT, "context": "The work began in March.", "clean": True}
    judged = mars_score.judge(f"{thought}Yes! They left at noon indeed. The road is busy.<|im_end|>", **row)
    told = [(one["number"], one["sentence"]) for one in judged["metadata"]["contradicted"]]
    assert told == [(2, "They left at noon indeed."), (3, "The road is busy.")]
    assert "sentence 2 contradicts" in judged["reason"]
    assert "sentence 3 contradicts" in judged["reason"]


def test_outputs_have_what_is_contradicted_and_supported(accused, rows, run, tmp_path, monkeypatch):
    belief.believe(monkeypatch, belief.ALL._replace(max_support=1.1), certain=0.0, likely=0.0)
    out = tmp_path / "out.csv"
    code, text, _ = run("score", rows, "--task", "summary", "--out", str(out))
    assert code == 0
    with out.open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    result = mars_score.MarsScorer().score(*([row[name] for row in ROWS] for name in ROWS[0]), tasks="summary")
    details = result.to_dict()
    records = result.to_records()
    for name in ("contradicted", "unsupported"):
        assert any(details[name])
        for cell, row, record, value in zip(cells, details["rows"], records, details[name], strict=True):
            assert json.loads(cell[name]) == row[name] == record[name] == value
    for cell, row, record, value in zip(cells, details["rows"], records, details["supported"], strict=True):
        assert float(cell["supported"]) == row["supported"] == record["supported"] == value
    assert details["faithfulness"] == pytest.approx(sum(details["supported"]) / len(ROWS))
    assert f"faithfulness {details['faithfulness']:.4f}: " in text
    assert json.loads(run("score", rows, "--task", "summary", "--json")[1])["faithfulness"] == pytest.approx(
        details["faithfulness"], abs=1e-6
    )


def test_of_texts_nothing_is_said_to_be_unsupported(accused, rows, run, monkeypatch):
    belief.believe(monkeypatch, belief.ALL._replace(max_support=1.1), certain=0.0, likely=0.0)
    result = mars_score.MarsScorer().score(*([row[name] for row in ROWS] for name in ROWS[0]))
    assert [row.unsupported for row in result.row_scores] == [(), ()]
    assert result.faithfulness is None
    assert "faithfulness" not in run("score", rows)[1]


def test_compare_counts_contradicted_rows(accused, rows, run, tmp_path):
    other = tmp_path / "other.jsonl"
    jsonl.write(other, [{**row, "prediction": "Nobody came?"} for row in ROWS])
    _, text, _ = run("compare", rows, str(other))
    assert "contradicted" in text.splitlines()[2]
    _, text, _ = run("compare", rows, str(other), "--json")
    by_name = {system["name"]: system["contradicted"] for system in json.loads(text)["systems"]}
    assert 0 in by_name["rows"]
    assert by_name["other"] == []


# Options of a project


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes ``[tool.mars]`` in a folder above the working folder."""

    def write(text):
        (tmp_path / "pyproject.toml").write_text(f"[tool.mars]\n{text}", "utf-8")
        (tmp_path / "inside").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "inside")

    return write


def test_a_project_has_options(tiny_mini, project, rows, run):
    project('variant = "fast"\nfail_under = 5\ncontext-column = "context"\nquiet = true\nmetrics = "bleu"\n')
    code, text, error = run("score", rows)
    assert code == 3
    assert "variant:fast" in text
    assert "pyproject.toml: --variant=fast --fail-under=5 --context-column=context --quiet" in error
    code, text, _ = run("score", rows, "--variant", "plus", "--fail-under", "-9")
    assert code == 0
    assert "variant:plus" in text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("presett = 1", "has 'presett', which is an option of no command"),
        ("preset = [1]", "is no value of the option --preset"),
        ("preset = ", "is not TOML"),
        ("fail-under = 'much'", "must be a finite number"),
    ],
)
def test_wrong_options_of_a_project_are_named(text, fault, project, rows, run):
    project(text)
    code, _, error = run("score", rows)
    assert code == 2
    assert fault in error


def test_other_projects_change_nothing(tiny_mini, tmp_path, monkeypatch, rows, run):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    code, _, error = run("score", rows)
    assert code == 0
    assert "pyproject" not in error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'preset = "medium"\ntask = "summary"\nfail-contradicted = true\nfail-under = 0.5',
            {"preset": "medium", "task": "summary"},
        ),
        ("context_weight = 0.5\nno-store = true\nquiet = true", {"context_weight": 0.5, "store": False}),
        ("no-use-context = true\nworkers = 3", {"use_context": False}),
        ("use-context = false", {"use_context": False}),
        ("", {}),
    ],
)
def test_settings_of_a_project_are_those_of_a_scorer(text, expected, project):
    project(text)
    assert project_settings() == expected
    mars_score.MarsScorer(**expected)


def test_without_a_project_there_are_no_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project_settings() == {}


def test_judge_takes_the_settings_of_a_project(tiny_mini, project):
    project('variant = "fast"\nfail-under = 0.9')
    judged = mars_score.judge("At ten.", "At ten.", "It leaves at ten.", **project_settings())
    assert "|variant:fast|" in judged["metadata"]["signature"]
