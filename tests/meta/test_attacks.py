"""Reorder and Retrieve: what they give, from what, and never the candidate; the ladders of research/."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_score.meta.agreement import attack, reorder, retrieve
from mars_score.rows import Row
from mars_score.scorer import MarsScorer
from research.ladders import KINDS, in_order, score_ladders, to_markdown

CONTEXT = "It rained. The dog slept. Nobody came to the door."


def make_row(candidate="the dog slept on the old sofa", context=CONTEXT):
    return Row(candidate, ("a reference",), context)


def outcomes(change, row, seeds=50):
    return {change(row, random.Random(seed)) for seed in range(seeds)}


@settings(max_examples=30)
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


def test_reorder_reaches_every_index():
    changed = outcomes(reorder, make_row("0 1 2 3 4 5 6 7"), 200)
    assert {index for text in changed for index, token in enumerate(text.split()) if token != str(index)} == set(
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
    ],
)
def test_outcomes_of_attacks(change, row, expected):
    assert outcomes(change, row) == expected


def test_attacks_count_what_they_skip_and_depend_on_the_row_alone():
    rows = [make_row("a b"), make_row("a b c d e f"), make_row(""), make_row("g h i j k l m")]
    attacked = attack("reorder", rows)
    assert (attacked.indices, attacked.skipped) == ((1, 3), 2)
    assert {(row.references, row.context) for row in attacked.rows} == {(rows[0].references, CONTEXT)}
    assert attack("reorder", rows[::-1]).rows == attacked.rows[::-1]
    assert attack("reorder", rows, seed=1).rows != attacked.rows
    with_task = [replace(row, task="dialogue", samples=("a sample",)) for row in rows]
    assert [row.candidate for row in attack("reorder", with_task).rows] == [row.candidate for row in attacked.rows]
    assert attack("retrieve", rows).indices == (0, 1, 3)  # a blank candidate is no text to attack


# The ladders of research/: their tables are reported, not asserted


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
