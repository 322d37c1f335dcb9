"""Find a number or a negation in which a sentence contradicts a sentence of a premise with the same other words.

Where all other words are the same, any number that differs is a conflict, and so is a negation that only one of
both has. Where most are, only a quantity with the same unit, or a number of the same things, is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from mars_score.sentences import sentences
from mars_score.text import MARKS_AROUND, plain_words
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
    """Words that a premise contradicts."""

    words: str  # as the sentence writes them
    premise: str  # the sentence of the premise that contradicts them


def find_conflict(sentence: str, premises: Sequence[str]) -> Conflict | None:
    """Find a number or a negation in which a sentence differs from a premise with the same other words.

    What any premise says, a number in any notation, is no conflict.
    """
    return _find_number(sentence, premises) or _find_negation(sentence, premises)


# Numbers


def _find_number(sentence: str, premises: Sequence[str]) -> Conflict | None:
    """Find a number that differs, in its place or by its unit."""
    mine = _read(sentence)
    if not mine.numbers:
        return None
    others = [part for premise in premises for part in _parts(premise) if part.numbers]
    return _find_in_place(mine, others) or _find_by_unit(mine, others)


class _Part(NamedTuple):
    """A sentence.

    Attributes:
        text: the sentence.
        words: its words in lower case, with "" in place of each number with its bound.
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
        for word in plain_words(_in_full(sentence[end : quantity.start - quantity.before if quantity else None])):
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
            end = quantity.end + quantity.behind
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
    if mine ^ theirs <= _NEGATIONS | _FILLERS and _negations(one.text) != _negations(other.text):
        return False  # "Not open on Monday" and "open on Sunday" may both be true.
    shared = len(mine & theirs)
    return shared > 0 and shared >= MIN_SHARED * max(len(mine), len(theirs))


# Negations

_CONTRACTED = re.compile(r"\b(?:(can)not|(can)['\u2019]t|(wo)n['\u2019]t|(\w+)n['\u2019]t)\b", re.IGNORECASE)
_NO = re.compile(r"\b[Nn]o(?: longer\b)?(?= [a-z]|$)")  # not "No, it is" or "No. 5"
_NEGATIONS = frozenset({"not", "never"})
# They go with a negation or with its absence ("does not see any", "still sees a"), or stand before it ("No, ...").
_FILLERS = frozenset({*("do", "does", "did"), *("a", "an", "the", "any"), *("still", "already", "yet"), "no"})
# With these a sentence and its negation may both be true: some guests are late, and some are not.
_OPEN = frozenset(
    {
        *("some", "someone", "something", "sometimes", "several", "many", "few", "lot", "lots", "number", "deal"),
        *("much", "often", "usually", "partly", "may", "might", "could", "sure", "certain", "if", "unless"),
        *("whether", "when", "until", "only", "just", "all", "every", "everyone", "everything", "almost", "than"),
    }
)
_INFLECTIONS = ("s", "es", "d", "ed")
_NEGATIVE_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "dys")
_NOT_NEGATIVE = frozenset({"invaluable", "inflammable", "inhabitable"})


def _find_negation(sentence: str, premises: Sequence[str]) -> Conflict | None:
    """Find the only negation of two sentences with the same other words, such as "does not agree", "disagrees".

    Two sentences that both have negations may be true: "no proof that it is safe", "no proof that it is not safe".
    """
    others = [text for premise in premises for text in _statements(premise)]
    same = {text: opposites for text in others if (opposites := _opposites(sentence, text)) is not None}
    mine = _negations(sentence)
    if any((opposites + mine - _negations(text)) % 2 == 0 for text, opposites in same.items()):
        return None
    negated = (text for text, opposites in same.items() if opposites + mine + _negations(text) == 1)
    text = next(negated, None)
    return Conflict(_difference(sentence, text), text) if text else None


@lru_cache(maxsize=256)
def _statements(premise: str) -> tuple[str, ...]:
    """Return the sentences of a premise that ask nothing."""
    return tuple(text for text in sentences(premise) if not text.endswith("?"))


def _negations(sentence: str) -> int:
    """Count the negations of a sentence."""
    return sum(word in _NEGATIONS for word in _words_in_full(sentence))


def _opposites(sentence: str, other: str) -> int | None:
    """Count the pairs such as "possible" and "impossible". None if other words than negations differ."""
    mine, theirs = _without_negations(sentence), _without_negations(other)
    if not 1 < len(mine) == len(theirs):
        return None
    differing = [pair for pair in zip(mine, theirs, strict=True) if not _is_form(*pair)]
    return len(differing) if all(starmap(_is_opposite, differing)) else None


@lru_cache(maxsize=4096)
def _without_negations(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence besides negations, or none if it may be true together with its negation."""
    words = _words_in_full(sentence)
    if not _OPEN.isdisjoint(words):
        return ()
    return tuple(word for word in words if word not in _NEGATIONS and word not in _FILLERS)


@lru_cache(maxsize=4096)
def _words_in_full(sentence: str) -> tuple[str, ...]:
    return tuple(plain_words(_in_full(sentence)))


def _in_full(text: str) -> str:
    """Write each negation of a text as the word "not", or "never"."""

    def in_two_words(match: re.Match[str]) -> str:
        return f"{'will' if match[3] else next(filter(None, match.groups()))} not"

    return _NO.sub("not", _CONTRACTED.sub(in_two_words, text))


def _is_form(one: str, other: str) -> bool:
    """Tell whether two words are the same up to an inflection, as in "does not agree" and "agrees"."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and len(short) > len("as") and long[len(short) :] in _INFLECTIONS


def _is_opposite(one: str, other: str) -> bool:
    """Tell whether two words differ by a negative prefix, and perhaps by an inflection."""
    short, long = sorted((one, other), key=len)
    rests = (long.removeprefix(prefix) for prefix in _NEGATIVE_PREFIXES if long.startswith(prefix))
    return long not in _NOT_NEGATIVE and any(_is_form(short, rest) for rest in rests)


def _difference(sentence: str, premise: str) -> str:
    """Return the words of a sentence where only one of both has a negation, or the words beside that place."""
    mine, theirs = ([word.strip(MARKS_AROUND) for word in text.split()] for text in (sentence, premise))
    matcher = SequenceMatcher(None, list(map(str.lower, theirs)), list(map(str.lower, mine)), autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        before, after = " ".join(theirs[first:last]).lower(), " ".join(mine[start:end]).lower()
        if kind != "equal" and (_negations(before) or _negations(after) or _is_opposite(before, after)):
            return " ".join(mine[start:end] if end > start else mine[max(0, start - 1) : start + 1])
    return sentence
