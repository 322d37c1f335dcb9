"""IDF by hand."""

import dataclasses
import math

import pytest

from mars_score.masking.idf import Idf

TEXTS = {
    "The cat sat.": ("the", "cat", "sat", "."),
    "The dog and the dog.": ("the", "dog", "and", "the", "dog", "."),
    "No!": ("no", "!"),
}


def test_values_by_hand():
    idf = Idf.count(TEXTS)
    assert idf.documents == 3
    assert idf["the"] == pytest.approx(0.916290731874155)  # log(1 + 3/2)
    assert idf["cat"] == pytest.approx(1.3862943611198906)  # log(1 + 3)
    assert idf["dog"] == idf["cat"]  # twice in one text counts once
    assert idf["unseen"] == idf["cat"]


def test_no_texts_and_texts_without_words():
    assert Idf.count({})["word"] == pytest.approx(math.log(2))
    assert Idf.count({"a": ("a",), " ": ()})["a"] == pytest.approx(math.log(3))


def test_it_is_frozen():
    idf = Idf.count(TEXTS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        idf.documents = 4
    with pytest.raises(TypeError):
        idf.frequencies["the"] = 4
