"""IDF by hand."""

from __future__ import annotations

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


def test_a_word_in_every_text_keeps_a_finite_priority():
    idf = Idf.count({str(number): ("the", str(number)) for number in range(50)})
    assert idf["the"] == pytest.approx(math.log(2))
    assert idf["7"] == pytest.approx(math.log(51))


def test_one_text_gives_equal_idf():
    idf = Idf.count({"a b a": ("a", "b", "a")})
    assert idf["a"] == idf["b"] == pytest.approx(math.log(2))


def test_no_texts_and_texts_without_words():
    assert Idf.count({})["word"] == pytest.approx(math.log(2))
    assert Idf.count({"a": ("a",), " ": ()})["a"] == pytest.approx(math.log(3))


def test_it_is_frozen():
    idf = Idf.count(TEXTS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        idf.documents = 4
    with pytest.raises(TypeError):
        idf.frequencies["the"] = 4
