"""How much a text repeats its words: what degenerate text does, and no similarity sees."""

import re

from mars_score.data.words import CJK

AMONG = 10  # long words before a word among which it is a repetition
LETTERS = 4  # of a long word; most words of fewer are function words, which fluent text repeats, too
_PAIR_OR_WORD = re.compile(rf"(?=([{CJK}]{{2}}))|([^\W{CJK}]+(?:'\w+)?)")


def repetition(text: str) -> float:
    """The share of a text's long words that are among the :data:`AMONG` long words before them, in [0, 1).

    Upper and lower case are the same. Two neighbouring characters of Chinese or Japanese are a long word.
    """
    words = [
        pair or word
        for pair, word in _PAIR_OR_WORD.findall(text.lower().replace("\u2019", "'"))
        if pair or len(word) >= LETTERS
    ]
    repeated = sum(word in words[max(0, place - AMONG) : place] for place, word in enumerate(words))
    return repeated / len(words) if words else 0.0
