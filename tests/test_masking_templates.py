"""Templates: mask ratios, the auto rule, priorities, and what holds for every template."""

import itertools
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_score.augment.masking.analysis import Analysis, Word, WordAnalyser
from mars_score.augment.masking.context import context_carrying
from mars_score.augment.masking.idf import Idf
from mars_score.augment.masking.template import Template
from mars_score.augment.masking.templates import (
    make_templates,
    mask_ratios,
    word_priorities,
)
from mars_score.settings import MaskingSettings, resolve_settings

DEFAULT = MaskingSettings()
TAGS = ["ADJ", "ADV", "NOUN", "PROPN", "VERB", "PUNCT", "X", "PRON"]


def analysis_of(text, tags=None):
    """Words are runs without whitespace, except that a closing full stop is a word of its own."""
    spans = [match.span() for match in re.finditer(r"[^\s.]+|\.", text)]
    tags = tags or ["X"] * len(spans)
    words = [Word(text[start:end], start, end, tag) for (start, end), tag in zip(spans, tags, strict=True)]
    return Analysis(text, tuple(words))


def idf_of(*analyses):
    return Idf.count({found.text: found.lower_words for found in analyses})


def masked_words(found, template):
    """Indices of the words inside blanks."""
    return [
        index
        for index, word in enumerate(found.words)
        if any(start <= word.start and word.end <= end for start, end in template.blanks)
    ]


@st.composite
def analyses(draw):
    """Texts with odd whitespace and words, some touching, any tags."""
    word = st.sampled_from(["a", "the", "Cat", "sat", "😀", "שלום", "n't", "\x00", "x" * 40, "é", "\u200d"])
    gap = st.sampled_from(["", " ", " ", " ", "  ", "\n", "\t \n", "\u00a0", "\u3000"])
    text, words = draw(gap), []
    for part in draw(st.lists(word, max_size=25)):
        words.append(Word(part, len(text), len(text) + len(part), draw(st.sampled_from(TAGS))))
        text += part + draw(gap)
    return Analysis(text, tuple(words))


@given(
    analyses(),
    st.lists(st.sampled_from(["a", "the", "cat", "sat", "😀", "dog"]), max_size=30),
    st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    st.sampled_from([0.05, 0.2, 0.3]),
)
@settings(max_examples=100, deadline=None)
def test_what_holds_for_every_template(found, context, max_ratio, step):
    chosen = MaskingSettings(max_mask_ratio=max_ratio, mask_ratio_step=step)
    idf = idf_of(found, analysis_of("the dog sat ."))
    made = make_templates(found, context, idf, chosen)
    count = len(found.words)
    assert [ratio for ratio, _ in made] == list(mask_ratios(max_ratio, step))
    assert made == make_templates(found, context, idf, chosen)
    carrying = context_carrying(found.lower_words, context)
    value = word_priorities(found, idf, chosen)
    worth = []
    for ratio, template in made:
        pieces = template.pieces
        assert template.reference == "".join(piece.text for piece in pieces) == found.text
        assert template.fill([piece.text for piece in pieces if piece.blank]) == found.text
        assert all(not (left.blank and right.blank) for left, right in itertools.pairwise(pieces))
        # A blank owns the whitespace before it and ends with its last word; so do text blocks inside.
        assert all(not piece.text[-1].isspace() for piece in pieces[:-1])
        assert sum(piece.blank for piece in pieces) == len(template.blanks)
        masked = masked_words(found, template)
        cost = sum(10 if index in carrying else 1 for index in masked)
        assert cost <= round(ratio * count, 6)
        assert len(masked) <= cost
        worth.append(sum(value[index] for index in masked))
        # No word that is left would still fit into the budget.
        spare = math.floor(round(ratio * count, 6)) - cost
        assert all((10 if index in carrying else 1) > spare for index in set(range(count)) - set(masked))
    assert worth == sorted(worth)


@given(analyses(), st.data())
def test_any_mask_makes_a_sound_template(found, data):
    indices = st.integers(0, len(found.words) - 1) if found.words else st.nothing()
    mask = data.draw(st.sets(indices))
    template = Template.from_mask(found, mask)
    assert masked_words(found, template) == sorted(mask)
    blanks = template.blanks
    for (_, end), (start, _) in itertools.pairwise(blanks):
        assert found.text[end:start].strip(), "two blanks touch"
    # Words are replaced, whitespace before the blank belongs to it, everything else stays.
    runs = sum(index - 1 not in mask for index in mask)
    assert len(blanks) == runs
    kept = "".join(piece.text for piece in template.pieces if not piece.blank)
    assert template.fill([""] * runs) == kept
    if mask == set(range(len(found.words))) and mask:
        assert not kept.strip()


def test_a_template_as_a_person_reads_it():
    found = analysis_of("She said to herself, her car is fixed.")
    template = Template.from_mask(found, [1, 2, 3, 8])
    assert template.blanks == ((3, 20), (37, 38))
    assert str(template) == "She ____ her car is fixed____"
    assert template.fill([" waits:", "!"]) == "She waits: her car is fixed!"
    assert template.fill([" waits:"]) == "She waits: her car is fixed."


