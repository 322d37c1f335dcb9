"""Which words of a hypothesis an NLI model learns as wrong, and the forms of texts that it learns from."""

import random
from collections import Counter
from pathlib import Path

import pytest

from mars_score.text import plain_words
from mars_score.variants.judgements.statements import statement
from research.entailment import form_groups
from research.entailment.form_groups import context_of, is_kept, lines_of, read_forms
from research.entailment.form_groups import form_groups as groups_of
from research.entailment.marks import MARK, marked, unmarked, with_marks, wrong_spans
from research.entailment.pairs import NOT_CONTRADICTION, NOT_ENTAILMENT, Group, Passages, read_rows, with_surfaces

FORMS = Path(form_groups.__file__).parent / "forms"
RIGHT = "The mayor opened the new bridge on Monday."


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("The mayor closed the new bridge on Monday.", ["closed"]),
        ("The Mayor opened the new bridge on Tuesday!", ["Tuesday!"]),
        ("The mayor never opened the new bridge on Monday.", ["never"]),
        ("The mayor opened the bridge on Monday.", []),  # It only leaves a word out.
        ("the mayor opened, the new bridge on monday", []),
        ("On Monday nobody was there to see whether the new bridge had been opened at all.", []),  # worded anew
    ],
)
def test_wrong_are_the_words_that_the_twin_does_not_have_in_their_place(text, wrong):
    found = marked(text, RIGHT)
    assert unmarked(found) == text
    assert [unmarked(text)[start:end] for start, end in wrong_spans(found)] == wrong


def test_marks_stay_with_their_words_when_the_surface_changes():
    text = marked("The mayor closed the new bridge on Monday.", RIGHT)
    for seed in range(60):
        [group] = with_surfaces([Group(RIGHT, (text,), ("contradiction",))], random.Random(seed))
        for changed in (group.hypotheses[0], statement(group.hypotheses[0])):
            assert changed.count(MARK) == 1
            [(start, end)] = wrong_spans(changed)
            assert len(set("closed") - set(unmarked(changed)[start:end].lower())) <= 1  # It may be misspelt.


def test_a_group_marks_by_the_twin_or_else_by_the_nearest_that_follows():
    texts = (
        RIGHT,
        "The mayor opened an old school on Friday.",
        "The mayor opened the new bridge on Sunday.",  # twin of the first by name
        "The mayor opened an old school on Sunday.",  # nearer to the second
        "The mayor opened the new bridge on Monday with his wife.",
        "Nobody knows why.",
        "The mayor opened the old bridge on Monday.",
    )
    labels = (*2 * ["entailment"], *2 * ["contradiction"], "neutral", NOT_ENTAILMENT, NOT_CONTRADICTION)
    found = with_marks(Group("premise", texts, labels, ((0, 2),)))
    assert list(map(unmarked, found.hypotheses)) == list(texts)
    words = [[unmarked(text)[slice(*span)] for span in wrong_spans(text)] for text in found.hypotheses]
    assert words == [[], [], ["Sunday."], ["Sunday."], ["with", "his", "wife."], [], []]
    assert set(found.twins) == {(0, 2), (1, 3)}


def test_lines_of_a_table_are_those_below_its_heading():
    table = "| Item | Detail |\n|---|:-:|\n| Fee | 39 |\n\n| Date | 1 May |"
    assert lines_of(table) == ["| Fee | 39 |", "| Date | 1 May |"]
    assert lines_of("- a\n\n- b") == ["- a", "- b"]


# What is written for the project


@pytest.fixture(scope="module")
def rows():
    return [row for path in sorted(FORMS.glob("*.jsonl")) for row in read_rows(path)]


def test_each_group_is_kept_or_learned(rows):
    kept, learned = (read_forms([FORMS], kept=kept) for kept in (True, False))
    assert sorted(row["id"] for row in (*kept, *learned)) == sorted({row["id"] for row in rows})
    assert all(map(is_kept, kept))
    assert 0.05 < len(kept) / len(rows) < 0.15


def test_labels_of_the_forms(rows):
    """Statements stand by their context with their label, and wrong words of contradicted ones are found often."""
    labels, marked_labels = Counter(), Counter()
    for group in map(with_marks, groups_of(rows[::8], Passages({}), random.Random(0))):
        assert len(group.hypotheses) == len(group.labels) > 1
        for text, label in zip(group.hypotheses, group.labels, strict=True):
            labels[label] += 1
            marked_labels[label] += MARK in text
    assert marked_labels["entailment"] == 0
    assert marked_labels["contradiction"] > labels["contradiction"] / 2
    assert labels["entailment"] > 0.4 * labels.total()


def test_harmless_words_are_as_frequent_as_wrong_ones(rows):
    words = [row for row in rows if row["form"] == "words"]
    harmless, errors = (sum(len(row[key]) for row in words) for key in ("harmless", "errors"))
    assert harmless >= errors > 300
    for row in words:
        for one in (*row["harmless"], *row["errors"]):
            assert one["text"] == row["statement"].replace(one["was"], one["is"], 1), row["id"]


def test_no_word_tells_the_label(rows):
    """Negations and shared words are about as frequent in statements that follow as in others."""
    negations = {"not", "no", "never", "none", "nobody", "without", "neither", "nor"}
    counts, negated, shared = Counter(), Counter(), Counter()
    for row in rows:
        if row["form"] not in ("bindings", "limits"):
            continue
        source = set(plain_words(context_of(row)))
        for key in ("supported", "contradicted"):
            for text in row[key]:
                said = plain_words(text)
                counts[key] += 1
                negated[key] += bool(negations & set(said))
                shared[key] += len(source & set(said)) / len(set(said))
    shares = {key: (negated[key] / counts[key], shared[key] / counts[key]) for key in counts}
    assert abs(shares["supported"][0] - shares["contradicted"][0]) < 0.05
    assert abs(shares["supported"][1] - shares["contradicted"][1]) < 0.05


def test_marks_are_no_letters_of_texts(rows):
    assert not any(MARK in value for row in rows for value in map(str, row.values()))
