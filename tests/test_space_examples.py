"""The examples of the Space are ranked as they say, by the models that it offers."""

from dataclasses import replace
from pathlib import Path

import pytest

from space.answer import Answerer
from space.questions import CHOICES, read_examples

EXAMPLES = Path(__file__).parent.parent / "examples" / "space.json"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
@pytest.mark.parametrize("preset", CHOICES)
def test_no_example_is_ranked_wrongly_without_a_word(presets_as_they_are, store_with_mini, preset):
    """The one that says so is ranked wrongly indeed."""
    for example in read_examples(EXAMPLES):
        scored = Answerer().answer(replace(example.question, preset=preset))
        assert example.is_right(scored.plus.scores) != example.fails, example.title
