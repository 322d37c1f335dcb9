"""What is masked: words and tags, IDF, the words that carry the context, the knapsack, and templates."""

import itertools
import json
import math
import pickle
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mars_score.metrics.idf import Idf
from mars_score.metrics.knapsack import knapsack
from mars_score.metrics.template import (
    Template,
    context_carrying,
    make_templates,
    mask_ratios,
    word_priorities,
)
from mars_score.models.tagger import Analysis, Word, WordAnalyser, prepare_reference
from mars_score.settings import resolve_settings
from mars_score.settings.language import pipeline_name
from mars_score.settings.stages import MaskingSettings

# Words and tags, by the real pipeline


@pytest.fixture(scope="module")
def analyser():
    return WordAnalyser()


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


def test_offsets_are_right_and_only_whitespace_lies_outside_the_words(analyser):
    analyses = analyser.analyse(ODD_TEXTS)
    for text, analysis in analyses.items():
        assert analysis.text == text
        ends = [0, *(word.end for word in analysis.words)]
        starts = [*(word.start for word in analysis.words), len(text)]
        assert not "".join(text[end:start] for end, start in zip(ends, starts, strict=True)).strip()
        for word in analysis.words:
            assert text[word.start : word.end] == word.text != ""
            assert not any(character.isspace() for character in word.text)
    assert analyses.keys() == set(ODD_TEXTS)
    assert analyser.words(ODD_TEXTS) == {text: analysis.lower_words for text, analysis in analyses.items()}


def test_an_analysis_depends_on_its_text_alone(analyser):
    texts = [f"The {word} dog barks." for word in ("small", "big", "very", "well", "light", "record", "can")]
    texts += ["A much longer text " * number for number in range(1, 90, 11)]
    together = analyser.analyse(texts)
    assert [analyser.analyse([text])[text] for text in texts] == [*together.values()]
    assert pickle.loads(pickle.dumps(analyser)).words(["Don't!"]) == {"Don't!": ("do", "n't", "!")}
    (analysis,) = analyser.analyse(["The small dog barks very loudly in London."]).values()
    assert " ".join(word.pos for word in analysis.words) == "DET ADJ NOUN VERB ADV ADV ADP PROPN PUNCT"


@pytest.mark.parametrize("run", ["!" * 100_000, "x." * 50_000, "😀" * 500_000])
def test_a_very_long_run_is_one_word(analyser, run):
    """spaCy would take minutes; and no text is too long."""
    (analysis,) = analyser.analyse([f"so {run} it is"]).values()
    assert [word.text for word in analysis.words] == ["so", run, "it", "is"]
    assert [len(words) for words in analyser.words(["!" * 1000, "!" * 1001]).values()] == [1000, 1]


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
        ("  So true.\n", "So true."),
        ("See http://t.co/Ab1 now", "See now"),
        ("See HTTPS://example.com/a?b=c#d, please.", "See, please."),
        ("https://a.org Hello\nworld http://b.org", "Hello\nworld"),
        ("#MARS is #red , #really!", "is ,!"),
        ("Love #café #日本 \uff03tag ok", "Love ok"),
        ("a  b   c", "a  b   c"),  # the text's own spaces stay
        ("We are #1, C# fans & don&#39;t mind", "We are #1, C# fans & don&#39;t mind"),
        ("mail a@b.org or awww.such #", "mail a@b.org or awww.such #"),
        ("#winning", "#winning"),  # nothing would be left
        (" #so #true! ", "#so #true!"),
        ("\u05e9\u05dc\u05d5\u05dd #\u05ea\u05d2", "\u05e9\u05dc\u05d5\u05dd"),
    ],
)
def test_urls_and_hashtags(text, prepared):
    assert prepare_reference(text, strip_urls_hashtags=True) == prepared
    assert prepare_reference(text, strip_urls_hashtags=False) == text.strip()


@pytest.mark.parametrize("unit", [" ", "#", "www.", "#1", "http://", "\uff03!", "."])
def test_hostile_text_is_prepared_in_linear_time(unit):
    """Backtracking in the square of the length would take minutes."""
    text = "a" + unit * 50_000 + "b"
    rest_is_url = unit in ("www.", "http://")
    assert prepare_reference(text, strip_urls_hashtags=True) == ("a" + unit if rest_is_url else text)


