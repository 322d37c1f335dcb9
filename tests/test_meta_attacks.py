"""Reorder, Retrieve and the other changes of a candidate: what they give, from what, and never the candidate."""

import json
import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_score.data.attacks import CHANGES, attack, change_number, changes, copy, negate, reorder, retrieve
from mars_score.data.validation import Row
from mars_score.scorer import MarsScorer
from research.ladders import FLAWED, KINDS, LADDERS, in_order, score_ladders, to_markdown

CONTEXT = "It rained. The dog slept. Nobody came to the door."


def make_row(candidate="the dog slept on the old sofa", context=CONTEXT):
    return Row(candidate, ("a reference",), context)


def outcomes(change, row, seeds=50):
    return {change(row, random.Random(seed)) for seed in range(seeds)}


@given(st.lists(st.sampled_from(["a", "b", "c", "dog"]), min_size=4, max_size=12), st.integers(0, 1000))
def test_reorder_moves_at_most_half_of_the_tokens(tokens, seed):
    changed = reorder(make_row(" ".join(tokens)), random.Random(seed))
    if len(set(tokens)) == 1:
        assert changed is None
        return
    moved = changed.split()
    assert Counter(moved) == Counter(tokens)
    assert moved != tokens
    assert sum(old != new for old, new in zip(tokens, moved, strict=True)) <= max(2, round(len(tokens) / 2))


def test_reorder_reaches_every_place():
    changed = outcomes(reorder, make_row("0 1 2 3 4 5 6 7"), 200)
    assert {place for text in changed for place, token in enumerate(text.split()) if token != str(place)} == set(
        range(8)
    )


@pytest.mark.parametrize(
    ("change", "row", "expected"),
    [
        *((reorder, make_row(candidate), {None}) for candidate in ("", "one two three", "no no no no no")),
        (retrieve, make_row(), {"It rained.", "The dog slept.", "Nobody came to the door."}),
        (retrieve, make_row("the  dog slept."), {"It rained.", "Nobody came to the door."}),
        (retrieve, make_row(context="hi\nhow are you\nfine"), {"hi", "how are you", "fine"}),
        (retrieve, make_row(context=""), {None}),
        (retrieve, make_row(context="It rained. The dog slept."), {None}),
        (retrieve, make_row("Yes.", "Yes. Yes. Yes."), {None}),
        (copy, make_row(context="It rained."), {"It rained."}),
        (copy, make_row("it  rained.", "It rained."), {None}),
        (change_number, make_row("Someone often phoned."), {None}),
    ],
)
def test_what_may_come_out(change, row, expected):
    assert outcomes(change, row) == expected


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("The bus is late.", "The bus is not late."),
        ("The bus is not late.", "The bus is late."),
        ("She will never win!", "She will win!"),
        ("He isn't here.", "He is here."),
        ("I can't and won't go.", "I can and won't go."),
        ("We cannot wait.", "We can wait."),
        ("It's raining.", "It's not raining."),
        ("Jane's car broke down, as it was old.", "Jane's car broke down, as it was old, which is not true."),
        ("She knew that he was ill", "She knew that he was ill, which is not true."),
        ("That is good. How are you?", "That is not good. How are you?"),
        ("How are you? We may come.", "How are you? We may not come."),
        ("May I? May was cold.", "May I? May was not cold."),
        ("How are you?", None),
        (" ", None),
    ],
)
def test_negate(text, opposite):
    assert negate(make_row(text), random.Random(0)) == opposite


@given(st.integers(0, 10**6), st.integers(0, 1000))
def test_change_number_changes_one_number(number, seed):
    changed = change_number(make_row(f"On day {number} at nine."), random.Random(seed))
    digits = re.fullmatch(r"On day (\d+) at nine\.", changed)[1]
    assert digits != str(number)
    assert len(digits) == len(str(number))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("At 9:15 or 8:00.", r"At 9:1[1-46-9] or 8:00\."),
        ("Two of the ten.", r"(Three|Four|Five|Six|Seven|Eight|Nine|Ten|Eleven|Twelve) of the ten\."),
        ("A stone has 1,000 g.", r"A stone has 1,00[1-9] g\."),
    ],
)
def test_change_number(text, pattern):
    assert all(re.fullmatch(pattern, changed) for changed in outcomes(change_number, make_row(text)))


def test_attacks_count_what_they_skip_and_depend_on_the_row_alone():
    rows = [make_row("a b"), make_row("a b c d e f"), make_row(""), make_row("g h i j k l m")]
    attacked = attack("reorder", rows)
    assert (attacked.indices, attacked.skipped) == ((1, 3), 2)
    assert [row[1:] for row in attacked.rows] == [rows[1][1:], rows[3][1:]]
    assert attack("reorder", rows[::-1]).rows == attacked.rows[::-1]
    assert attack("reorder", rows, seed=1).rows != attacked.rows
    assert attack("retrieve", rows).indices == (0, 1, 3)  # a blank candidate is no text to attack


# The ladders of research/: their tables are reported, not asserted


def test_changes_are_kinds_of_the_ladders():
    assert set(CHANGES) <= set(FLAWED)
    ladder = json.loads(LADDERS.read_text(encoding="utf-8").splitlines()[0])
    changed = changes(Row(ladder["reference"], (ladder["reference"],), ladder["context"]))
    assert changed["negated"] == ladder["negated"]
    assert Counter(changed["shuffled"].split()) == Counter(ladder["reference"].split())
    assert changed["copied"] in ladder["context"]


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
@pytest.mark.parametrize("variant", ["fast", "paper"])
def test_the_reference_is_above_a_text_off_topic(variant, record_property):
    scores = score_ladders(MarsScorer("mini", variant=variant))
    record_property("table", to_markdown({variant: scores}))
    assert len(scores) == 10
    assert in_order(scores, "reference", "off_topic") == 1.0


def test_shares_and_means_of_ladders():
    ladder = {kind: 1.0 - place / 10 for place, kind in enumerate(KINDS)}
    scores = [ladder, {**ladder, "paraphrase": 0.3}]
    assert in_order(scores, "reference", "paraphrase") == 1.0
    assert in_order(scores, "paraphrase", "negated") == 0.5
    text = to_markdown({"fast": scores, "paper": [ladder]})
    assert "| paraphrase | 0.600 | 0.900 |" in text
    assert "| paraphrase > negated | 50% | 100% |" in text
