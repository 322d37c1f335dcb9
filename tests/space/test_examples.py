"""The examples of the Space are ranked and marked as they say, by the models that it offers."""

from dataclasses import replace
from functools import cache

import pytest

from space.answer import Answerer
from space.questions import CHOICES, read_examples
from tests import ROOT

EXAMPLES = {example.title: example for example in read_examples(ROOT / "examples" / "space.json")}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning"),
    pytest.mark.usefixtures("presets_as_they_are", "store_with_mini"),
    pytest.mark.parametrize("preset", CHOICES),
]


@cache
def answered(title, preset):
    return Answerer().answer(replace(EXAMPLES[title].question, preset=preset))


def contradicted(scored):
    rows = zip(scored.question.candidates, scored.plus.row_scores, strict=True)
    return [text for text, row in rows if row.contradicted]


def test_no_example_is_ranked_wrongly_without_a_word(preset):
    """The one that says so is ranked wrongly indeed."""
    for title, example in EXAMPLES.items():
        assert example.is_right(answered(title, preset).plus.scores) != example.fails, title


def test_what_is_marked_is_what_the_hints_say(preset):
    marked = {
        "A contradiction": ["The council rejected"],
        "A wrong number": ["A fire in the Kelmouth"],
        "Passages": ["Simmer a cup of brown rice in two and a half cups of water for 25 minutes."],
    }
    if preset == "medium":
        marked["No reference"] = ["The builders refuse"]
    for title in EXAMPLES:
        found, expected = contradicted(answered(title, preset)), marked.get(title, [])
        assert len(found) == len(expected), title
        assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_the_contradiction_costs_half_of_the_score(preset):
    row = answered("A contradiction", preset).plus.row_scores[0]
    [lost] = [term.value * term.weight for term in row.terms if term.name == "contradiction"]
    assert lost == pytest.approx(-row.score)


def test_what_the_passages_do_not_have_is_marked(preset):
    found = answered("Passages", preset).findings
    assert [len(findings) for findings in found] == [1, 0, 1]
    assert "25" in " ".join(found[0][0].words)
    assert "30" in " ".join(found[2][0].words)


def test_the_wrong_number_in_a_summary(preset):
    """Both presets mark it, and put the right text first."""
    example = EXAMPLES["A wrong number"]
    scored = Answerer().answer(replace(example.question, preset=preset, task="summary"))
    assert len(contradicted(scored)) == 1
    assert scored.plus.scores.index(max(scored.plus.scores)) == example.ranks.index(1)