# What a word is worth and what it costs


def test_idf_by_hand():
    idf = Idf.count([("the", "cat", "."), ("the", "dog", ",", "the", "dog"), ("no",)])
    assert idf.documents == 3
    assert idf["the"] == pytest.approx(0.916290731874155)  # log(1 + 3/2)
    assert idf["cat"] == pytest.approx(1.3862943611198906)  # log(1 + 3)
    assert idf["dog"] == idf["unseen"] == idf["cat"]  # twice in one text counts once
    assert Idf.count([])["word"] == pytest.approx(math.log(2))


WORDS = st.lists(st.sampled_from(["the", "a", "cat", "sat", ".", "n't", "x", "-1", "😀"]), max_size=14)


def textbook_length(first, second):
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, left in enumerate(first):
        for j, right in enumerate(second):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1 if left == right else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    return lengths[-1][-1]


@given(WORDS, WORDS)
@example(["the", "cat", "sat"], ["a", "cat"])
@example(["a", "b", "c", "d"], ["d", "a", "c", "b", "d"])
def test_context_carrying_words_are_a_longest_common_subsequence(reference, context):
    indices = context_carrying(reference, context)
    assert len(indices) == textbook_length(reference, context)
    rest = iter(context)
    assert all(reference[index] in rest for index in sorted(indices))


# The knapsack, against brute force


def brute_force(priorities, costs, budget):
    """Largest sum, then fewest items, then lexicographically smallest indices: every subset is looked at."""
    subsets = itertools.chain.from_iterable(
        itertools.combinations(range(len(costs)), size) for size in range(len(costs) + 1)
    )
    feasible = [subset for subset in subsets if sum(costs[item] for item in subset) <= budget]
    return min(feasible, key=lambda subset: (-sum(priorities[item] for item in subset), len(subset), subset))


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
    for _ in range(200):
        count = rng.randrange(9)
        values = [PRIORITIES[priorities](rng) for _ in range(count)]
        weights = rng.choices(costs, k=count)
        budgets = [rng.randrange(sum(weights) + 3) for _ in range(3)]
        expected = [brute_force(values, weights, budget) for budget in budgets]
        assert knapsack(values, weights, budgets) == expected, (values, weights, budgets)


def test_a_knapsack_of_many_items_of_equal_cost():
    priorities = random.Random(7).sample(range(1, 10**7), 700)
    best = sorted(range(700), key=lambda item: -priorities[item])
    budgets = [140, 280, 420]
    assert knapsack(priorities, [1] * 700, budgets) == [tuple(sorted(best[:budget])) for budget in budgets]


# Templates

DEFAULT = MaskingSettings()
TAGS = ["ADJ", "ADV", "NOUN", "PROPN", "VERB", "PUNCT", "X", "PRON"]


def analysis_of(text, tags=None):
    """Words are runs without whitespace, except that a closing full stop is a word of its own."""
    spans = [match.span() for match in re.finditer(r"[^\s.]+|\.", text)]
    tags = tags or ["X"] * len(spans)
    words = [Word(text[start:end], start, end, tag) for (start, end), tag in zip(spans, tags, strict=True)]
    return Analysis(text, tuple(words))


def idf_of(*analyses):
    return Idf.count([analysis.lower_words for analysis in analyses])


