"""Find numbers that differ between a sentence and a sentence of a premise with nearly the same words.

Where all other words are the same, any number that differs is a conflict. Where most are, only a quantity with the
same unit, or a number of the same things, is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mars_score.sentences import sentences
from mars_score.text import plain_words
from mars_score.variants.judgements.quantities import (
    Quantity,
    conflicts,
    differ_in_place,
    equal,
    is_said,
    read_quantities,
)

_BEHIND_DIGIT = re.compile(r"\d[ .,]?\Z")  # "3 .5" is one number, broken by a space
_DIGIT = re.compile(r"\d")
_NUMBER = ""  # stands for a number among words
MIN_SHARED = 0.6  # share of the words outside numbers that two sentences about the same fact have in common


class Conflict(NamedTuple):
    """A number that a premise contradicts."""

    words: str  # the number as the sentence writes it
    premise: str  # the sentence of the premise with another number


def find_conflict(sentence: str, premises: Sequence[str]) -> Conflict | None:
    """Find a number in which a sentence differs from a premise with nearly the same other words.

    A number that any premise has, in any notation, is no conflict.
    """
    mine = _read(sentence)
    if not mine.numbers:
        return None
    others = [part for premise in premises for part in _parts(premise) if part.numbers]
    return _find_in_place(mine, others) or _find_by_unit(mine, others)


class _Part(NamedTuple):
    """A sentence.

    Attributes:
        text: the sentence.
        words: its words in lower case, with "" in place of each number.
        numbers: its numbers in order. One that is no quantity, such as a telephone number, is text.
    """

    text: str
    words: tuple[str, ...]
    numbers: tuple[Quantity | str, ...]

    @property
    def quantities(self) -> list[Quantity]:
        """Return the numbers that are quantities."""
        return [number for number in self.numbers if isinstance(number, Quantity)]


@lru_cache(maxsize=256)
def _parts(premise: str) -> tuple[_Part, ...]:
    return tuple(map(_read, sentences(premise)))


def _read(sentence: str) -> _Part:
    words: list[str] = []
    numbers: list[Quantity | str] = []
    end = 0
    for quantity in (*read_quantities(sentence), None):
        for word in plain_words(sentence[end : quantity.start if quantity else None]):
            if not _DIGIT.search(word):
                words.append(word)
            elif words and words[-1] == _NUMBER and isinstance(numbers[-1], str):
                numbers[-1] += f" {word}"  # "555-0134" is one number.
            else:
                words.append(_NUMBER)
                numbers.append(word)
        if quantity:
            words.append(_NUMBER)
            numbers.append(quantity)
            end = quantity.end
    return _Part(sentence, tuple(words), tuple(numbers))


def _find_in_place(mine: _Part, others: Sequence[_Part]) -> Conflict | None:
    """Find a number that differs from the one at its place in a sentence with the same other words."""
    if not any(mine.words):
        return None
    said = [number for other in others for number in other.numbers]
    for other in others:
        if other.words == mine.words:
            for number, theirs in zip(mine.numbers, other.numbers, strict=True):
                if _differ(number, theirs) and not _stands_in(number, said):
                    return Conflict(_as_written(number, mine.text), other.text)
    return None


def _stands_in(number: Quantity | str, said: Sequence[Quantity | str]) -> bool:
    """Tell whether premises have a number, or it follows from one of theirs by rounding or its bound."""
    if isinstance(number, Quantity) and number.is_single:
        return is_said(number, [other for other in said if isinstance(other, Quantity)])
    return any(_same(number, other) for other in said)


def _as_written(number: Quantity | str, text: str) -> str:
    """Return a number as a text writes it, such as "555-0134"."""
    if isinstance(number, Quantity):
        return number.text
    written = re.search(r"\W*".join(number.split()), text, re.IGNORECASE)
    return written[0] if written else number


def _differ(mine: Quantity | str, theirs: Quantity | str) -> bool:
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        return differ_in_place(mine, theirs)
    return isinstance(mine, str) and isinstance(theirs, str) and not _same(mine, theirs)


def _same(mine: Quantity | str, theirs: Quantity | str) -> bool:
    """Tell whether two numbers are the same. A telephone number may lack its first digits, as of a country."""
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        return equal(mine, theirs)
    if isinstance(mine, str) and isinstance(theirs, str):
        mine, theirs = _significant(mine), _significant(theirs)
        return mine.endswith(theirs) or theirs.endswith(mine)
    return False


def _significant(number: str) -> str:
    """Return a number without zeros at its start and without parts of zeros at its end: 2 for 2.0."""
    parts = number.split()
    while parts and not parts[-1].strip("0"):
        parts.pop()
    return "".join(parts).lstrip("0")


def _find_by_unit(mine: _Part, others: Sequence[_Part]) -> Conflict | None:
    """Find a quantity that differs from one with its unit in a sentence with most of the words."""
    said = [quantity for other in others for quantity in other.quantities]
    unsaid = [
        quantity
        for quantity in mine.quantities
        if not (is_said(quantity, said) or _BEHIND_DIGIT.search(mine.text[: quantity.start]))
    ]
    for other in (other for other in others if unsaid and _share_words(mine, other)):
        left = [theirs for theirs in other.quantities if not any(equal(one, theirs) for one in mine.quantities)]
        for quantity in unsaid:
            if conflicts(quantity, other.quantities) or conflicts(quantity, left):
                return Conflict(quantity.text, other.text)
    return None


def _share_words(one: _Part, other: _Part) -> bool:
    mine, theirs = frozenset(filter(None, one.words)), frozenset(filter(None, other.words))
    shared = len(mine & theirs)
    return shared > 0 and shared >= MIN_SHARED * max(len(mine), len(theirs))
