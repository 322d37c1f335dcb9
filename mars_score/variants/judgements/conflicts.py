"""Find quantities that differ between a sentence and a sentence of a premise with nearly the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mars_score.sentences import sentences
from mars_score.text import plain_words
from mars_score.variants.judgements.quantities import Quantity, conflicts, equal, is_said, read_quantities

_BEHIND_DIGIT = re.compile(r"\d[ .,]?\Z")  # "3 .5" is one number, broken by a space
MIN_SHARED = 0.6  # share of the words outside quantities that two sentences about the same fact have in common


class Conflict(NamedTuple):
    """A quantity that a premise contradicts."""

    words: str  # the quantity as the sentence writes it
    premise: str  # the sentence of the premise with another quantity


def find_conflict(sentence: str, premises: Sequence[str]) -> Conflict | None:
    """Find a quantity in which a sentence differs from a premise with nearly the same other words.

    A quantity that any premise has, in any notation, is no conflict.
    """
    quantities = read_quantities(sentence)
    if not quantities:
        return None
    said = [other for premise in premises for other in read_quantities(premise)]
    unsaid = [
        quantity
        for quantity in quantities
        if not (is_said(quantity, said) or _BEHIND_DIGIT.search(sentence[: quantity.start]))
    ]
    if not unsaid:
        return None
    words = _other_words(sentence, quantities)
    for part in (part for premise in premises for part in _parts(premise) if _share_words(words, part.words)):
        left = [other for other in part.quantities if not any(equal(one, other) for one in quantities)]
        for quantity in unsaid:
            if conflicts(quantity, part.quantities) or conflicts(quantity, left):
                return Conflict(quantity.text, part.text)
    return None


class _Part(NamedTuple):
    """A sentence of a premise, with its quantities and the words outside them."""

    text: str
    quantities: tuple[Quantity, ...]
    words: frozenset[str]


@lru_cache(maxsize=256)
def _parts(premise: str) -> tuple[_Part, ...]:
    read = ((text, read_quantities(text)) for text in sentences(premise))
    return tuple(
        _Part(text, quantities, _other_words(text, quantities)) for text, quantities in read if quantities
    )


def _other_words(text: str, quantities: Sequence[Quantity]) -> frozenset[str]:
    """Return the words outside quantities."""
    rest, end = [], 0
    for quantity in quantities:
        rest.append(text[end : quantity.start])
        end = quantity.end
    return frozenset(plain_words(" ".join([*rest, text[end:]])))


def _share_words(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared > 0 and shared >= MIN_SHARED * max(len(one), len(other))
