"""Parts of a context that a sentence encoder reads whole."""

from __future__ import annotations

import math
from itertools import pairwise

WORDS = 100  # about 140 tokens: sentence encoders read 256 or more, and were trained with less


def windows(context: str) -> list[str]:
    """The context in as few parts of at most ``WORDS`` words as will do, about equally long; none of a blank one.

    Words are what whitespace separates, and are joined by spaces.
    """
    words = context.split()
    count = math.ceil(len(words) / WORDS)
    cuts = [round(part * len(words) / count) for part in range(count + 1)] if count else [0]
    return [" ".join(words[start:end]) for start, end in pairwise(cuts)]
