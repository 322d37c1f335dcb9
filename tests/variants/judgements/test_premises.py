"""By which passage of its references, or of the context of a summary, each sentence of a candidate is judged.

The encoder is one to which words are unrelated: of two sentences that one is nearer which has more of the words.
"""

import random

import pytest

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import TASKS
from mars_score.text import passages_of
from mars_score.variants.judgements.premises import choose_premises, neighbourhood
from mars_score.variants.judgements.statements import statements_of
from tests import tiny_models

BREAD = "The baker puts warm bread in the window."
BOATS = "The children look at the boats."
TRAIN = "The train is cheap and quick."
ROAD = "The road is busy."
FILL = "They say that it will rain. " * 30  # 180 words
PARTS = ["The road is busy.", "They walk home.", "The train is quick.", "Nobody is surprised.", "They read it."]
WHOLE = " ".join(PARTS)  # 4, 3, 4, 3 and 3 words


class Chooser:
    """Chooses the premises of a row, and counts the texts that are encoded for it."""

    def __init__(self):
        self.encoded = 0
        models = {"encoder": tiny_models.word_encoder(), "language_model": None, "entailment_model": None}
        self._calls = MarsScorer("mini", variant="fast", store=False, progress=self._note, **models).calls

    def _note(self, stage, done, total):
        self.encoded += total if done == 0 else 0

    def __call__(self, candidate, references=(), context="", task="text", **settings):
        """Pairs of a sentence and its premise."""
        config = PlusConfig(**settings)
        judged = [one.sentence for one in statements_of(candidate)[: config.max_sentences]]
        texts = tuple(passages_of(context)) if task == "summary" else tuple(references)
        premises = choose_premises([(one, texts) for one in judged], config.premise_words, self._calls.encode)
        return list(zip(judged, premises, strict=True))


@pytest.fixture
def premises():
    return Chooser()


@pytest.fixture(params=["references", "context"])
def premise_from(request, premises):
    """The premise of a sentence by texts, which are references, or passages of the context of a summary."""

    def choose(sentence, *texts, **settings):
        if request.param == "references":
            row = premises(sentence, texts, FILL, **settings)
        else:
            row = premises(sentence, [FILL], "\x1e".join(texts), "summary", **settings)
        [(judged, premise)] = row
        assert judged == sentence
        return premise

    return choose


def test_a_text_that_fits_is_a_premise_as_a_whole(premises):
    """And nothing is encoded; its sentences are joined by a space."""
    context = f"{BREAD} {BOATS}\n{TRAIN}"
    for task, expected in (("text", f"{ROAD} {BREAD}"), ("summary", f"{BREAD} {BOATS} {TRAIN}")):
        chosen = premises("The boats. It rains.", [f"{ROAD} {BREAD}"], context, task)
        assert chosen == [("The boats.", expected), ("It rains.", expected)]
    assert premises.encoded == 0


@pytest.mark.parametrize("task", TASKS)
def test_the_context_is_the_premise_of_a_summary_alone(premises, task):
    assert premises("The train.", [ROAD], TRAIN, task) == [("The train.", TRAIN if task == "summary" else ROAD)]


@pytest.mark.parametrize(("words", "is_whole"), [(17, True), (12, True), (11, False)])
def test_a_text_fits_that_is_half_as_long_again_as_a_passage(premise_from, words, is_whole):
    assert (premise_from("The train is quick.", WHOLE, premise_words=words) == WHOLE) is is_whole


def test_of_several_references_the_nearest_is_taken(premises):
    """For each sentence anew, and as a whole where it fits."""
    references = [f"{BREAD} {ROAD}", f"{TRAIN} {BOATS}"]
    chosen = premises("They look at boats. She puts bread there. The train.", references)
    assert [premise for _, premise in chosen] == [references[1], references[0], references[1]]


def test_texts_are_never_joined(premise_from):
    texts = [ROAD, f"{BREAD} {TRAIN}", BOATS]
    assert premise_from("The train is quick.", *texts) == texts[1]
    assert premise_from("Children look at boats.", *texts) == texts[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (3, PARTS[2:3]),  # one that is longer stands alone
        (6, PARTS[2:3]),
        (7, PARTS[2:4]),  # the sentence that follows comes first
        (9, PARTS[2:4]),
        (10, PARTS[1:4]),
        (13, PARTS[1:]),
        (16, PARTS[1:]),
    ],
)
def test_of_a_longer_text_the_nearest_sentence_has_its_neighbours(premise_from, words, expected):
    text = f"{WHOLE} {FILL.replace('.', ',')}end."  # which is longer than a passage
    assert premise_from("Quick: the train.", text, premise_words=words) == " ".join(expected)


def test_where_one_neighbour_is_too_long_the_other_side_goes_on(premise_from):
    text = f"{BREAD} {ROAD} {TRAIN} {FILL.replace('.', ',')}end. {BOATS}"
    assert premise_from("The train is quick.", text) == f"{BREAD} {ROAD} {TRAIN}"


def test_blank_parts_are_no_premises(premise_from):
    assert premise_from("The train.", " ", f"{TRAIN}\n\n \n{ROAD}", "") == f"{TRAIN} {ROAD}"


def test_lines_are_sentences(premise_from):
    """Such as the turns of a dialogue that is summarised, and fields of a record."""
    assert premise_from("The train.", "Bread\nThe train\nA road", premise_words=2) == "The train"


def test_the_first_sentences_are_judged(premises):
    candidate = " ".join(["It rains."] * 3)
    assert [len(premises(candidate, [ROAD], max_sentences=most)) for most in (1, 3, 20)] == [1, 3, 3]


@pytest.mark.parametrize(
    ("candidate", "judged"),
    [
        ("Thanks! It rains. Bye.", ["It rains."]),
        ("Thanks! Bye.", ["Bye."]),  # where no sentence has more
        ("It rains.\n[1]\n\U0001f600", ["It rains."]),
        ("Yes. Rain falls.", ["Rain falls."]),
        ("Sure, rain. Rain falls.", ["Rain falls."]),  # one word is left
        ("No, rain. Rain falls.", ["No, rain.", "Rain falls."]),
        ("\u96e8\u3002\u4e0b\u96e8\u3002", ["\u4e0b\u96e8\u3002"]),  # each sign is a word
        ("<s>It rains.</s>", ["It rains."]),
        ("Does it?", ["Does it?"]),
        ("\u2026 \U0001f600", []),
    ],
)
def test_sentences_that_state_nothing_are_not_judged(premises, candidate, judged):
    """Nor is one word beside sentences of more."""
    assert [sentence for sentence, _ in premises(candidate, [ROAD])] == judged


def test_a_neighbourhood_cannot_grow():
    """It is around its centre, has no more words than it may, and no more room for either neighbour."""
    numbers = random.Random(0)
    for _ in range(300):
        sizes = [numbers.randint(1, 9) for _ in range(numbers.randint(1, 9))]
        parts = [" ".join([f"w{place}"] * size) for place, size in enumerate(sizes)]
        centre, limit = numbers.randrange(len(parts)), numbers.randint(1, 30)
        words = neighbourhood(parts, centre, limit).split()
        first, last = int(words[0][1:]), int(words[-1][1:])
        assert " ".join(words) == " ".join(parts[first : last + 1])
        assert first <= centre <= last
        assert len(words) <= limit or first == last
        for neighbour in {first - 1, last + 1} & set(range(len(parts))):
            assert len(words) + sizes[neighbour] > limit
