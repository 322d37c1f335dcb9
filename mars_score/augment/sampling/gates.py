"""Which samples may serve as references, and what is wrong with the others."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from mars_score.data.overlap import copied_share
from mars_score.data.words import split_words

COPIED = 0.9  # share of words in runs that the context has, too
REPEATED = 0.5  # share of trigrams that repeat earlier ones
_SENTENCE_END = re.compile(  # of Chinese and Japanese also within a line
    r"[.!?\u0964\u061f\u06d4][\"'\u2019\u201d)\]]*(?=\s|$)|[\u3002\uff01\uff1f][\"'\u2019\u201d\u300d\u300f)\]\uff09]*"
)
_QUOTES = {'"': '"', "\u201c": "\u201d", "'": "'", "\u300c": "\u300d"}
_SAME_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}  # Japanese is written in all three
_REFUSAL = re.compile(
    r"\b(as an? (ai|artificial|language model)|i'?m (sorry|unable)[^.]*\b(can'?t|cannot|unable|assist)|"
    r"i (can'?t|cannot) (assist|help|provide|fulfill)|i am (a|an) (ai|language model))",
    re.IGNORECASE,
)


def tidy(text: str, *, ended: bool) -> str:
    """The first line of a sample without outer whitespace and quotes, and without an unfinished sentence."""
    text = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not ended:
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        if ends and ends[-1] >= 0.4 * len(text):
            text = text[: ends[-1]]
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text.count(text[0]) <= 2:
        text = text[1:-1].strip()
    return text


def fault_of(text: str, context: str, others: Iterable[str]) -> str | None:
    """Why a sample is dropped, in a word or two; None: it is not."""
    words = split_words(text.lower())
    if not any(character.isalnum() for character in text):
        return "empty"
    if "\ufffd" in text:
        return "broken character"
    if " ".join(words) in {" ".join(split_words(other.lower())) for other in others}:
        return "duplicate"
    if _REFUSAL.search(text):
        return "refusal"
    trigrams = list(zip(words, words[1:], words[2:], strict=False))
    if len(trigrams) >= 6 and 1 - len(set(trigrams)) / len(trigrams) > REPEATED:
        return "repetition"
    if copied_share(text, context) > COPIED:
        return "copy of the context"
    if context and _script(text) != _script(context):
        return "other script"
    return None


def _script(text: str) -> str:
    """The script of most letters, by the first word of their Unicode names; "" without a letter."""
    names = (unicodedata.name(character, "").partition(" ")[0] for character in text if character.isalpha())
    counts = Counter(_SAME_SCRIPT.get(name, name) for name in names)
    return counts.most_common(1)[0][0] if counts else ""
