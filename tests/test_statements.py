"""What a sentence states: the form in which an NLI model reads it, and what a premise says word for word."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mars_score.text import normalise, plain_words
from mars_score.variants.judgements.statements import judged_sentences, plain, statement, states
from research.entailment import surface
from research.entailment.surface import LEARNED, MEASURED

FACT = "It rained in May."
# Texts that state FACT.
SAME = {
    "no mark": "It rained in May",
    "lower case": "it rained in May.",
    "exclamation marks": "It rained in May!!",
    "ellipsis": "It rained in May ...",
    "one sign": "It rained in May\u2026",
    "full-width signs": "It rained in May\uff0e",
    "Chinese full stop": "It rained in May\u3002",
    "white space": " It  rained\nin\tMay .",
    "emoji": "\U0001f327\ufe0f It rained \U0001f44d\U0001f3fd in May. \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "flag": "\U0001f1e9\U0001f1ea It rained in May.",
    "keycap": "It rained in May. \u2705\u20e3",
    "emoticons": ":-) It rained in May. <3 :D",
    "number": "It rained in May [1].",
    "numbers": "It rained[2, 3] in May.[4-6]",
    "footnote": "It rained in May[^7].",
    "superscript": "It rained in May.\u00b9\u00b2",
    "author": "It rained in May (Smith 2020).",
    "authors": "It rained (see Smith and Jones, 2019; Wu et al., 2021b) in May.",
    "pages": "It rained in May (Smith 2020, p. 4).",
    "needed": "It rained in May [citation needed].",
    "source": "It rained in May [Source].",
    "page": "It rained in May (see p. 4).",
    "bold": "**It rained** in __May__.",
    "italic": "_It_ rained in *May*.",
    "code": "It rained in `May`.",
    "struck": "~~It rained in May.~~",
    "footnote mark": "It rained in May.*",
    "tags": "<p>It rained<br/> in <b class='x'>May</b>.</p>",
    "comment": "It rained <!-- a < b --> in May.",
    "link": "It rained in [May](https://example.org/may).",
    "image": "It rained in ![May](/may.png).",
    "address": "It rained in May. https://example.org/a?b=c",
    "address in brackets": "It rained in May (www.example.org/a).",
    "entity": "It rained in&nbsp;May&#46;",
    "soft hyphen": "It rain\u00aded in May.",
    "dash in front": "- It rained in May.",
    "bullet": "\u2022 It rained in May.",
    "numbered": "1. It rained in May.",
    "lettered": "(b) It rained in May.",
    "box": "- [x] It rained in May.",
    "quotation of a mail": "> It rained in May.",
    "heading": "## It rained in May",
    "cell": "| It rained in May. |",
    "label": "Answer: it rained in May.",
    "longer label": "**My final summary:** it rained in May.",
    "yes": "Yes, it rained in May.",
    "yes as a sentence": "Yes. It rained in May.",
    "sure": "Sure! It rained in May.",
    "so": "So it rained in May.",
    "several": "- So, in short, note that it rained in May.",
    "dash behind": "Well - it rained in May.",
    "according to": "According to the text above, it rained in May.",
    "the text says": "The passage states that it rained in May.",
    "quotation marks": '"It rained in May."',
    "curly ones": "\u201cIt rained in May\u201d.",
    "single ones": "'It rained in May.'",
    "angle ones": "\u00abIt rained in May\u00bb",
    "special tokens": "<s>It rained in May.</s><|im_end|>",
    "unknown tokens": "It [UNK] rained <unk> in May. [SEP]",
    "replacement": "It rained in May.\ufffd",
    "escaped bytes": "It rained\\xC2\\xa0in May\\xe2\\x80\\xa6",
}
# Texts whose words, numbers and signs state something.
STATEMENTS = {
    "No, it did not rain.": "No, it did not rain.",
    "No.": "No.",
    "Not so.": "Not so.",
    "It isn\u2019t 3.5 \u2013 it is 1,250": "It isn't 3.5 - it is 1,250.",
    "It fell to -5 degrees!": "It fell to -5 degrees.",
    "It fell to \u22125 degrees": "It fell to -5 degrees.",
    "-5 degrees were measured": "-5 degrees were measured.",
    "it is 40% of $5": "It is 40% of $5.",
    "5 of snake_case and 40 km2": "5 of snake_case and 40 km2.",
    "It covers 40 km\u00b2 and H\u2082O": "It covers 40 km2 and H2O.",
    "\uff21\uff22\uff23 costs \uff15\uff10": "ABC costs 50.",
    "He said \u201cno\u201d and \u201cyes\u201d": 'He said "no" and "yes".',
    'He said "no!"': 'He said "no".',
    "It rained (in May).": "It rained (in May).",
    "It rained (in 2020) [sic].": "It rained (in 2020).",
    "He (Smith) came": "He (Smith) came.",
    "Sophie came": "Sophie came.",
    "Well known, it is": "Well known, it is.",
    "Okay": "Okay.",
    "Thanks!": "Thanks.",
    "Answer the phone": "Answer the phone.",
    "R&D &amp; sales": "R&D & sales.",
    "It rained\u2122 \u00a9 Smith": "It rainedTM \u00a9 Smith.",
    "\u96e8\u3002": "\u96e8.",
    "Es regnet fu\u0308nfmal": "Es regnet f\u00fcnfmal.",
    "She has two sons (aged 5 and 8).": "She has two sons (aged 5 and 8).",
    "The bread costs 8p.": "The bread costs 8p.",
    "The share was <3.": "The share was <3.",
    "The bridge opened late (May 2020).": "The bridge opened late (May 2020).",
    "So far nobody came.": "So far nobody came.",
    "Nobody came but Ann.": "Nobody came but Ann.",
}
QUESTIONS = {
    "Is it new?": "Is it new?",
    "So, is it new?": "is it new?",
    "\u65b0\u3057\u3044\uff1f": "\u65b0\u3057\u3044?",
    '"Is it new?"': "Is it new?",
    "**Is it new?**": "Is it new?",
    "Is it new? [1]": "Is it new?",
    "(Is it new?)": "(Is it new?)",
}
NOTHING = ["", "\u2026", "!", "\U0001f600 [1]", "**", "<br>", "</s>", "(https://example.org)", "-", "| |"]


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_states_the_same(text):
    assert statement(text) == FACT
    assert states(FACT, statement(text))
    assert states(plain(text), FACT)


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items())
def test_what_stays(text, expected):
    assert statement(text) == expected


@pytest.mark.parametrize(("text", "expected"), QUESTIONS.items())
def test_questions_stay_questions(text, expected):
    assert statement(text) == expected


@pytest.mark.parametrize("text", NOTHING)
def test_some_texts_state_nothing(text):
    assert plain_words(statement(text)) == []
    assert judged_sentences(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes, **it** rained&#33; [1]\n\n- So it is \U0001f600 late.", "Yes, it rained! - So it is late."),
        ("<p>A <i>b</i></p>\u00a0c\u2014d \u201ce\u201d", 'A b c-d "e"'),
        ("See https://example.org/a. It rained (Smith 2020).", "See. It rained."),
        ("\uff21 , b \uff01", "A, b!"),
        ("a_b _c_ __d__ ***e***", "a_b c d e"),
        ("2 < 3 and 5 > 4, a<b", "2 < 3 and 5 > 4, a<b"),
        ("a caf\\xc3\\xa9, \\X41", "a caf\u00e9, \\X41"),
        ("in\\xa0May 10\\xb0", "in May 10\u00b0"),
        ("", ""),
    ],
)
def test_a_premise_keeps_its_words_and_sentences(text, expected):
    """Without markup, citations, addresses, emoji and typographic signs."""
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("It took 2\u00bd hours.", "21"),
        ("It has 10\u2076 cells.", "106"),
        ("2*3 is 6.", "23"),
        ("2**3 is 8.", "23"),
    ],
)
def test_numbers_are_not_made_others(text, other):
    assert other not in plain_words(plain(text))


@pytest.mark.parametrize(
    ("premise", "said", "expected"),
    [
        (FACT, FACT, True),
        (f"It was late. {FACT} He left.", FACT, True),
        (f"Yes, {FACT.lower()} He left.", FACT, True),
        ("It rained in May. He left.", "It rained in May. He left.", True),
        ("It rained in May; he left.", FACT, False),
        ("It never rained in May.", FACT, False),
        ("It rained.", FACT, False),
        (FACT, "It rained.", False),
        ("No, it rained in May.", FACT, False),
        ("It fell to -5 degrees.", "It fell to 5 degrees.", False),
        ("It rose by 5%.", "It rose by 5.", False),
        ("It cost \u20ac5.", "It cost $5.", False),
        ("It weighs 3.5 kg.", "It weighs 35 kg.", False),
        ("It is A+.", "It is A.", False),
        ("The road, which is new, is wet.", "The road which is new is wet.", True),
        ("Is it late?", "It is late.", False),
        ("The letter said \u201cit is late\u201d.", "It is late.", False),
    ],
)
def test_a_premise_states_its_sentences_word_for_word(premise, said, expected):
    assert states(plain(premise), statement(said)) is expected


WORDS = st.sampled_from(
    ["rain", "It", "no", "not", "5", "-5", "3.5", "km\u00b2", "a_b", "Mr.", "10%", "\u96e8", "so"]
)
MARKED = st.sampled_from(
    [
        "{}",
        "{}",
        "**{}**",
        "_{}_",
        "`{}`",
        '"{}"',
        "\u2018{}\u2019",
        "({})",
        "<b>{}</b>",
        "{}[1]",
        "{}</s>",
        "{}&amp;",
    ]
)
OTHERS = [
    "Yes,",
    "So,",
    "- ",
    "1. ",
    "Answer:",
    "[1]",
    "(Smith 2020)",
    "\U0001f600",
    "<unk>",
    "\u2014",
    ":)",
    "\u2026",
]
PARTS = st.builds(lambda first, second, word: first.format(second.format(word)), MARKED, MARKED, WORDS)
ENDS = st.sampled_from([".", "!", "?", "\u2026", "?!", "\u3002", "", '?"', ".)", "*", "|", ","])
TEXTS = st.builds(
    lambda parts, mark, end: mark.format(" ".join(parts) + end),
    st.lists(PARTS | st.sampled_from(OTHERS), min_size=1, max_size=6),
    MARKED,
    ENDS,
)


@given(TEXTS | st.text(max_size=20))
@example("_**rain**_")
@example("So, \U0001f600")
@example("**:)**")
@example("&amp;lt;b&amp;gt;")
@example("Yes, **5**.")
@example("_\U0001f600*_")
def test_what_is_plain_or_a_statement_stays_so(text):
    assert plain(plain(text)) == plain(text)
    assert statement(statement(text)) == statement(text)
    assert statement(plain(text)) == statement(text)


@given(TEXTS)
def test_a_sentence_states_itself(text):
    """Word for word, whatever its surface is."""
    assert states(plain(text), statement(text))


SENTENCES = [
    "The mayor did not open the two new bridges, and the shops were closed.",
    "In March, the council's letter was signed by 1,250 people - 40 percent of the town.",
    "She waited for the train; it is quick and cheap.",
    "Was the road closed in 2019?",
    "He can't find the book.",
]
# Changes that put words to a sentence which say something, or may; those that write words in another way; and
# those some of whose marks are taken for words.
ADDING = {"I think", "heading", "hashtag", "doubled word", "phrase behind", "phrase in front", "discourse word"}
ADDING |= {"so in front"}
REWRITING = {"short forms", "figures", "per cent", "entity", "no commas"}
PARTLY = {"citation", "citation behind", "citation within", "bold word"}


@pytest.mark.parametrize("name", MEASURED)
def test_a_changed_surface_changes_no_statement(name):
    """A sentence is stated word for word, or has all its words and perhaps those that were put to it."""
    stated = []
    for seed, sentence in enumerate(SENTENCES * 20):
        text = normalise(MEASURED[name](sentence, random.Random(seed)))
        judged = [statement(part) for part in judged_sentences(text)]
        stated.append(any(states(plain(sentence), part) for part in judged))
        if not stated[-1]:
            rest = iter(plain_words(" ".join(judged)))
            expected = plain(text) if name in REWRITING else sentence
            assert all(word in rest for word in plain_words(expected)), text
            assert name not in REWRITING or not list(rest)
    least = 0 if name in ADDING | REWRITING else 0.7 if name in PARTLY else 1
    assert sum(stated) / len(stated) >= least


def test_one_of_the_learned_changes_is_made(monkeypatch):
    assert LEARNED.items() <= MEASURED.items()
    monkeypatch.setattr(surface, "LEARNED", {end: lambda text, rng, end=end: text + end for end in "abc"})
    rng = random.Random(0)
    assert {surface.changed("x", rng) for _ in range(50)} == {"xa", "xb", "xc"}
