"""What is masked: words and tags, IDF, the words that carry the context, the knapsack, and templates."""

import functools
import itertools
import json
import math
import pickle
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mars_score.data.cleaning import prepare_row, strip_urls_hashtags
from mars_score.errors import Notice
from mars_score.language import Tagger, pipeline_name
from mars_score.metrics.paper import (
    CONTEXT_COST,
    Idf,
    PaperConfig,
    TaggedWord,
    knapsack,
    make_templates,
    mask_ratios,
    mask_words,
    shared_with_context,
)
from mars_score.rows import Example, Row
from mars_score.scorer import MarsScorer
from mars_score.settings import resolve_settings
from tests import oracle_forms

# Words and tags, by the real pipeline


@pytest.fixture(scope="module")
def tagger():
    return Tagger()


def words_of(text, words):
    return [text[word.start : word.end] for word in words]


ODD_TEXTS = [
    "I don't know; it's O'Brien's.",
    "one\n\n two\tthree \u00a0 four\u2028five\u3000six",
    "emoji 👍🏽 and family 👨\u200d👩\u200d👧!",
    "שלום עולם, مرحبا بالعالم",
    "nul \x00 bell \x07 unit \x1f end",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",  # Chinese with fullwidth punctuation
    "cafe\u0301 İstanbul straße",
    "  outer  whitespace  ",
    "",
    " \n\t ",
]


def test_only_whitespace_lies_outside_the_words(tagger):
    tagged = tagger.tag(ODD_TEXTS)
    for text, words in tagged.items():
        ends = [0, *(word.end for word in words)]
        starts = [*(word.start for word in words), len(text)]
        assert not "".join(text[end:start] for end, start in zip(ends, starts, strict=True)).strip()
        for word in words_of(text, words):
            assert word
            assert not any(character.isspace() for character in word)
    assert tagged.keys() == set(ODD_TEXTS)
    lower = {text: tuple(word.lower() for word in words_of(text, words)) for text, words in tagged.items()}
    assert tagger.words(ODD_TEXTS) == lower


def test_tags_depend_on_their_text_alone(tagger):
    texts = [f"The {word} dog barks." for word in ("small", "big", "very", "well", "light", "record", "can")]
    texts += ["A much longer text " * number for number in range(1, 90, 11)]
    together = tagger.tag(texts)
    assert [tagger.tag([text])[text] for text in texts] == [*together.values()]
    assert pickle.loads(pickle.dumps(tagger)).words(["Don't!"]) == {"Don't!": ("do", "n't", "!")}
    (words,) = tagger.tag(["The small dog barks very loudly in London."]).values()
    assert " ".join(word.pos for word in words) == "DET ADJ NOUN VERB ADV ADV ADP PROPN PUNCT"


@pytest.mark.parametrize("run", ["!" * 100_000, "x." * 50_000, "😀" * 500_000])
def test_a_very_long_run_is_one_word(tagger, run):
    """spaCy would take minutes; and no text is too long."""
    ((text, words),) = tagger.tag([f"so {run} it is"]).items()
    assert words_of(text, words) == ["so", run, "it", "is"]
    assert [len(words) for words in tagger.words(["!" * 1000, "!" * 1001]).values()] == [1000, 1]


def test_each_different_text_is_split_once(tagger):
    assert list(tagger.tag(["a", "b", "a"])) == list(tagger.words(["a", "b", "a"])) == ["a", "b"]
    first, second = tagger.words(["the Cat", "a cat"]).values()
    assert first[1] is second[1]


