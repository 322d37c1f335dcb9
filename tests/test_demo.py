"""The demo, with tiny models."""

import runpy
from pathlib import Path

import pytest

from mars_score.scorer import MarsScorer

DEMO = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "demo.py"))


def test_the_demo_shows_plus_the_paper_and_other_metrics(tiny_mini, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert DEMO["main"](["--limit", "2", "--paper", "1"]) == 0
    out = capsys.readouterr().out
    _, second, summary = out.split("candidate, best first", 2)
    assert "MARS paper" in second
    assert "MARS paper" not in summary.split("\n")[0]
    row = next(
        line for line in summary.split("bad one above every good one")[1].splitlines() if "MARS plus" in line
    )
    assert [cell.strip() for cell in row.split("│")][2] == "2"
    example = DEMO["read"](Path(__file__).parent.parent / "examples" / "dialogues.jsonl")[0]
    count = len(example.candidates)
    columns = example.candidates, [example.references] * count, [example.context] * count
    for score in MarsScorer("mini", variant="plus").score(*columns).scores:
        assert f"{score:.3g} (#" in out


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--paper", "-1"]])
def test_what_the_demo_cannot_do_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        DEMO["main"](arguments)
    assert "at least" in capsys.readouterr().err
