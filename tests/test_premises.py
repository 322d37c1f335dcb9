"""By which passages of its references and its context each sentence of a candidate is judged.

The encoder is one to which words are unrelated: of two sentences that one is nearer which has more of the words.
"""

import random

import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Row
from mars_score.variants.judgements import choose_premises, neighbourhood

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
        row = Row(candidate, tuple(references), context, (), task)
        return choose_premises([row], PlusConfig(**settings), self._calls)[0]


@pytest.fixture
def premises():
    return Chooser()


def test_a_text_that_fits_is_a_premise_as_a_whole(premises):
    """And nothing is encoded; its sentences are joined by a space."""
    context = f"{BREAD} {BOATS}\n{TRAIN}"
    chosen = premises("The boats. It rains.", [f"{ROAD} {BREAD}"], context, "summary")
    assert [one.sentence for one in chosen] == ["The boats.", "It rains."]
    assert {one.reference for one in chosen} == {f"{ROAD} {BREAD}"}
    assert {one.context for one in chosen} == {f"{BREAD} {BOATS} {TRAIN}"}
    assert premises.encoded == 0


@pytest.mark.parametrize("task", ["text", "summary", "dialogue", "data"])
def test_a_context_is_a_premise_in_a_summary_or_without_references(premises, task):
    [beside] = premises("The train.", [ROAD], TRAIN, task)
    [alone] = premises("The train.", [], TRAIN, task)
    assert (beside.context, alone.context) == (TRAIN if task == "summary" else "", TRAIN)


@pytest.mark.parametrize(("words", "is_whole"), [(17, True), (16, False)])
def test_a_text_fits_up_to_the_number_of_words(premises, words, is_whole):
    [chosen] = premises("The train is quick.", [WHOLE], WHOLE, "summary", premise_words=words)
    assert chosen.reference == chosen.context
    assert (chosen.context == WHOLE) is is_whole


def test_of_several_references_the_nearest_is_taken(premises):
    """For each sentence anew, and as a whole where it fits."""
    references = [f"{BREAD} {ROAD}", f"{TRAIN} {BOATS}"]
    chosen = premises("They look at boats. She puts bread there. The train.", references)
    assert [one.reference for one in chosen] == [references[1], references[0], references[1]]
    assert [one.context for one in chosen] == ["", "", ""]


@pytest.mark.parametrize("task", ["text", "summary", "dialogue"])
def test_passages_are_never_joined(premises, task):
    passages = [ROAD, f"{BREAD} {TRAIN}", BOATS]
    chosen = premises("The train is quick. Children look at boats.", [], "\x1e".join(passages), task)
    assert [one.context for one in chosen] == passages[1:]


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
def test_of_a_longer_text_the_nearest_sentence_has_its_neighbours(premises, words, expected):
    for references, context in (([WHOLE], ""), ([], WHOLE)):
        [chosen] = premises("Quick: the train.", references, context, premise_words=words)
        assert chosen.reference + chosen.context == " ".join(expected)


def test_where_one_neighbour_is_too_long_the_other_side_goes_on(premises):
    text = f"{BREAD} {ROAD} {TRAIN} {FILL.replace('.', ',')}end. {BOATS}"
    [chosen] = premises("The train is quick.", [], text)
    assert chosen.context == f"{BREAD} {ROAD} {TRAIN}"


def test_turns_of_a_dialogue_are_never_cut(premises):
    turns = [f"{BREAD} {ROAD}", f"{TRAIN} It rains. {BOATS}", f"{ROAD} Nobody is surprised."]
    for words, expected in ((5, turns[1:2]), (15, turns[1:2]), (21, turns[1:]), (99, turns)):
        [chosen] = premises("The train is quick.", [], "\n".join(turns), "dialogue", premise_words=words)
        assert chosen.context == " ".join(expected)


def test_blank_parts_are_no_premises(premises):
    [chosen] = premises("The train.", [], f" \x1e{TRAIN}\n\n \n{ROAD}\x1e", "dialogue")
    assert chosen.context == f"{TRAIN} {ROAD}"
    [chosen] = premises("The train.", [], "")
    assert (chosen.reference, chosen.context) == ("", "")


def test_the_first_sentences_are_judged(premises):
    candidate = " ".join(["It rains."] * 3)
    assert [len(premises(candidate, [ROAD], max_sentences=most)) for most in (1, 3, 20)] == [1, 3, 3]
    assert [one.sentence for one in premises("\u2026", [ROAD])] == ["\u2026"]


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
