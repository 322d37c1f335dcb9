"""What a sentence states: the form in which an NLI model reads it, and what a premise says word for word."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_score.language import PipelineMissingError, Tagger
from mars_score.text import normalise, plain_words
from mars_score.variants.judgements.statements import (
    Kind,
    is_fragment,
    marks_of,
    plain,
    statement,
    statements_of,
    states,
)
from research.entailment import surface
from research.entailment.surface import LEARNED, MEASURED

FACT = "It rained in May."
# Texts that state FACT.
SAME = [
    "It rained in May",
    "it rained in May.",
    "It rained in May!!",
    "It rained in May\u2026",
    "It rained in May\uff0e",
    "It rained in May\u3002",
    " It  rained\nin\tMay .",
    "\U0001f327\ufe0f It rained in May. \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "It rained in May. :D",
    "It rained in May :-).",
    "It rained in May. <3",
    "It rained in May.[4-6]",
    "It rained in May[^7].",
    "It rained in May.\u00b9\u00b2",
    "It rained in May (see Smith and Jones, 2019; Wu et al., 2021b).",
    "It rained in May (Smith 2020, p. 4).",
    "It rained in May [citation needed].",
    "It rained in May [Source].",
    "It rained in May (see p. 4).",
    "_It_ rained in *May*.",
    "_**It rained**_ in ***May***.",
    "It rained in `May`.",
    "<p>It rained<br/> in <b class='x'>May</b>.</p>",
    "<b>It <b>rained</b> in <i>May</i></b>.",
    "It rained <!-- in March --> in May.",
    "It rained in [May](https://example.org/may).",
    "It rained in ![May](/may.png).",
    "It rained in May. https://example.org/a?b=c",
    "It rained in May (www.example.org/a).",
    "It rained in&nbsp;May&#46;",
    "It rain\u00aded in May.",
    "- It rained in May.",
    "\u2022 It rained in May.",
    "> It rained in May.",
    "## It rained in May",
    "| It rained in May. |",
    "Answer: it rained in May.",
    "**My final summary:** it rained in May.",
    "Yes. It rained in May.",
    "Sure! It rained in May.",
    "Thank you for reaching out, it rained in May.",
    "- So, in short, note that it rained in May.",
    "Well - it rained in May.",
    "According to the text above, it rained in May.",
    "The passage states that it rained in May.",
    "\u201cIt rained in May\u201d.",
    "'It rained in May.'",
    "\u00abIt rained in May\u00bb",
    "<s>It rained in May.</s><|im_end|>",
    "It [UNK] rained <unk> in May. [SEP]",
    "It rained in May.\ufffd",
    "It rained\\xC2\\xa0in May\\xe2\\x80\\xa6",
]
# Texts whose words, numbers, signs and marks state something, or may.
STATEMENTS = {
    "No.": "No.",
    "It isn\u2019t 3.5 \u2013 it is 1,250": "It isn't 3.5 - it is 1,250.",
    "It fell to \u22125 degrees": "It fell to -5 degrees.",
    "-5 degrees were measured": "-5 degrees were measured.",
    "it is 40% of $5": "It is 40% of $5.",
    "5 of snake_case and 40 km2": "5 of snake_case and 40 km2.",
    "It covers 40 km\u00b2 and H\u2082O": "It covers 40 km\u00b2 and H\u2082O.",
    "It covers 40 km\u00b2.": "It covers 40 km\u00b2.",
    "\uff21\uff22\uff23 costs \uff15\uff10": "ABC costs 50.",
    "He said \u201cno\u201d and \u201cyes\u201d": 'He said "no" and "yes".',
    'He said "no!"': 'He said "no".',
    "It rained (in May).": "It rained (in May).",
    "It rained (in 2020) [sic].": "It rained (in 2020).",
    "He (Smith) came": "He (Smith) came.",
    "Sophie came": "Sophie came.",
    "Well known, it is": "Well known, it is.",
    "Okay": "Okay.",
    "Answer the phone": "Answer the phone.",
    "R&D &amp; sales": "R&D & sales.",
    "It rained\u2122 \u00a9 Smith": "It rained\u2122 \u00a9 Smith.",
    "\u96e8\u3002": "\u96e8.",
    "She has two sons (aged 5 and 8).": "She has two sons (aged 5 and 8).",
    "The bread costs 8p.": "The bread costs 8p.",
    "She uses Adobe XD.": "She uses Adobe XD.",
    "The bridge opened late (May 2020).": "The bridge opened late (May 2020).",
    "So little rain fell.": "So little rain fell.",
    "Nobody came but Ann.": "Nobody came but Ann.",
    "It returns [1].": "It returns [1].",
    "It is in [0, 1].": "It is in [0, 1].",
    "1. It rained.": "1. It rained.",
    "b) It rained.": "B) It rained.",
    "- [x] It rained.": "[x] It rained.",
    "~~It rained~~ It snowed.": "~~It rained~~ It snowed.",
    "The file is __init__.py": "The file is __init__.py.",
    "Press <Enter> twice.": "Press <Enter> twice.",
    "Open https://example.org/a now.": "Open https://example.org/a now.",
    "The match ended \u2705.": "The match ended \u2705.",
    "\U0001f1e9\U0001f1ea won.": "\U0001f1e9\U0001f1ea won.",
    # Questions stay questions.
    "So, is it new?": "is it new?",
    "\u65b0\u3057\u3044\uff1f": "\u65b0\u3057\u3044?",
    '**"Is it new?"**': "Is it new?",
    "Is it new? [1]": "Is it new?",
    "(Is it new?)": "(Is it new?)",
}
NOTHING = ["", "\u2026", "!", "\U0001f600 [1]", "**", "<br>", "</s>", "(https://example.org)", "-", "| |"]
# Whole sentences to the listener.
CHATTER = ["Thanks!", "You are welcome.", "I hope this helps!", "Let me know if you have more questions."]


@pytest.mark.parametrize("text", SAME)
def test_what_states_the_same(text):
    assert statement(text) == FACT
    assert states(FACT, statement(text))


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items())
def test_words_numbers_and_signs_of_a_statement_stay(text, expected):
    assert statement(text) == expected


@pytest.mark.parametrize("text", NOTHING + CHATTER)
def test_some_texts_state_nothing(text):
    assert plain_words(statement(text)) == []
    assert statements_of(text) == ()


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("It rained in May [1].", "It rained in May."),
        ("It rained in May (Smith 2020).", "It rained in May."),
        ("\U0001f327\ufe0f It rained in May.", "It rained in May."),
        ("It rained in May. www.example.org", "It rained in May."),
        ("It rained in March (see p. 4).", "It rained in March."),
        ("It rained in March\u00b2.", "It rained in March."),
        ("It rained in May :).", "It rained in May."),
    ],
)
def test_marks_that_a_premise_has_too_stay(text, without):
    """What both are about may be the mark itself; a text without marks has no kind of them."""
    assert marks_of(without) == frozenset()
    [kind] = marks_of(text)
    assert plain(text) == statement(text) == without
    assert plain(text, frozenset([kind])) == text
    assert statement(text, frozenset(["other"])) == without


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes, **it** rained&#33; [1]\n\n- \U0001f600 late.", "Yes, it rained! [1] - \U0001f600 late."),
        ("<p>A <i>b</i></p>\u00a0c\u2014d \u201ce\u201d", 'A b c-d "e"'),
        ("See https://example.org/a. It rained (Smith 2020).", "See https://example.org/a. It rained."),
        ("\uff21 , b \uff01", "A, b!"),
        ("a_b _c_ __d__ ***e***", "a_b c __d__ e"),
        ("2 < 3 and 5 > 4, a<b", "2 < 3 and 5 > 4, a<b"),
        ("a caf\\xc3\\xa9, \\X41", "a caf\u00e9, \\X41"),
        ("in\\xa0May 10\\xb0", "in May 10\u00b0"),
        ("", ""),
    ],
)
def test_a_premise_keeps_its_words_and_sentences(text, expected):
    """Without markup, and marks where they cannot be content."""
    assert plain(text) == expected


def test_numbers_are_not_made_others():
    words = plain_words(plain("It took 2\u00bd hours, has 10\u2076 cells, and 2*3 is 2**3."))
    assert not {"21", "212", "106", "23"} & {*words}


@pytest.mark.parametrize(
    ("premise", "said", "expected"),
    [
        (f"It was late. {FACT} He left.", FACT, True),
        (f"{FACT.lower()} He left.", FACT, True),
        ("It rained  in\nMay", FACT, True),
        ("It rained in 'May'.", "It rained in \u2018May\u2019", True),
        (f"Yes, {FACT.lower()} He left.", FACT, False),
        ("It rained in May!", FACT, False),
        ("It rained in May. He left.", "It rained in May. He left.", True),
        ("It rained in May; he left.", FACT, False),
        (FACT, "It rained.", False),
        ("It fell to -5 degrees.", "It fell to 5 degrees.", False),
        ("It cost \u20ac5.", "It cost $5.", False),
        ("The road, which is new, is wet.", "The road which is new is wet.", False),
        ("The dose is .5 mg.", "The dose is 5 mg.", False),
        ("It is \u2265 5.", "It is \u2264 5.", False),
        ("It is written in C#.", "It is written in C.", False),
        ("\u2714 Windows", "\u2718 Windows", False),
        ("Copy <source> to <target>.", "Copy <target> to <source>.", False),
        ("More than > 50%.", "More than 50%.", False),
        ("Is it late?", "It is late.", False),
        ("The letter said \u201cit is late\u201d.", "It is late.", False),
    ],
)
def test_a_premise_states_its_sentences_word_for_word(premise, said, expected):
    """Up to case, white space, quotation marks and the last full stop, no more."""
    assert states(premise, said) is expected


WORDS = st.sampled_from(["rain", "It", "no", "5", "-5", "3.5", "km\u00b2", "a_b", "Mr.", "10%", "\u96e8", "so"])
MARKS = '{} {} **{}** _{}_ `{}` "{}" \u2018{}\u2019 ({}) <b>{}</b> {}[1] {}</s> {}&amp;'
MARKED = st.sampled_from(MARKS.split())
OTHERS = ["Yes,", "- ", "1. ", "Answer:", "[1]", "(Smith 2020)", "\U0001f600", "<unk>", "\u2014", ":)", "\u2026"]
PARTS = st.builds(lambda first, second, word: first.format(second.format(word)), MARKED, MARKED, WORDS)
ENDS = st.sampled_from([".", "!", "?", "\u2026", "?!", "\u3002", "", '?"', ".)", "*", "|", ","])
TEXTS = st.builds(
    lambda parts, mark, end: mark.format(" ".join(parts) + end),
    st.lists(PARTS | st.sampled_from(OTHERS), min_size=1, max_size=6),
    MARKED,
    ENDS,
)


@settings(max_examples=15, deadline=None)
@given(TEXTS | st.text(max_size=20))
def test_a_text_states_its_own_sentences(text):
    """Word for word, whatever its surface is."""
    assert all(states(text, one.sentence) for one in statements_of(text))


KINDS = {
    Kind.STATEMENT: [
        "Two years have passed.",
        "The text is short.",
        "Nobody knows the answer.",
        "No dogs are allowed in the hall.",
        "The report mentions no storm.",
        "I cannot swim.",
        "Heavy rain in the whole of the south of May",  # long, such as a headline
        '"Is it late?" he asked.',
    ],
    Kind.QUESTION: ["So, is it late?!", "(Who came?)", "It rained? [1]", "**Is it?**", "\u65b0\u3057\u3044\uff1f"],
    Kind.REFUSAL: [
        "The text does not mention how long it took.",
        "The passages don't say who won.",
        "Unfortunately, the article provides no information on this.",
        "There is no information about the price.",
        "This is not mentioned in the text.",
        "I cannot answer that from the context.",
        "I don't know.",
        "It cannot be determined.",
    ],
    Kind.FRAGMENT: ["Two years.", "No.", "Deposit: two months' rent", "In the park", "40 km\u00b2", "Anna Rossi"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_kinds_of_sentences(kind, text):
    assert [one.kind for one in statements_of(text)] == [kind]


def test_sentences_have_their_numbers_and_are_without_markup():
    found = statements_of("Thanks! **It** rained [1].\n- Yes, it was <b>late</b>.\nWhy?")
    assert [(one.number, one.sentence, one.text) for one in found] == [
        (2, "It rained [1].", "It rained."),
        (3, "- Yes, it was late.", "It was late."),
    ]


@pytest.mark.parametrize(
    ("candidate", "sentences"),
    [
        ("Thanks! Bye.", ["Bye."]),  # where no sentence has more
        ("It rains.\n[1]\n\U0001f600", ["It rains."]),
        ("Sure, rain. Rain falls.", ["Rain falls."]),  # one word is left
        ("No, rain. Rain falls.", ["No, rain.", "Rain falls."]),
        ("\u96e8\u3002\u4e0b\u96e8\u3002", ["\u4e0b\u96e8\u3002"]),  # each sign is a word
        ("<s>It rains.</s>", ["It rains."]),
    ],
)
def test_one_word_beside_sentences_of_more_states_nothing(candidate, sentences):
    assert [one.sentence for one in statements_of(candidate)] == sentences


def test_without_a_pipeline_nothing_is_a_fragment(monkeypatch):
    def missing(self, texts):
        raise PipelineMissingError

    monkeypatch.setattr(Tagger, "tag", missing)
    assert not is_fragment("Two years.")


RUNS = ["a", "a ", "1. ", "[1]", "**", "_a", "<b>", "</b>", "(", "http://a ", "\u00b2", "\U0001f600", "so, ", "? "]
RUNS += ["\\xc3", "(Smith 2020", "Smith, ", "&amp;", "`", "text ", ":)", "- ", '"', "the answer "]


@pytest.mark.parametrize("run", RUNS)
def test_long_loops_are_read(run):
    text = run * (100_000 // len(run))
    assert len(statements_of(text)) <= len(text)
    assert len(statement(text)) <= len(text)


SENTENCES = [
    "The mayor did not open the two new bridges, and the shops were closed.",
    "In March, the council's letter was signed by 1,250 people - 40 percent of the town.",
    "She waited for the train; it is quick and cheap.",
    "Was the road closed in 2019?",
    "He can't find the book.",
]
# Changes that put words to a sentence which say something, or may; those that write words in another way; and
# those some of whose marks are taken for words.
ADDING = {"I think", "heading", "hashtag", "doubled word", "phrase behind", "phrase in front"}
ADDING |= {"discourse word", "so in front"}
REWRITING = {"short forms", "figures", "per cent", "entity", "no commas"}
# Marks that may be content in some places stay there; the least share of sentences that are equal without them.
PARTLY = {"citation": 0.7, "citation behind": 0.7, "bold word": 0.7, "emoji in front": 0.8, "list mark": 0.6}
PARTLY |= {
    "quotation marks": 0.9,
    "spaces": 0.8,
    "footnote": 0.2,
    "dash": 0.6,
    "brackets": 0,
    "citation within": 0,
}


@pytest.mark.parametrize("name", sorted({*MEASURED} - {"misspelt"}))  # which spelling.py reads, by the premise
def test_a_changed_surface_changes_no_statement(name):
    """A sentence is stated word for word, or has all its words and perhaps those that were put to it."""
    stated = []
    for seed, sentence in enumerate(SENTENCES * 20):
        text = normalise(MEASURED[name](sentence, random.Random(seed)))
        judged = [one.text for one in statements_of(text)]
        stated.append(any(states(plain(sentence), part) for part in judged))
        if not stated[-1]:
            rest = iter(plain_words(" ".join(judged)))
            expected = plain(text) if name in REWRITING else sentence
            assert all(word in rest for word in plain_words(expected)), text
            assert name not in REWRITING or not list(rest)
    least = 0 if name in ADDING | REWRITING else PARTLY.get(name, 1)
    assert sum(stated) / len(stated) >= least


def test_one_of_the_learned_changes_is_made(monkeypatch):
    assert LEARNED.items() <= MEASURED.items()
    monkeypatch.setattr(surface, "LEARNED", {end: lambda text, rng, end=end: text + end for end in "abc"})
    rng = random.Random(0)
    assert {surface.changed("x", rng) for _ in range(50)} == {"xa", "xb", "xc"}