def test_the_official_pipeline_comes_first_and_is_not_imported_for_its_name(monkeypatch, tmp_path):
    official = tmp_path / "en_core_web_sm"
    official.mkdir()
    (official / "__init__.py").write_text("raise AssertionError('imported')")
    (official / "meta.json").write_text(json.dumps({"version": "9.9.9"}))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert pipeline_name("en") == "en_core_web_sm-9.9.9"


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("So true.", "So true."),
        ("See http://t.co/Ab1 now", "See now"),
        ("https://a.org HTTPS://example.com/a?b=c#d, Hello\nworld http://b.org", ", Hello\nworld"),
        ("#MARS is #red , #really!", "is ,!"),
        ("Love #café #日本 \uff03tag ok", "Love ok"),
        ("a  b   c", "a  b   c"),  # the text's own spaces stay
        ("We are #1, C# fans & don&#39;t mind", "We are #1, C# fans & don&#39;t mind"),
        ("mail a@b.org or awww.such #", "mail a@b.org or awww.such #"),
        ("#so #true!", ""),
        ("\u05e9\u05dc\u05d5\u05dd #\u05ea\u05d2", "\u05e9\u05dc\u05d5\u05dd"),
    ],
)
def test_urls_and_hashtags(text, prepared):
    assert strip_urls_hashtags(text) == prepared


@pytest.mark.parametrize(
    ("candidate", "reference", "prepared"),
    [
        ("Use #red.", "Use #blue.", ("Use.", "Use.")),
        ("#red", "Use #blue.", ("#red", "Use.")),  # else the candidate would be empty
        ("https://b.org", "Read https://a.org today.", ("https://b.org", "Read today.")),
        ("Use it #now.", "#blue", ("Use it.", "#blue")),
        ("", "Use #blue.", ("", "Use.")),
    ],
)
def test_urls_and_hashtags_go_from_each_text_that_has_other_words(candidate, reference, prepared):
    row, notices = prepare_row(Row(candidate, (reference,)), clean=False, strip_urls=True, use_context=False)
    assert (row.candidate, *row.references) == prepared
    assert (Notice.URLS_REMOVED in notices) == (prepared != (candidate, reference))
    kept, _ = prepare_row(Row(candidate, (reference,)), clean=False, strip_urls=False, use_context=False)
    assert kept.references == (reference,)
    # References are augmented as they are scored, whatever the candidate is.
    [[augmented]] = MarsScorer("mini", variant="paper", max_mask_ratio=0).augment_rows([Example((reference,))])
    assert (augmented.reference,) == row.references


@pytest.mark.parametrize("unit", [" ", "#", "www.", "#1", "http://", "\uff03!", "."])
def test_hostile_text_is_prepared_in_linear_time(unit):
    """Backtracking in the square of the length would take minutes."""
    text = "a" + unit * 50_000 + "b"
    rest_is_url = unit in ("www.", "http://")
    assert strip_urls_hashtags(text) == ("a" + unit if rest_is_url else text)


# What a word is worth and what it costs


def test_texts_for_idf_are_given_or_in_a_file(tmp_path):
    texts = "one text", "\u05e9 two\u2028still two"
    path = tmp_path / "corpus.txt"
    path.write_text(f"\ufeff{texts[0]}\r\n\n  {texts[1]}\n", encoding="utf-8")
    for corpus in (texts, list(texts), path, str(path)):
        assert resolve_settings("mini", "paper", idf_corpus=corpus).config.idf_corpus == texts


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("none.txt", None, "No such file"),
        ("blank.txt", b" \n\n", "one or more strings"),
        ("latin.txt", b"caf\xe9", "UTF-8"),
        ("rows.jsonl", b'{"references": ["a"]}', "not a table"),
    ],
)
def test_files_for_idf_that_are_refused(tmp_path, name, content, fault):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"idf_corpus .*{fault}.*{name}"):
        resolve_settings("mini", "paper", idf_corpus=path)