def test_priorities_by_hand():
    found = analysis_of("the big cat ran fast .", ["DET", "ADJ", "NOUN", "VERB", "ADV", "PUNCT"])
    idf = idf_of(found, analysis_of("the dog ."))  # M = 2; "the" and "." occur in both
    rare, common = 1e6 / math.log(3), 1e6 / math.log(2)
    expected = [common, 4 * rare, 2 * rare, rare, 3 * rare, 0.1 * common]
    assert word_priorities(found, idf, DEFAULT) == [round(value) for value in expected]
    assert word_priorities(found, idf, MaskingSettings(pos_weights={}))[-1] == round(common)


def test_words_are_masked_by_priority():
    found = analysis_of("the big cat ran fast", ["DET", "ADJ", "NOUN", "VERB", "ADV"])
    made = make_templates(found, [], idf_of(found), DEFAULT)
    assert [(ratio, masked_words(found, template)) for ratio, template in made] == [
        (0.2, [1]),
        (0.4, [1, 4]),
        (0.6, [1, 2, 4]),
    ]


def test_context_carrying_words_cost_more():
    found = analysis_of("a b c d e f g h i j", ["ADJ", "X", "X", "ADJ", *["X"] * 6])
    made = make_templates(found, ["z", "a"], idf_of(found), MaskingSettings(max_mask_ratio=1))
    # At 1.0 the budget of 10 pays either for "a" (worth 4) or for the nine others (worth 12).
    assert masked_words(found, made[0][1]) == [1, 3]
    assert masked_words(found, made[-1][1]) == list(range(1, 10))


@pytest.mark.parametrize("text", ["Yes", ".", "😀", ""])
def test_one_word_and_none(text):
    found = analysis_of(text)
    made = make_templates(found, [], idf_of(found), MaskingSettings(max_mask_ratio=0.8))
    assert made == [(ratio, Template(text, ())) for ratio in (0.2, 0.4, 0.6, 0.8)]
    ((_, full),) = make_templates(found, [], idf_of(found), MaskingSettings(max_mask_ratio=1, mask_ratio_step=1))
    assert full.blanks == (((0, len(text)),) if text else ())


def test_budgets_are_free_of_float_noise():
    # 0.7 * 10 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996: 7 and 29 words are meant.
    found = analysis_of(" ".join(map(str, range(100))))
    for ratio in (0.07, 0.29, 0.57, 0.58):
        one = MaskingSettings(max_mask_ratio=ratio, mask_ratio_step=ratio)
        ((_, template),) = make_templates(found, [], idf_of(found), one)
        assert len(masked_words(found, template)) == round(ratio * 100)


@pytest.mark.parametrize(
    ("max_ratio", "step", "ratios"),
    [
        (0.6, 0.2, (0.2, 0.4, 0.6)),
        (0.2, 0.2, (0.2,)),
        (0.19, 0.2, ()),
        (0, 0.2, ()),
        (0.5, 0.2, (0.2, 0.4)),
        (0.3, 0.1, (0.1, 0.2, 0.3)),
        (0.7, 0.1, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
        (1, 0.3, (0.3, 0.6, 0.9)),
        (1, 1, (1.0,)),
        (1.0, 0.05, tuple(number / 20 for number in range(1, 21))),
        (1, 1 / 3, (0.3333333333, 0.6666666667, 1.0)),
    ],
)
def test_mask_ratios(max_ratio, step, ratios):
    assert mask_ratios(max_ratio, step) == ratios


# The real pipeline from here on.


@pytest.fixture(scope="module")
def analyser():
    return WordAnalyser()


def real_templates(analyser, text, context="", **overrides):
    chosen = resolve_settings("mini", **{"variant": "fast", "max_mask_ratio": 0.6, **overrides}).masking
    (found,) = analyser.analyse([text])
    made = make_templates(found, analyser.words([context])[0], idf_of(found), chosen)
    return found, [template for _, template in made]


def test_punctuation_is_masked_last_in_v2_and_like_other_words_in_paper(analyser):
    text = ". . , They see us , you know !"
    _, v2 = real_templates(analyser, text)
    _, paper = real_templates(analyser, text, variant="paper")
    assert str(v2[0]) == ". . , ____ us , you know !"
    assert str(v2[1]) == ". . , ____ , ____ know !"
    # All weights are 1 in the paper's variant, so that the leftmost words go.
    assert str(paper[0]) == "____ , They see us , you know !"
    assert str(paper[1]) == "____ see us , you know !"


def test_contractions_can_be_split(analyser):
    found, templates = real_templates(analyser, "I don't like old cars.", max_mask_ratio=1.0)
    assert [word.text for word in found.words] == ["I", "do", "n't", "like", "old", "cars", "."]
    assert str(Template.from_mask(found, [2])) == "I do____ like old cars."
    assert templates[-1].blanks == ((0, len(found.text)),)


def test_context_is_compared_without_case(analyser):
    text, context = "THE CAR was red", "the car is red"
    _, with_context = real_templates(analyser, text, context)
    _, without = real_templates(analyser, text)
    assert str(with_context[-1]) == "THE CAR ____ red"
    assert with_context != without
