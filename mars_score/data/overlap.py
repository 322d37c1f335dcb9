"""A context beside a candidate: the parts of it that an encoder reads whole, and what was copied from it."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from mars_score.data.contexts import passages_of
from mars_score.data.words import plain_words, word_spans

WINDOW_WORDS = 100  # about 140 tokens: sentence encoders read 256 or more, and were trained with less
RUN_WORDS = 5  # so many words in the same order are no coincidence


def windows(context: str) -> list[str]:
    """The parts of at most ``WINDOW_WORDS`` words in which a context is read; none if it is blank.

    Of each passage as few as will do, about equally long; whitespace becomes a space.
    """
    return [part for passage in passages_of(context) for part in _parts(passage)]


@lru_cache(maxsize=8)  # rows with the same context stand together
def _parts(passage: str) -> tuple[str, ...]:
    words = word_spans(passage)
    count = math.ceil(len(words) / WINDOW_WORDS)
    cuts = [round(part * len(words) / count) for part in range(count + 1)] if count else [0]
    texts = (passage[words[start][0] : words[end - 1][1]] for start, end in pairwise(cuts))
    return tuple(" ".join(text.split()) for text in texts)


def copied_share(text: str, context: str) -> float:
    """The share of a text's words in runs of ``RUN_WORDS`` or more (a shorter text: all) that the context has."""
    words = plain_words(text)
    length = min(RUN_WORDS, len(words))
    if not length:
        return 0.0
    of_context = _runs_of(context, length)
    copied = [False] * len(words)
    for start, run in enumerate(_runs(words, length)):
        if run in of_context:
            copied[start : start + length] = [True] * length
    return sum(copied) / len(words)


@lru_cache(maxsize=8)
def _runs_of(context: str, length: int) -> frozenset[tuple[str, ...]]:
    return frozenset(_runs(plain_words(context), length))


def _runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """All runs of so many words."""
    return zip(*(words[first:] for first in range(length)), strict=False)
