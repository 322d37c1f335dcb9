"""The options of a project: ``[tool.mars]`` of its pyproject.toml."""

import pytest

import mars_score
from mars_score.cli.project import project_settings
from tests import jsonl

ROW = {"prediction": "They left at noon.", "reference": "They left.", "context": "The work began in March."}


@pytest.fixture
def rows(tmp_path):
    return jsonl.write(tmp_path / "rows.jsonl", [ROW])


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


def test_without_options_of_a_project_nothing_changes(tiny_mini, tmp_path, monkeypatch, rows, run):
    monkeypatch.chdir(tmp_path)
    assert project_settings() == {}
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n", "utf-8")
    code, _, error = run("score", rows)
    assert (code, "pyproject" in error) == (0, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('preset = "medium"\nfail-contradicted = true\nfail-under = 0.5', {"preset": "medium"}),
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


def test_judge_takes_the_settings_of_a_project(tiny_mini, project):
    project('variant = "fast"\nfail-under = 0.9')
    judged = mars_score.judge("At ten.", "At ten.", "It leaves at ten.", **project_settings())
    assert "|variant:fast|" in judged["metadata"]["signature"]