def test_idf_by_hand():
    texts = [("the", "cat", "."), ("the", "dog", ",", "the", "dog"), ("the", "no", "."), ("the", "cat")]
    idf = Idf.count(texts)
    assert idf.documents == 4
    assert idf["cat"] == idf["."] == pytest.approx(math.log(2))  # -log(2 / 4)
    assert idf["dog"] == idf["no"] == pytest.approx(math.log(4))  # twice in one text counts once
    # Where the paper's formula is 0 or infinite: half a text less, or more.
    assert idf["the"] == pytest.approx(math.log(4 / 3.5))
    assert idf["unseen"] == pytest.approx(math.log(8))
    alone = Idf.count([("one", "text")])
    assert alone["one"] == alone["text"] == alone["unseen"] == Idf.count([])["word"] == pytest.approx(math.log(2))


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), min_size=2, max_size=12), st.data())
@settings(max_examples=40, deadline=None)
def test_masks_are_those_of_the_papers_formula_where_it_is_defined(documents, data):
    """By the formula itself: the guard counts for words of all texts, or of none, alone."""
    idf, count = Idf.count(documents), len(documents)
    frequencies = {letter: sum(letter in document for document in documents) for letter in "abcdefgh"}
    defined = [letter for letter, number in frequencies.items() if 0 < number < count]
    letters = data.draw(st.lists(st.sampled_from(defined), min_size=1, max_size=9)) if defined else []
    tags = data.draw(st.lists(st.sampled_from(TAGS), min_size=9, max_size=9))
    text, words = tagged(" ".join(letters), tags[: len(letters)])
    shared = shared_with_context(letters, ["a", "b"])
    costs = [CONTEXT_COST if index in shared else 1 for index in range(len(letters))]
    priorities = [
        round(DEFAULT.pos_weights.get(word.pos, 1) / -math.log(frequencies[letter] / count) * 1e6)
        for word, letter in zip(words, letters, strict=True)
    ]
    templates = make_templates(text, words, ["a", "b"], idf, DEFAULT)
    for tenths, (_, template) in zip((2, 4, 6), templates, strict=True):
        budget = max(1, tenths * len(letters) // 10)
        assert tuple(masked_words(words, template)) == oracle_forms.masked(priorities, costs, budget)


@pytest.mark.parametrize(("count", "masked"), [(1, [1, 1, 1]), (4, [1, 1, 2]), (5, [1, 2, 3])])
def test_a_reference_of_few_words_has_one_word_masked_at_least(count, masked):
    text, words = tagged(" ".join("abcde"[:count]))
    templates = make_templates(text, words, [], idf_of((text, words)), DEFAULT)
    assert [len(masked_words(words, one)) for _, one in templates] == masked


WORDS = st.lists(st.sampled_from(["the", "a", "cat", "sat", ".", "n't", "x", "-1", "😀"]), max_size=14)


@functools.cache
def textbook_length(first, second):
    if not (first and second):
        return 0
    if first[-1] == second[-1]:
        return 1 + textbook_length(first[:-1], second[:-1])
    return max(textbook_length(first[:-1], second), textbook_length(first, second[:-1]))


@settings(max_examples=50, deadline=None)
@given(WORDS, WORDS)
@example(["the", "cat", "sat"], ["a", "cat"])
@example(["a", "b", "c", "d"], ["d", "a", "c", "b", "d"])
def test_words_shared_with_the_context_are_a_longest_common_subsequence(reference, context):
    indices = shared_with_context(reference, context)
    assert len(indices) == textbook_length(tuple(reference), tuple(context))
    rest = iter(context)
    assert all(reference[index] in rest for index in sorted(indices))


# The knapsack, against brute force

PRIORITIES = {
    "distinct": lambda rng: rng.randrange(1, 6_000_000),
    "many ties": lambda rng: rng.randrange(1, 4),
    "with zeros": lambda rng: rng.choice([0, 0, 1, 2]),
    "around and beyond 64 bits": lambda rng: rng.choice([2**63 // 9, 2**62, 1, 10**20]),
}


@pytest.mark.parametrize("costs", [[1, 10], range(1, 8)])
@pytest.mark.parametrize("priorities", PRIORITIES)
def test_knapsack_equals_brute_force(priorities, costs):
    rng = random.Random(f"{priorities} {costs}")
    for _ in range(80):
        count = rng.randrange(9)
        values = [PRIORITIES[priorities](rng) for _ in range(count)]
        weights = rng.choices(costs, k=count)
        budgets = [rng.randrange(sum(weights) + 3) for _ in range(3)]
        expected = [oracle_forms.masked(values, weights, budget) for budget in budgets]
        assert knapsack(values, weights, budgets) == expected, (values, weights, budgets)


def test_a_knapsack_of_many_items_of_equal_cost():
    priorities = random.Random(7).sample(range(1, 10**7), 700)
    best = sorted(range(700), key=lambda item: -priorities[item])
    budgets = [140, 280, 420]
    assert knapsack(priorities, [1] * 700, budgets) == [tuple(sorted(best[:budget])) for budget in budgets]


# Templates

DEFAULT = PaperConfig()
TAGS = ["ADJ", "ADV", "NOUN", "PROPN", "VERB", "PUNCT", "X", "PRON"]


def tagged(text, tags=None):
    """A text and its words: runs without whitespace, except that a closing full stop is a word of its own."""
    spans = [match.span() for match in re.finditer(r"[^\s.]+|\.", text)]
    return text, [TaggedWord(*span, tag) for span, tag in zip(spans, tags or ["X"] * len(spans), strict=True)]


def lower_words(text, words):
    return [word.lower() for word in words_of(text, words)]


def idf_of(*texts):
    return Idf.count([lower_words(*text) for text in texts])


def masked_words(words, template):
    """Indices of the words inside blanks."""
    return [
        index
        for index, word in enumerate(words)
        if any(start <= word.start and word.end <= end for start, end in template.blanks)
    ]


@st.composite
def texts(draw):
    """A text with odd whitespace, and its words, some touching, with any tags."""
    word = st.sampled_from(["a", "the", "Cat", "sat", "😀", "שלום", "n't", "\x00", "x" * 40, "é", "\u200d"])
    gap = st.sampled_from(["", " ", " ", " ", "  ", "\n", "\t \n", "\u00a0", "\u3000"])
    text, words = draw(gap), []
    for part in draw(st.lists(word, max_size=25)):
        words.append(TaggedWord(len(text), len(text) + len(part), draw(st.sampled_from(TAGS))))
        text += part + draw(gap)
    return text, words


@given(texts(), st.data())
@settings(max_examples=50, deadline=None)
def test_any_mask_makes_a_sound_template(text_and_words, data):
    text, words = text_and_words
    mask = data.draw(st.sets(st.integers(0, len(words) - 1) if words else st.nothing()))
    template = mask_words(text, words, mask)
    assert masked_words(words, template) == sorted(mask)
    pieces, blanks = template.pieces, template.blanks
    for (_, end), (start, _) in itertools.pairwise(blanks):
        assert text[end:start].strip(), "two blanks touch"
    assert len(blanks) == sum(index - 1 not in mask for index in mask)
    assert template.fill([piece for piece, is_blank in pieces if is_blank]) == template.reference == text
    assert template.fill([""] * len(blanks)) == "".join(piece for piece, is_blank in pieces if not is_blank)
    # A blank owns the whitespace before it and ends with its last word; so do text blocks inside.
    assert all(not piece[-1].isspace() for piece, _ in pieces[:-1])


def test_a_template_as_a_person_reads_it():
    template = mask_words(*tagged("She said to herself, her car is fixed."), [1, 2, 3, 8])
    assert template.blanks == ((3, 20), (37, 38))
    assert str(template) == "She ____ her car is fixed____"
    assert template.fill([" waits:", "!"]) == "She waits: her car is fixed!"
    assert template.fill([" waits:"]) == "She waits: her car is fixed."


def test_priorities_and_masks_by_hand():
    text, words = tagged("the big cat ran fast .", ["DET", "ADJ", "NOUN", "VERB", "ADV", "PUNCT"])
    idf = idf_of((text, words), tagged("the dog ."))  # M = 2; "the" and "." occur in both
    # By alpha / IDF: big 4 / log 2, fast 3 / log 2, the and the full stop 1 / log 4/3, cat 2 / log 2; ran last.
    templates = make_templates(text, words, [], idf, PaperConfig(max_mask_ratio=1.0, mask_ratio_step=1 / 6))
    order = [[1], [1, 4], [0, 1, 4], [0, 1, 4, 5], [0, 1, 2, 4, 5], [0, 1, 2, 3, 4, 5]]
    assert [masked_words(words, template) for _, template in templates] == order
    assert [ratio for ratio, _ in make_templates(text, words, [], idf, DEFAULT)] == [0.2, 0.4, 0.6]
    flat = PaperConfig(max_mask_ratio=1 / 3, mask_ratio_step=1 / 3, pos_weights={})
    [(_, template)] = make_templates(text, words, [], idf, flat)
    assert masked_words(words, template) == [0, 5]
    [(_, template)] = make_templates(text, words, ["the"], idf, flat)
    assert masked_words(words, template) == [1, 5]


@pytest.mark.parametrize(("lower_words", "expected"), [(True, "The ____ sat"), (False, "____ Cat sat")])
@pytest.mark.parametrize(
    ("corpus", "context"), [(["A cat.", "My cat.", "The end.", "Rain."], ""), (["Rain."], "the")]
)
def test_words_are_compared_lower_cased_or_as_they_are_written(tagger, corpus, context, lower_words, expected):
    """By IDF "cat" is in more texts than "Cat"; and what is shared with the context is masked last."""
    config = PaperConfig(max_mask_ratio=0.4, mask_ratio_step=0.4, pos_weights={}, lower_words=lower_words)
    ((text, words),) = tagger.tag(["The Cat sat"]).items()
    idf = Idf.count(tagger.words(corpus, lower=lower_words).values())
    [context_words] = tagger.words([context], lower=lower_words).values()
    [(_, template)] = make_templates(text, words, context_words, idf, config)
    assert str(template) == expected


@pytest.mark.parametrize(
    ("max_ratio", "step", "ratios"),
    [
        (0.6, 0.2, (0.2, 0.4, 0.6)),
        (0, 0.2, ()),
        (1, 0.3, (0.3, 0.6, 0.9)),
        (1.0, 0.05, tuple(number / 20 for number in range(1, 21))),
        (1, 1 / 3, (0.3333333333, 0.6666666667, 1.0)),
    ],
)
def test_mask_ratios(max_ratio, step, ratios):
    assert mask_ratios(max_ratio, step) == ratios


@pytest.mark.parametrize("ratio", [0.07, 0.29])
def test_budgets_are_free_of_float_noise(ratio):
    """0.07 * 100 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996: 7 and 29 words are meant."""
    text, words = tagged(" ".join(map(str, range(100))))
    config = PaperConfig(max_mask_ratio=ratio, mask_ratio_step=ratio)
    ((_, template),) = make_templates(text, words, [], idf_of((text, words)), config)
    assert len(masked_words(words, template)) == round(ratio * 100)


@pytest.mark.parametrize(
    ("text", "context", "overrides", "first", "last"),
    [
        # Punctuation is masked like other words, and the leftmost of equals, as in the paper.
        (". . , They see us , you know !", "", {}, "____ , They see us , you know !", "____ , you know !"),
        ("THE CAR was red", "the car is red", {}, "THE CAR ____ red", "THE CAR ____ red"),
        ("I don't like cars.", "", {"max_mask_ratio": 1.0}, "I don't like ____.", "____"),
    ],
)
def test_templates_of_real_texts(tagger, text, context, overrides, first, last):
    config = PaperConfig(**{"max_mask_ratio": 0.6, **overrides})
    (words,) = tagger.tag([text]).values()
    context_words = tagger.words([context])[context]
    templates = make_templates(text, words, context_words, idf_of((text, words)), config)
    assert (str(templates[0][1]), str(templates[-1][1])) == (first, last)
