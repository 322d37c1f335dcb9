"""Normalise texts, and split them into words, passages and windows.

Each Chinese or Japanese character is a word (as in sacreBLEU's tokenizer "zh"), but a run of katakana is one word.
Thai, Lao, Khmer and Burmese have spaces between phrases only, so each phrase is a word.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

MARKS_AROUND = "\"'()[]{}.,;:!?*_`"  # punctuation that may touch a word
PASSAGE_BREAK = "\x1e"  # separates the passages of a context: ASCII's record separator, which texts do not contain
# For a character class: Han characters, their iteration marks, and hiragana.
CJK = "\u3005-\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_CJK = re.compile(f"[{CJK}]")
# Punctuation belongs to the character or word that it touches.
_WORD = re.compile(rf"[^\w\s]*[{CJK}][^\w\s]*|[^\s{CJK}]+")
# \w of the module regex includes combining marks, unlike that of re.
_PLAIN_WORD = regex.compile(rf"[{CJK}]|[^\W{CJK}]+")
_PAIR_OR_WORD = regex.compile(rf"(?=([{CJK}]{{2}}))|([^\W{CJK}]+(?:'\w+)?)")
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x85\u2028\u2029]")
_PARAGRAPH_BREAK = re.compile(r"[ \t]*\n(?:[ \t]*\n)+[ \t]*")
_LINES = re.compile(r"[ \t]*\n[ \t\n]*")
_SPACES = re.compile(r"[^\S\n\x1e]+")
# Invisible characters. Joiners matter in some scripts and within emoji, but not beside Latin letters.
_FORMAT = regex.compile(
    r"[\p{Cf}--[\u200c\u200d\p{Prepended_Concatenation_Mark}]]|[\u200c\u200d](?![^\x00-\u024f])"
    r"|(?<![^\x00-\u024f])[\u200c\u200d]",
    regex.V1,
)
_SOFT_BREAK = re.compile(r"(?<=\w)\u00ad[^\S\n\x1e]*\n[^\S\n\x1e]*(?=\w)")  # a soft hyphen at the end of a line
# A word that was broken at the end of a line, or the first part of "two- and three-storey".
_BROKEN_WORD = re.compile(r"(?<![\w-])([^\W\d_]+)[-\u2010](\s{1,9})([^\W\d_]+)(?!\w)")
_AFTER_PART = {
    *("and", "or", "nor", "to", "but", "as", "than", "then", "through", "versus", "vs"),
    *("und", "oder", "bis", "et", "ou"),
}
_DISTINCT_PREFIXES = {"re", "co", "un"}  # re-sign and resign, co-op and coop, un-ionised and unionised
_INVISIBLE = {"Cf", "Cc", "Zs", "Zl", "Zp"}  # Unicode categories of zero-width characters, controls and spaces


def normalise(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in the form that all models read: NFC, plain white space, no invisible characters.

    A single line break becomes a space, and several blank lines become one. With ``keep_lines`` line breaks are
    kept, as for the turns of a dialogue or the fields of data. Passage breaks are always kept.
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


def join_broken_words(text: str, is_word: Callable[[str], bool]) -> str:
    """Join words that were broken by a hyphen at the end of a line: "Tues-" and "day" become "Tuesday".

    The hyphen is removed if both parts together are a word. Otherwise it stays, as in "well-known", and only the
    line break after it is removed. A space after the hyphen stays, too, as the hyphen may be a dash. Parts such as
    those of "two- and three-storey" are never joined.

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
    """Tell whether a text has only white space and invisible characters."""
    text = text.strip()
    return not text or (not text.isascii() and all(unicodedata.category(char) in _INVISIBLE for char in text))


def without_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which UTF-8 cannot hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, length: int | None = None) -> str:
    """Remove line breaks and control characters, and truncate to ``length`` characters with an ellipsis."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if length is None or len(line) <= length else line[: length - 1] + "…"


# Words


class TaggedWord(NamedTuple):
    """The character span of a word, and its universal part-of-speech tag."""

    start: int
    end: int
    pos: str


def split_words(text: str) -> list[str]:
    """Split a text like ``text.split()``, but into single Han characters and hiragana."""
    return _WORD.findall(text) if _CJK.search(text) else text.split()


def plain_words(text: str) -> list[str]:
    r"""Split a text into lower-cased runs of ``\w``, but into single Han characters and hiragana."""
    return list(_PLAIN_WORD.findall(text.lower()))


def repeated_share(text: str, letters: int, within: int) -> float:
    """Return the share of a text's long words that repeat one of the long words before them, in [0, 1).

    Args:
        text: any text. Case is ignored, and two neighbouring Han characters are a long word.
        letters: minimum length of a long word.
        within: number of preceding long words that are compared.
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

    A shorter text must be copied as a whole.
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


@lru_cache(maxsize=8)  # Rows with the same context usually follow each other.
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
    """Split each passage of a context into as few parts as possible, equally long and of at most ``size`` words.

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
