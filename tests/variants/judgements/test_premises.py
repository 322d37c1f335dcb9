"""Which passage of some texts is the premise of a sentence; texts are the nearer the more words they share."""

import math
import random
import re
from types import SimpleNamespace

import pytest

from mars_score.variants.judgements.premises import choose_premises, neighbourhood

BREAD = "The baker puts warm bread in the window."
BOATS = "The children look at the boats."
TRAIN = "The train is cheap and quick."
ROAD = "The road is busy."
FILL = "They say that it will rain. " * 30  # 180 words
LONG = f"{FILL.replace('.', ',')}end."  # a sentence
PARTS = ["The road is busy.", "They walk home.", "The train is quick.", "Nobody is surprised.", "They read it."]
WHOLE = " ".join(PARTS)  # 4, 3, 4, 3 and 3 words


class Words(frozenset):
    """A vector of the words of a text."""

    def __matmul__(self, other):
        return len(self & other) / math.sqrt(len(self) * len(other))


def encode(texts):
    return {text: SimpleNamespace(vector=Words(re.findall(r"\w+", text.lower()))) for text in texts}


def premises_of(sentences, *texts, words=100, encode=encode):
    return choose_premises([(sentence, texts) for sentence in sentences], words, encode)


def premise_of(sentence, *texts, **options):
    [premise] = premises_of([sentence], *texts, **options)
    return premise


def test_a_text_that_fits_is_a_premise_as_a_whole():
    """And nothing is encoded; its sentences are joined by a space."""
    encoded = []
    chosen = premises_of(["The boats.", "It rains."], f"{BREAD} {BOATS}\n{TRAIN}", encode=encoded.extend)
    assert (chosen, encoded) == ([f"{BREAD} {BOATS} {TRAIN}"] * 2, [])


@pytest.mark.parametrize(("words", "is_whole"), [(17, True), (12, True), (11, False)])
def test_a_text_fits_that_is_half_as_long_again_as_a_passage(words, is_whole):
    assert (premise_of("The train is quick.", WHOLE, words=words) == WHOLE) is is_whole


def test_of_several_texts_the_nearest_is_taken():
    """For each sentence anew, and as a whole where it fits; texts are never joined."""
    texts = [ROAD, f"{BREAD} {TRAIN}", BOATS]
    sentences = ["They look at boats.", "She puts bread there.", "The train is quick."]
    assert premises_of(sentences, *texts) == [texts[2], texts[1], texts[1]]


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
def test_of_a_longer_text_the_nearest_sentence_has_its_neighbours(words, expected):
    assert premise_of("Quick: the train.", f"{WHOLE} {LONG}", words=words) == " ".join(expected)


def test_where_one_neighbour_is_too_long_the_other_side_goes_on():
    text = f"{BREAD} {ROAD} {TRAIN} {LONG} {BOATS}"
    assert premise_of("The train is quick.", text) == f"{BREAD} {ROAD} {TRAIN}"


def test_blank_parts_are_no_premises():
    assert premise_of("The train.", " ", f"{TRAIN}\n\n \n{ROAD}", "") == f"{TRAIN} {ROAD}"


def test_lines_are_sentences():
    """Such as the turns of a dialogue that is summarised, and fields of a record."""
    assert premise_of("The train.", "Bread\nThe train\nA road", words=2) == "The train"


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
