"""docs/paper.md: its tables are those of the kept results, and its published figures are all there."""

import json
import math
import re

import jsonl
import pytest

from research import paper, paper_measures

PUBLISHED = json.loads(paper.PUBLISHED.read_text(encoding="utf-8"))


def rows(name):
    """The rows of a table of the page by their first cell, with the number that each other cell begins with."""
    section = paper.PAGE.read_text(encoding="utf-8").split(f"<!-- table: {name} -->\n")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()]
    return {first: [number(cell) for cell in rest] for first, *rest in cells}


def number(cell):
    found = re.match(r"[+-]?\d+(\.\d+)?", cell)
    return float(found[0]) if found else None


def test_page_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["paper"])
    paper.main()
    assert capsys.readouterr().out == paper.PAGE.read_text(encoding="utf-8")


def test_a_changed_result_changes_the_page(tmp_path, monkeypatch):
    kept = json.loads(paper.KEPT.read_text(encoding="utf-8"))
    kept["sets"]["newsroom"]["systems"]["textrank"]["MARS"] = [-0.987, -0.99, -0.98]
    changed = tmp_path / "paper.json"
    changed.write_text(json.dumps(kept), encoding="utf-8")
    monkeypatch.setattr(paper, "KEPT", changed)
    assert "-0.987 [-0.990, -0.980]" in paper.page()
    assert "-0.987" not in paper.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("task", paper.SETS)
def test_published_agreement_is_in_the_page(task):
    theirs = dict(PUBLISHED["mars"]["table3"][task])
    shown = rows(task)
    for place, system in enumerate(theirs.pop("systems")):
        assert shown[system][: len(theirs)] == [values[place] for values in theirs.values()]
    for metric, values in PUBLISHED["mars"]["table4"][task].items():
        assert set(values) <= set(rows("attacks")[metric]), metric
    assert rows("ratios")[f"{task}, theirs"] == PUBLISHED["mars"]["table5"][task]["r"]
    assert rows("data")[f"{task}, theirs"][2:] == PUBLISHED["mars"]["table2"][task]


def test_other_published_tables_are_in_the_page():
    for name in ("mars.table1", "mars.table7", "bleurt.wmt17", "references.wmt19"):
        source, key = name.split(".")
        published = PUBLISHED[source][key]["rows"]
        assert {row: values for row, values in rows(name).items() if row in published} == published
    theirs = PUBLISHED["ls_score"]["newsroom"]
    shown = rows("aspects")
    for place, aspect in enumerate(paper_measures.ASPECTS):
        assert shown[f"{aspect}: theirs"][: len(theirs)] == [values[place] for values in theirs.values()]


def test_measuring(tiny_mini, tmp_path):
    """By random models: what is kept of a set and of the example has all that the page asks for."""
    rows = [
        {
            "id": f"{group}-{system}",
            "group": str(group),
            "system": system,
            "human": (group + place) % 5,
            "context": f"Story {group} begins at the harbour. It rains. Nobody has an umbrella.",
            "references": [f"The {group} sailors stay on board until the evening."],
            "candidate": f"They {system} on a ship number {group} until {'the' if place else 'their'} evening.",
        }
        for group in range(12)
        for place, system in enumerate(("slept", "played", "fished"))
    ]
    jsonl.write(tmp_path / "evouna_nq.jsonl", rows)
    target = tmp_path / "kept.json"
    paper_measures.measure(tmp_path, ["evouna_nq"], target)
    kept = json.loads(target.read_text(encoding="utf-8"))
    measured = kept["sets"]["evouna_nq"]
    assert (measured["rows"], measured["contexts"], len(measured["systems"])) == (36, 12, 3)
    assert measured["words"] == [12.0, 9.0]
    assert math.isnan(measured["r"]["length"][0])  # all candidates have as many words
    assert set(measured["attacks"]) == {"reorder", "retrieve"}
    assert measured["attacks"]["reorder"]["BLEU-1"] == [0.0, 0.0]  # which does not see the order of words
    assert measured["ratios"]["MARS"]["r"][0] == measured["r"]["reference cosine"][0]
    assert measured["ratios"]["MARS"]["r"][3] == measured["r"]["MARS"][0]
    assert list(kept["example"]["texts"]["rows"]) == ["20%", "40%", "60%"]
    assert kept["example"]["words"]["columns"][0] == "She"
