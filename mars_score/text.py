"""Split texts into words, passages and windows, and normalise them.

In Chinese and Japanese each character is a word (as in sacreBLEU's tokenizer "zh"); a run of katakana is one word.
Korean has spaces. Thai, Lao, Khmer and Burmese have them between phrases only, and a phrase counts as a word.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

MARKS_AROUND = "\"'()[]{}.,;:!?*_`"  # that touch a word and are no part of it
PASSAGE_BREAK = "\x1e"  # between the passages of a context: ASCII's record separator, which texts do not hold
# For a character class: Han characters, their iteration marks, and hiragana.
CJK = "\u3005-\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_CJK = re.compile(f"[{CJK}]")
# Punctuation belongs to the character that it touches, as it belongs to the word in text with spaces.
_WORD = re.compile(rf"[^\w\s]*[{CJK}][^\w\s]*|[^\s{CJK}]+")
# The letters of a word have their combining marks with them, which \w of Python's own module leaves out.
_PLAIN_WORD = regex.compile(rf"[{CJK}]|[^\W{CJK}]+")
_PAIR_OR_WORD = regex.compile(rf"(?=([{CJK}]{{2}}))|([^\W{CJK}]+(?:'\w+)?)")
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x85\u2028\u2029]")
_PARAGRAPH_BREAK = re.compile(r"[ \t]*\n(?:[ \t]*\n)+[ \t]*")
_LINES = re.compile(r"[ \t]*\n[ \t\n]*")
_SPACES = re.compile(r"[^\S\n\x1e]+")
# Invisible signs. Joiners matter in some scripts and within emoji, but not beside Latin letters.
_FORMAT = regex.compile(
    r"[\p{Cf}--[\u200c\u200d\p{Prepended_Concatenation_Mark}]]|[\u200c\u200d](?![^\x00-\u024f])"
    r"|(?<![^\x00-\u024f])[\u200c\u200d]",
    regex.V1,
)
_SOFT_BREAK = re.compile(r"(?<=\w)\u00ad[^\S\n\x1e]*\n[^\S\n\x1e]*(?=\w)")  # a word over two lines
# A word that was broken at the end of a line, or the first part of "two- and three-storey".
_BROKEN_WORD = re.compile(r"(?<![\w-])([^\W\d_]+)[-\u2010](\s{1,9})([^\W\d_]+)(?!\w)")
_AFTER_PART = frozenset(
    {
        "and",
        "or",
        "nor",
        "to",
        "but",
        "as",
        "than",
        "then",
        "through",
        "versus",
        "vs",
        "und",
        "oder",
        "bis",
        "et",
        "ou",
    }
)
_DISTINCT_PREFIXES = frozenset({"re", "co", "un"})  # re-sign and resign, co-op and coop, un-ionised and unionised
_INVISIBLE = {"Cf", "Cc", "Zs", "Zl", "Zp"}  # categories of Unicode: zero-width characters, controls, spaces


def normalise(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in the form that all models read: NFC, plain white space, no invisible signs.

    Passage breaks are kept. A single line break is a space, as in wrapped text, and blank lines between paragraphs
    become one. With ``keep_lines`` line breaks are kept, as for the turns of a dialogue or the fields of a record.
    """
    text = _LINE_BREAK.sub("\n", unicodedata.normalize("NFC", text))
    if not text.isascii():
        text = _FORMAT.sub("", _SOFT_BREAK.sub("", text))
    text = _SPACES.sub(" ", text)
    if keep_lines:
        text = _LINES.sub("\n", text)
    else:
        paragraphs = _PARAGRAPH_BREAK.split(text)
        text = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    return _SPACES.sub(" ", text).strip()


def joined_lines(text: str, is_word: Callable[[str], bool]) -> str:
    """Join words that were broken by a hyphen at the end of a line: "Tues-" and "day" are "Tuesday".

    The hyphen goes if the two parts are a word together. Else it stays, as in "well-known", and only a line break
    behind it goes. Where a space is all that is left of the line break, only words are joined: the hyphen may be
    a dash, and "two- and three-storey" is no broken word.

    Args:
        text: before or after :func:`normalise`.
        is_word: tells whether a lower-cased string is a word.
    """

    def joined(match: re.Match[str]) -> str:
        left, space, right = match.groups()
        if right in _AFTER_PART or right[0].isupper() > left.isupper():
            return match[0]
        is_distinct = left.lower() in _DISTINCT_PREFIXES and is_word(right.lower())
        if is_word(f"{left}{right}".lower()) and not is_distinct:
            return f"{left}{right}"
        return f"{left}-{right}" if "\n" in space or is_distinct else match[0]

    return _BROKEN_WORD.sub(joined, text)


