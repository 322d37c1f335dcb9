"""The pages of published figures: their tables are those of the kept results and of the papers."""

import json
import math
import re

import numpy as np
import pytest

from mars_score.meta.metrics import lexical
from research import paper, paper_choices, paper_measures
from tests import jsonl

PUBLISHED = json.loads(paper.PUBLISHED.read_text(encoding="utf-8"))


PAGE = "".join(path.read_text(encoding="utf-8") for path in paper.PAGES)


def lines(name):
    """The first cell of each line of a table of the pages, and the others."""
    section = PAGE.split(f"<!-- table: {name} -->\n")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()]
    return [(first, rest) for first, *rest in cells]


def number(cell):
    """The number that a cell begins with."""
    found = re.match(r"[+-]?\d+(\.\d+)?", cell)
    return float(found[0]) if found else None


def rows(name):
    """The numbers of the rows of a table by the first cell."""
    return {first: [number(cell) for cell in rest] for first, rest in lines(name)}


def columns(name):
    """The numbers of a table of the page by the names of its column and row."""
    (_, heading), *body = lines(name)
    return {column: {first: number(cells[place]) for first, cells in body} for place, column in enumerate(heading)}


def test_pages_are_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["paper"])
    paper.main()
    assert capsys.readouterr().out == PAGE


@pytest.mark.parametrize("task", paper.SETS)
def test_published_figures_are_in_the_tables(task):
    mars = PUBLISHED["mars"]
    tables = {name: columns(name) for name in ("agreement", "attacks")}
    shown = tables["agreement"][f"{task}, theirs"]
    measured = [metric for metric in paper.AGREEING if metric in mars["table3"][task]]
    assert len(measured) == 6
    for metric in measured:
        assert shown[metric] == pytest.approx(np.mean(mars["table3"][task][metric]), abs=6e-4), metric
    for metric, own in paper.ATTACKED.items():
        reorder, retrieve, _ = mars["table4"][task][metric]
        found = tables["attacks"][f"{task}, theirs"]
        assert (found[f"reorder, {own}"], found[f"retrieve, {own}"]) == (reorder, retrieve)
    assert rows("ratios")[f"{task}, theirs"] == mars["table5"][task]["r"]


def test_other_published_figures_are_in_the_page():
    for name, values in PUBLISHED["mars"]["table1"]["rows"].items():
        assert rows("table1")[name][:2] == values[-2:]
    shown = rows("aspects")
    theirs = {metric: PUBLISHED["ls_score"]["newsroom"].get(metric, [None] * 4) for metric in paper.RATED_APART}
    assert {metric: shown[metric][::2] for metric in theirs} == theirs
    assert sum(None not in values for values in theirs.values()) == 3
    text = re.sub(r"^\|.*$|\(http.*?\)", "", PAGE, flags=re.MULTILINE)
    for start, table in (
        ("**Table 7**", PUBLISHED["mars"]["table7"]),
        ("\n## BLEURT\n", PUBLISHED["bleurt"]["wmt17"]),
        ("\n## Better references\n", PUBLISHED["references"]["wmt19"]),
    ):
        figures = set(re.findall(r"\d?\.\d+", text.split(start)[1].split("\n## ")[0]))
        published = {value for values in table["rows"].values() for value in values}
        assert len(figures) >= 6
        assert {float(figure) for figure in figures} <= published, start


@pytest.fixture
def empty_wordnet(tmp_path, monkeypatch):
    """METEOR has a WordNet without words: all words are their own stems and have no synonyms."""
    folder = tmp_path / "wordnet"
    folder.mkdir()
    for pos in ("noun", "verb", "adj", "adv"):
        for name in (f"index.{pos}", f"data.{pos}"):
            (folder / name).write_text("  1 WordNet 3.0 Copyright\n")
        (folder / f"{pos}.exc").touch()
    monkeypatch.setattr(lexical, "SYSTEM_WORDNET", folder)
    monkeypatch.setattr("nltk.data.path", [])


@pytest.fixture
def rated(tmp_path):
    """The folder of a rated set, which has the name of one of the page."""
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
        for group in range(3)
        for place, system in enumerate(("slept", "played", "fished"))
    ]
    jsonl.write(tmp_path / "evouna_nq.jsonl", rows)
    return tmp_path


def test_measuring(tiny_mini, empty_wordnet, rated, monkeypatch):
    """By random models: what is kept of a set and of the example has all that the page asks for."""
    monkeypatch.setattr(paper_measures, "FEWEST", 9)
    paper_measures.measure(rated, ["evouna_nq"], rated / "kept.json")
    kept = json.loads((rated / "kept.json").read_text(encoding="utf-8"))
    measured = kept["sets"]["evouna_nq"]
    assert (measured["rows"], measured["contexts"], len(measured["systems"])) == (9, 3, 3)
    assert math.isnan(measured["r"]["length"][0])  # all candidates have as many words
    assert set(measured["attacks"]) == {"reorder", "retrieve"}
    assert measured["attacks"]["reorder"]["BLEU-1"] == [0.0, 0.0]  # which does not see the order of words
    ratios = measured["ratios"]["MARS"]["r"]
    assert (ratios[0], ratios[3]) == (measured["r"]["reference cosine"][0], measured["r"]["MARS"][0])
    assert kept["example"]["candidates"]["columns"][-4:] == ["cosine, 20%", "cosine, 40%", "cosine, 60%", "MARS"]
    assert list(kept["table1"]["rows"]) == list(PUBLISHED["mars"]["table1"]["rows"])


def test_measuring_choices(tiny_mini, rated, monkeypatch):
    """By random models: each choice changes what it is about, and nothing before it."""
    monkeypatch.setitem(paper_choices.MEASURED, "evouna_nq", 2)
    monkeypatch.setattr(paper_choices, "PLANNED_CONTEXTS", 1)
    (rated / "kept.json").write_text("{}")
    paper_choices.measure(rated, ["evouna_nq"], rated / "kept.json")
    found = json.loads((rated / "kept.json").read_text(encoding="utf-8"))["choices"]["evouna_nq"]
    assert found["rows"] == 6
    assert found["masks"].keys() > paper_choices.MASKING.keys()
    changed = {name: one["infills"] for name, one in found["infills"].items()}
    assert changed.keys() == paper_choices.CHOICES.keys() | paper_choices.PLANNED.keys()
    assert changed["q = .5"] == changed["q = 1"] == 0
    for name in ("sampled at xi", "any token", "sigma = 0", "planner"):
        assert 0 < changed[name] <= 1, name