def masked_words(analysis, template):
    """Indices of the words inside blanks."""
    return [
        index
        for index, word in enumerate(analysis.words)
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


@given(analyses(), st.data())
@settings(max_examples=100, deadline=None)
def test_any_mask_makes_a_sound_template(analysis, data):
    mask = data.draw(st.sets(st.integers(0, len(analysis.words) - 1) if analysis.words else st.nothing()))
    template = Template.from_mask(analysis, mask)
    assert masked_words(analysis, template) == sorted(mask)
    pieces, blanks = template.pieces, template.blanks
    for (_, end), (start, _) in itertools.pairwise(blanks):
        assert analysis.text[end:start].strip(), "two blanks touch"
    assert len(blanks) == sum(index - 1 not in mask for index in mask)
    assert template.fill([piece.text for piece in pieces if piece.blank]) == template.reference == analysis.text
    assert template.fill([""] * len(blanks)) == "".join(piece.text for piece in pieces if not piece.blank)
    # A blank owns the whitespace before it and ends with its last word; so do text blocks inside.
    assert all(not piece.text[-1].isspace() for piece in pieces[:-1])


@given(analyses(), st.lists(st.sampled_from(["a", "the", "cat", "sat", "😀", "dog"]), max_size=30))
@settings(max_examples=100, deadline=None)
def test_masked_words_stay_within_the_budget(analysis, context):
    chosen = MaskingSettings(max_mask_ratio=1.0, mask_ratio_step=0.3)
    idf = idf_of(analysis, analysis_of("the dog sat ."))
    templates = make_templates(analysis, context, idf, chosen)
    count, priorities = len(analysis.words), word_priorities(analysis, idf, chosen)
    carrying, worth = context_carrying(analysis.lower_words, context), []
    costs = [10 if index in carrying else 1 for index in range(count)]
    assert [ratio for ratio, _ in templates] == [0.3, 0.6, 0.9]
    for ratio, template in templates:
        masked = masked_words(analysis, template)
        spare = math.floor(round(ratio * count, 6)) - sum(costs[index] for index in masked)
        assert spare >= 0
        assert all(costs[index] > spare for index in set(range(count)) - set(masked))  # no other word fits
        worth.append(sum(priorities[index] for index in masked))
    assert worth == sorted(worth)


def test_a_template_as_a_person_reads_it():
    template = Template.from_mask(analysis_of("She said to herself, her car is fixed."), [1, 2, 3, 8])
    assert template.blanks == ((3, 20), (37, 38))
    assert str(template) == "She ____ her car is fixed____"
    assert template.fill([" waits:", "!"]) == "She waits: her car is fixed!"
    assert template.fill([" waits:"]) == "She waits: her car is fixed."


def test_priorities_and_masks_by_hand():
    analysis = analysis_of("the big cat ran fast .", ["DET", "ADJ", "NOUN", "VERB", "ADV", "PUNCT"])
    idf = idf_of(analysis, analysis_of("the dog ."))  # M = 2; "the" and "." occur in both
    rare, common = 1e6 / math.log(3), 1e6 / math.log(2)
    expected = [common, 4 * rare, 2 * rare, rare, 3 * rare, 0.1 * common]
    assert word_priorities(analysis, idf, DEFAULT) == [round(value) for value in expected]
    assert word_priorities(analysis, idf, MaskingSettings(pos_weights={}))[-1] == round(common)
    templates = make_templates(analysis, [], idf, DEFAULT)
    assert [(ratio, masked_words(analysis, template)) for ratio, template in templates] == [
        (0.2, [1]),
        (0.4, [1, 4]),
        (0.6, [1, 2, 4]),
    ]


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
    analysis = analysis_of(" ".join(map(str, range(100))))
    chosen = MaskingSettings(max_mask_ratio=ratio, mask_ratio_step=ratio)
    ((_, template),) = make_templates(analysis, [], idf_of(analysis), chosen)
    assert len(masked_words(analysis, template)) == round(ratio * 100)


PUNCTUATED = ". . , They see us , you know !"


@pytest.mark.parametrize(
    ("text", "context", "overrides", "first", "last"),
    [
        # The paper masks punctuation like other words, and the leftmost of equals; other variants mask it last.
        (PUNCTUATED, "", {}, "____ , They see us , you know !", "____ , you know !"),
        (PUNCTUATED, "", {"variant": "fast"}, ". . , ____ us , you know !", "____ . , ____ , ____ !"),
        ("THE CAR was red", "the car is red", {}, "THE CAR was red", "THE CAR ____ red"),
        ("I don't like cars.", "", {"max_mask_ratio": 1.0}, "I don't like ____.", "____"),
    ],
)
def test_templates_of_real_texts(analyser, text, context, overrides, first, last):
    chosen = resolve_settings("mini", **{"variant": "paper", "max_mask_ratio": 0.6, **overrides}).masking
    (analysis,) = analyser.analyse([text]).values()
    templates = make_templates(analysis, analyser.words([context])[context], idf_of(analysis), chosen)
    assert (str(templates[0][1]), str(templates[-1][1])) == (first, last)