def is_blank(text: str) -> bool:
    """Tell whether a text has only whitespace and zero-width characters."""
    text = text.strip()
    return not text or (not text.isascii() and all(unicodedata.category(sign) in _INVISIBLE for sign in text))


def whole(text: str) -> str:
    """Replace unpaired surrogates, which UTF-8 cannot hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, length: int | None = None) -> str:
    """Remove line breaks and control characters, and cut the text to ``length`` characters with an ellipsis."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if length is None or len(line) <= length else line[: length - 1] + "…"


# Words


class TaggedWord(NamedTuple):
    """A word of a text: its character span and its universal part-of-speech tag."""

    start: int
    end: int
    pos: str


def split_words(text: str) -> list[str]:
    """Split a text like ``text.split()``, but make a word of each Han character and hiragana."""
    return _WORD.findall(text) if _CJK.search(text) else text.split()


def plain_words(text: str) -> list[str]:
    r"""Split a text into lower-cased runs of ``\w``, but make a word of each Han character and hiragana."""
    return list(_PLAIN_WORD.findall(text.lower()))


def repeated_share(text: str, letters: int, within: int) -> float:
    """Return the share of a text's long words that repeat a word shortly before them, in [0, 1).

    Args:
        text: any text. Case does not count, and two neighbouring Han characters are a long word.
        letters: least number of letters of a long word.
        within: number of long words before a word that it may repeat.
    """
    words = [
        pair or word
        for pair, word in _PAIR_OR_WORD.findall(text.lower().replace("\u2019", "'"))
        if pair or len(word) >= letters
    ]
    repeated, before = 0, dict[str, int]()
    for index, word in enumerate(words):
        repeated += index - before.get(word, -within - 1) <= within
        before[word] = index
    return repeated / len(words) if words else 0.0


def copied_share(text: str, context: str, run: int) -> float:
    """Return the share of a text's words that are copied from the context in runs of at least ``run`` words.

    Of a text that is shorter than ``run`` words, all words must be such a run.
    """
    words = plain_words(text)
    length = min(run, len(words))
    if not length:
        return 0.0
    context_runs = _context_runs(context, length)
    copied = [False] * len(words)
    for start, ngram in enumerate(_ngrams(words, length)):
        if ngram in context_runs:
            copied[start : start + length] = [True] * length
    return sum(copied) / len(words)


@lru_cache(maxsize=8)  # Rows with the same context stand together.
def _context_runs(context: str, length: int) -> frozenset[tuple[str, ...]]:
    return frozenset(_ngrams(plain_words(context), length))


def _ngrams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[first:] for first in range(length)), strict=False)


# Contexts


def passages_of(context: str) -> list[str]:
    """Split a context into its passages, at :data:`PASSAGE_BREAK`."""
    return context.split(PASSAGE_BREAK)


def as_prose(context: str) -> str:
    """Return a context as language models read it, with its passages as paragraphs."""
    return context.replace(PASSAGE_BREAK, "\n\n")


def windows(context: str, size: int) -> list[str]:
    """Cut each passage of a context into as few parts of at most ``size`` words as possible, about equally long.

    White space becomes a space. A blank context has no windows.
    """
    return [window for passage in passages_of(context) for window in _passage_windows(passage, size)]


@lru_cache(maxsize=8)
def _passage_windows(passage: str, size: int) -> tuple[str, ...]:
    words = [word.span() for word in _WORD.finditer(passage)]
    count = math.ceil(len(words) / size)
    cuts = [round(index * len(words) / count) for index in range(count + 1)] if count else [0]
    texts = (passage[words[start][0] : words[end - 1][1]] for start, end in pairwise(cuts))
    return tuple(" ".join(text.split()) for text in texts)
