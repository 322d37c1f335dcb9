"""A context beside a candidate: the parts of it that an encoder reads whole, and what was copied from it."""

from __future__ import annotations

import math
import re
from itertools import pairwise

WINDOW_WORDS = 100  # about 140 tokens: sentence encoders read 256 or more, and were trained with less
RUN_WORDS = 5  # so many words in the same order are no coincidence


def windows(context: str) -> list[str]:
    """The context in as few parts of at most ``WINDOW_WORDS`` words as will do, about equally long; none if blank.

    Words are what whitespace separates, and are joined by spaces.
    """
    words = context.split()
    count = math.ceil(len(words) / WINDOW_WORDS)
    cuts = [round(part * len(words) / count) for part in range(count + 1)] if count else [0]
    return [" ".join(words[start:end]) for start, end in pairwise(cuts)]


def copied_share(text: str, context: str) -> float:
    r"""The share of a text's words that lie in runs of ``RUN_WORDS`` or more words that the context has, too.

    Words are lower-cased runs of ``\w``; of a shorter text all of it is one run. 0 for a text without words.
    """
    words, of_context = _words(text), _words(context)
    length = min(RUN_WORDS, len(words))
    if not length:
        return 0.0
    runs = set(zip(*(of_context[start:] for start in range(length)), strict=False))
    copied = [False] * len(words)
    for start, run in enumerate(zip(*(words[first:] for first in range(length)), strict=False)):
        if run in runs:
            copied[start : start + length] = [True] * length
    return sum(copied) / len(words)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
