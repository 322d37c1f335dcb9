"""The demo, with tiny models."""

import runpy

import pytest

from mars_score.scorer import MarsScorer
from tests import ROOT

DEMO = runpy.run_path(str(ROOT / "examples" / "demo.py"))


def test_the_demo_shows_plus_the_paper_and_other_metrics(tiny_mini, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert DEMO["main"](["--limit", "2", "--paper", "1"]) == 0
    out = capsys.readouterr().out
    _, second, summary = out.split("candidate, best first", 2)
    assert "MARS paper" in second
    header, *lines = summary.splitlines()
    assert "MARS paper" not in header
    row = [line for line in lines if "MARS plus" in line][-1]
    assert row.split("│")[2].strip() == "2"
    example = DEMO["read"](ROOT / "examples" / "dialogues.jsonl")[0]
    scorer = MarsScorer("mini", variant="plus")
    assert example.task == "dialogue"
    for candidate in example.candidates:
        score = scorer.score([candidate], [example.references], [example.context], tasks="dialogue").score
        assert f"{score:.3g} (#" in out


def test_the_demo_takes_another_preset(tiny_preset, llama, capsys):
    tiny_preset("medium", llama)
    assert DEMO["main"](["--preset", "medium", "--limit", "1", "--paper", "0"]) == 0
    assert "MARS plus" in capsys.readouterr().out
    assert DEMO["main"](["--preset", "none such", "--limit", "1"]) == 1
    assert "none such" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--paper", "-1"]])
def test_what_the_demo_cannot_do_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        DEMO["main"](arguments)
    assert "at least" in capsys.readouterr().err
