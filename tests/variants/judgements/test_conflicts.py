"""Numbers and negations in which a sentence contradicts a premise with the same, or most of the same, words."""

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
    # The words of a bound are none of the other words.
    ("Bags may weigh at most 8 kg.", "Bags must weigh more than 8 kg.", "Bags must not weigh more than 8 kg."),
    ("Bags may weigh at most 8 kg.", "Bags may weigh 9 kg or more.", "Bags may weigh up to 8 kg."),
    ("Only guests over 18 may enter.", "Only guests under 18 may enter.", "Only guests older than 18 may enter."),
]


# A premise, a sentence with one negation more or less, and one that says the same or leaves it open.
NEGATED = [
    ("The office opens at nine.", "The office does not open at nine.", "The office opens at nine."),
    ("She agreed with the plan.", "She didn't agree with the plan.", "She did agree with the plan."),
    ("The apps are not working.", "The apps are working.", "The apps aren't working."),
    ("They cannot swim.", "They can swim.", "They can\u2019t swim."),
    ("He will come back.", "He won't come back.", "He will not stay away."),
    ("The bridge is still closed.", "The bridge is no longer closed.", "The bridge is closed."),
    ("The phone has no jack.", "The phone has a jack.", "The phone never has any jack."),
    ("The phone has a jack.", "The phone has no jack.", "The phone has the jack."),
    ("No, the pool is closed.", "The pool is not closed.", "The pool is closed."),
    ("The committee agrees with him.", "The committee disagrees with him.", "The committee agreed with him."),
    ("The committee does not agree.", "The committee agrees.", "The committee disagrees."),
    ("It is impossible to pay by card.", "It is possible to pay by card.", "It is not possible to pay by card."),
    ("Take bus no. 5 to the lake.", "Do not take bus no. 5 to the lake.", "Take bus 5 to the lake."),
    ("Ann has not paid the rent.", "Ann has paid the rent.", "Ann has yet to pay the rent."),
]


@pytest.mark.parametrize(("premise", "wrong", "right"), [*SAME_WORDS, *NEGATED])
def test_another_number_at_its_place_or_one_negation_more_or_less_is_a_conflict(premise, wrong, right):
    conflict = find_conflict(wrong, ["It was in May.", premise])
    assert conflict
    assert conflict.premise == premise
    assert conflict.words in wrong
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


@pytest.mark.parametrize(
    ("premise", "sentence"),
    [
        ("Some guests are late.", "Some guests are not late."),
        ("Many people did not vote.", "Many people voted."),
        ("A lot of people walk.", "A lot of people do not walk."),
        ("It may rain.", "It may not rain."),
        ("If he comes, we leave.", "If he does not come, we leave."),
        ("He asks whether it is open.", "He asks whether or not it is open."),
        ("All of them are not here.", "All of them are here."),
        ("They not only sang.", "They only sang."),
        ("The train is late. The train is not late, he said.", "The train is late."),
        ("The shop is not open on Monday.", "The shop is open on Sunday."),
        ("He doesnt like it.", "He doesn't like it."),
        ("The hall is not large.", "The hall is now large."),
        ("Dr. No arrives.", "Dr. Noah arrives."),
        ("No.", "Not."),
        ("There is no proof that it is safe.", "There is no proof that it is not safe."),
        ("There is no proof that it is safe.", "There is no proof that it is unsafe."),
        ("It is not impossible to pay.", "It is possible to pay."),
        ("The shop is not open? I thought so.", "The shop is open."),
        ("His help is valuable.", "His help is invaluable."),
        ("He is happy and she is unhappy.", "He is unhappy and she is happy."),
    ],
)
def test_negations_that_leave_both_sentences_possible_are_none(premise, sentence):
    assert find_conflict(sentence, [premise]) is None


@pytest.mark.parametrize(
    ("premise", "sentence", "words"),
    [
        ("The young boy isn't climbing a wall.", "A young boy is climbing the wall.", "is"),
        ("The office opens at nine.", "The office does not open at nine.", "does not open"),
        ("The apps are not working.", "The apps are working.", "are working"),
        ("The committee agrees.", "A committee disagrees.", "disagrees"),
        ("There were no injuries.", "There were injuries.", "were injuries"),
        ("They can swim.", "They, too, cannot swim.", None),
    ],
)
def test_a_conflict_has_the_words_beside_a_negation(premise, sentence, words):
    conflict = find_conflict(sentence, [premise])
    assert (conflict and conflict.words) == words
