"""What the Space tells of findings, and how it names candidates; with tiny models and without a browser."""

import re
from dataclasses import replace
from functools import cache

import pytest

from mars_score.rows import Aspects, Verdict
from space.answer import Answerer, names_of
from space.pages import headline, ranking_page
from space.questions import Question

pytestmark = pytest.mark.usefixtures("tiny_space")

FIRST, SECOND, THIRD = "The <pan> has 25 litres.", "The pan has water.", "Nothing."
LACKING = Verdict(FIRST, None, "", "context", ("25 litres",), absent=("25 litres",))
DENIED = Verdict(FIRST, None, "It has <2> litres.", "context", ("25 litres",))
NOTHING = {"contradicted": (), "unsupported": ()}
NAMED = "<b>\u201cThe &lt;pan&gt; has 25 litres\u201d</b>"
MARK = '<b class="mars-mark mars-{}">{}</b>'


@cache
def plain(references):
    return Answerer().answer(Question("A pan.", references, (FIRST, SECOND, THIRD), task="summary"))


def answered(found, references=("It has 2 litres.",), near=0.9):
    """An answer whose candidates score less and less, with what is found in each."""
    answer = plain(references)
    rows = [
        replace(row, score=1.0 - index, aspects=Aspects(reference=near), **NOTHING | found.get(index, {}))
        for index, row in enumerate(answer.plus.row_scores)
    ]
    scores = answer.scores | {"MARS plus": [row.score for row in rows]}
    return replace(answer, plus=replace(answer.plus, row_scores=tuple(rows)), scores=scores)


@pytest.mark.parametrize(
    ("near", "has"),
    [(0.9, "is close to the reference"), (0.3, "has the highest score"), (None, "has the highest score")],
)
def test_the_headline_begins_with_what_was_found_in_the_first(near, has):
    text = headline(answered({0: {"unsupported": (LACKING,)}}, near=near))
    mark = MARK.format("unsupported", "Unsupported")
    assert text.startswith(f"{NAMED} {mark} {has}, but 25 litres is not in the context. MARS plus puts it first")
    assert text.endswith(". Of those without findings <b>\u201cThe pan has water\u201d</b> is first.")


def test_the_headline_escapes_the_premise_and_counts_the_findings():
    text = headline(answered({0: {"contradicted": (DENIED, replace(DENIED, sentence="b", number=2))}}))
    told = "contradicts the context &quot;It has &lt;2&gt; litres.&quot; (25 litres)"
    assert f"but {told} (and 1 more). MARS plus" in text


def test_without_references_and_sound_candidates():
    found = {index: {"unsupported": (LACKING,)} for index in range(3)}
    text = headline(answered(found, references=(), near=None))
    assert text.endswith("but 25 litres is not in the context. MARS plus puts it first, by the context.")


def test_a_single_candidate_is_told_what_was_found():
    scored = answered({0: {"unsupported": (LACKING,)}})
    alone = replace(scored, plus=replace(scored.plus, row_scores=scored.plus.row_scores[:1]))
    told = f"{NAMED} {MARK.format('unsupported', 'Unsupported')}: 25 litres is not in the context."
    assert (
        headline(replace(alone, scores={"MARS plus": [1.0]})) == f"{told} One candidate. Add more to compare them."
    )


def test_that_marked_candidates_keep_their_places_is_said_where_there_are_some():
    said = "Cards are sorted by MARS plus, marked ones too."
    assert said in ranking_page(answered({0: {"unsupported": (LACKING,)}}))
    assert said not in ranking_page(answered({}))


def test_findings_of_other_candidates_leave_the_headline_as_it_is():
    text = headline(answered({1: {"unsupported": (replace(LACKING, sentence=SECOND),)}}))
    assert text.startswith(f"MARS plus puts {NAMED} first")


@pytest.mark.parametrize(
    ("label", "verdict", "kind", "said"),
    [
        (
            "contradicted",
            DENIED,
            "mars-denied",
            "contradicts the context &quot;It has &lt;2&gt; litres.&quot; (25",
        ),
        ("unsupported", LACKING, "mars-doubted", "25 litres is not in the context</span>"),
    ],
)
def test_a_closed_card_tells_what_was_found_with_the_words_marked(label, verdict, kind, said):
    page = ranking_page(answered({1: {}, 0: {label: (verdict,)}}))
    closed, *others = re.findall(r"<summary>(.*?)</summary>", page)
    assert "The &lt;pan&gt; has <mark>25 litres</mark>." in closed
    assert f'{MARK.format(label, label.capitalize())}<span class="mars-said">{said}' in closed
    opened = page.partition("</summary>")[2]
    assert opened.index(f"<b>{label}</b>") < opened.index("mars-terms")
    assert page.count(kind) == 1
    assert not any("mars-mark" in other or "<mark>" in other for other in others)


def test_a_card_counts_more_findings_than_fit():
    many = tuple(replace(LACKING, number=number) for number in range(1, 6))
    closed = re.findall(r"<summary>(.*?)</summary>", ranking_page(answered({0: {"unsupported": many}})))[0]
    assert closed.count("mars-accusation") == 3
    assert '<span class="mars-said">and 3 more</span>' in closed


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a b", "c d e f g h"], ["a b", "c d e f g \u2026"]),
        (["Add half a litre of water.", "Add half a litre of milk."], ["Add half … water", "Add half … milk"]),
        (["a b c d e so f, g", "a b c d e more f, g"], ["a b … so f, g", "a b … more f, g"]),
        (["a b c d e f", "a b c d e f g"], ["a b \u2026 f", "a b \u2026 f g"]),
        (["a b c d e f 1", "a b c d e f 12"], ["a b \u2026 1", "a b \u2026 12"]),
        (["a", "a"], ["a", "a"]),
    ],
)
def test_candidates_that_begin_alike_are_told_apart(texts, names):
    found = [name.partition("\u201d")[0].strip("\u201c") for name in names_of(texts)]
    assert found == names
    assert len(set(names_of(texts))) == len(texts)


@pytest.mark.parametrize("text", ["\u732b" * 80, "a" * 80, "b c " * 40])
def test_long_runs_have_different_names_too(text):
    names = names_of([text, f"{text}1", f"{text}2", text])
    assert len(set(names)) == 4
    assert [name.endswith(")") for name in names] == [True, False, False, True]  # numbers of equal ones alone
    assert max(map(len, names)) < 90
