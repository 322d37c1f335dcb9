"""Numbers that differ from those of a premise in a sentence with the same, or nearly the same, other words."""

import pytest

from mars_score.variants.judgements.conflicts import find_conflict

# A premise, a sentence with another number at the same place, and one that says the same or leaves it open.
SAME_WORDS = [
    ("The city grew to 8.1 billion tokens.", "The city grew to 8.1 million tokens.", "8.1bn"),
    ("The war lasted from 1939 to 1945.", "The war lasted from 1939 to 1949.", "1939-45"),
    ("Call 555-0134 for a table.", "Call 555-0143 for a table.", "Call (555) 0134 for a table."),
    ("Call 0134 555 for a table.", "Call 0143 555 for a table.", "Call +49 134555 for a table."),
    ("Agent 007 is late.", "Agent 008 is late.", "Agent 7 is late."),
    ("Version 2.0 is out.", "Version 3.0 is out.", "Version 2 is out."),
    ("Take bus 12 to the harbour.", "Take bus 21 to the harbour.", "Take bus 12 to the harbour."),
    ("The key is in room B12.", "The key is in room B21.", "The key is in room B12."),
    ("The code is 4711.", "The code is 4117.", "The code is 4711."),
    ("Six were hurt in the fire.", "Seven were hurt in the fire.", "6 were hurt in the fire."),
    ("Twenty-four of them look out on the sea.", "Fourteen of them look out on the sea.", "24 of them look out"),
    ("The result was 0.95.", "The result was 0.59.", "The result was .95."),
    ("It grew to 8,123,456.", "It grew to 9,123,456.", "It grew to 8.1 million."),
    ("Chapter 7 is about birds.", "Chapter 9 is about birds.", "Chapter seven is about birds."),
]


@pytest.mark.parametrize(("premise", "wrong", "right"), SAME_WORDS)
def test_another_number_at_the_same_place_is_a_conflict(premise, wrong, right):
    conflict = find_conflict(wrong, [premise])
    assert conflict
    assert conflict.premise == premise
    assert find_conflict(right, [premise]) is None


@pytest.mark.parametrize(
    "sentence",
    [
        "Team A scored 3 goals.",  # Another sentence has it.
        "Team B scored 4 goals.",
        "The publ1shed report names 4.",
        "GPT-4 is named.",
        "They sold 7, 5 and 3.",
        "It weighs 8.1 kg.",  # rounded
    ],
)
def test_numbers_that_the_premises_have_or_that_stand_elsewhere_are_none(sentence):
    premises = [
        "Team A scored 5 goals. Team A scored 3 goals. The published report names 4. GPT-3 was named.",
        "They sold 3, 5 and 7.",
        "It weighs 5 kg. It weighs 8.13 kg.",
    ]
    assert find_conflict(sentence, premises) is None


def test_a_conflict_has_the_number_as_it_is_written():
    assert find_conflict("Call (555) 0143 for a table.", ["Call 555-0134 for a table."]).words == "555) 0143"
    assert find_conflict("The key is in room B21.", ["The key is in room B12."]).words == "B21"


def test_numbers_alone_are_compared_only_with_words_around_them():
    assert find_conflict("12", ["13"]) is None
