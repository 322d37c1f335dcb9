"""The pages of published figures: their tables are those of the kept results and of the papers."""

import json
import math
import re

import pytest

from mars_score.meta.metrics import lexical
from research import paper, paper_choices, paper_measures
from tests import jsonl
from tests.meta.metrics.wordnet import write_wordnet

PUBLISHED = json.loads(paper.PUBLISHED.read_text(encoding="utf-8"))
PAGE = "".join(path.read_text(encoding="utf-8") for path in paper.PAGES)


def test_pages_are_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["paper"])
    paper.main()
    assert capsys.readouterr().out == PAGE


@pytest.mark.parametrize(
    ("start", "table"),
    [
        ("**Table 7**", PUBLISHED["mars"]["table7"]),
        ("\n## BLEURT\n", PUBLISHED["bleurt"]["wmt17"]),
        ("\n## Better references\n", PUBLISHED["references"]["wmt19"]),
    ],
)
def test_figures_outside_tables_were_published(start, table):
    text = re.sub(r"^\|.*$|\(http.*?\)", "", PAGE, flags=re.MULTILINE)
    figures = set(re.findall(r"\d?\.\d+", text.split(start)[1].split("\n## ")[0]))
    assert len(figures) >= 6
    assert {float(figure) for figure in figures} <= {
        value for values in table["rows"].values() for value in values
    }


@pytest.fixture
def wordnet(tmp_path, monkeypatch):
    """METEOR has a small WordNet."""
    monkeypatch.setattr(lexical, "SYSTEM_WORDNET", write_wordnet(tmp_path / "wordnet"))
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
            "references": [f"The {group} sailors stay until the evening."],
            "candidate": f"They {system} on a ship number {group} until {'the' if place else 'their'} evening.",
        }
        for group in range(2)
        for place, system in enumerate(("slept", "played", "fished"))
    ]
    jsonl.write(tmp_path / "evouna_nq.jsonl", rows)
    return tmp_path


@pytest.mark.slow
def test_measuring(tiny_mini, wordnet, rated, monkeypatch):
    """By random models: what is kept of a set and of the example has all that the page asks for."""
    monkeypatch.setattr(paper_measures, "FEWEST", 6)
    quick = {"MARS": "plan_iterations=1", "MARS w/o context": "use_context=false,plan_iterations=1"}
    monkeypatch.setattr(paper_measures, "ABLATIONS", paper_measures.ABLATIONS | quick)
    stories = [{**story, "references": ["They left."]} for story in jsonl.read(paper_measures.STORIES)[:2]]
    monkeypatch.setattr(paper_measures, "STORIES", jsonl.write(rated / "stories.jsonl", stories))
    paper_measures.measure(rated, ["evouna_nq"], rated / "kept.json")
    kept = json.loads((rated / "kept.json").read_text(encoding="utf-8"))
    measured = kept["sets"]["evouna_nq"]
    assert (measured["rows"], measured["contexts"], len(measured["systems"])) == (6, 2, 3)
    assert math.isnan(measured["r"]["length"][0])  # all candidates have as many words
    assert set(measured["attacks"]) == {"reorder", "retrieve"}
    assert measured["attacks"]["reorder"]["BLEU-1"] == [0.0, 0.0]  # which does not see the order of words
    ratios = measured["ratios"]["MARS"]["r"]
    assert (ratios[0], ratios[3]) == (measured["r"]["reference cosine"][0], measured["r"]["MARS"][0])
    assert kept["example"]["candidates"]["columns"][-4:] == ["cosine, 20%", "cosine, 40%", "cosine, 60%", "MARS"]
    assert list(kept["table1"]["rows"]) == list(PUBLISHED["mars"]["table1"]["rows"])


@pytest.mark.slow
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
