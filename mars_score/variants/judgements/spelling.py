"""Correct misspelt words of a hypothesis that are nearly words of the premise. English only.

What the text says must not change. So a word stays if it may be meant: if a dictionary or a list of frequent words
has it, if it is short or a code, or if it may be an inflected or derived form of the premise's word.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import OSA, Postfix, Prefix

from mars_score.language import is_english

SHORTEST = 4  # fewest letters of a misspelling, as most shorter strings are words, names or codes
LONGEST = 30  # A longer run of letters is no word.
SHORTEST_SEEN = 5  # fewest letters of a misspelling with a known frequency, which may be a foreign word
SHORTEST_NAME = 6  # fewest letters of a misspelling with a capital, which may be another name
# A misspelling is rarer than the word by this power of ten: "aquired" may be "acquired", but "texting" is not
# "testing".
RARER = 3.0
KNOWN_NAME = 4.0  # log10 of the frequency in 1e9 words that the word for a misspelling with a capital must have

_PART = r"[^\W\d_]+"
# Words with their hyphens, without a possessive ending, and not within addresses, paths and codes.
_WORD = re.compile(
    rf"(?<![\w@#/\\.'\u2019-]){_PART}(?:-{_PART})*(?=['\u2019](?:s\b|\W|$)|(?![\w@/\\'\u2019]|[.-]\w))"
)
_PARTS = re.compile(_PART)
_LETTERS = re.compile(r"[a-z]+(?![\w-])")
# A zero or a one within a word: text recognition confuses them with "o", "l" and "i".
_DIGIT = re.compile(r"(?<![\w-])([A-Za-z]?[a-z]+)([01])([a-z]+)(?![\w-])")
_LETTERS_OF_DIGITS = {"0": "o", "1": "li"}
_LOOKS_LIKE = (("rn", "m"), ("m", "rn"), ("vv", "w"), ("cl", "d"))  # confused by text recognition
# Endings of forms and derivations of a word, and first letters of prefixes (de-, re-, in-, un-, a-).
_ENDING = re.compile(r"(?:[srdn]|rs|y|i[sz]e|is[mt]s?|ings?|[aeio])?")
_PREFIXES = frozenset(("", *"aebcdiru"))
# Prefixes that may change the meaning if a hyphen and a word follow: re-sign, un-ionised, co-op.
_HYPHENATED = re.compile(
    "a|anti|be|bi|co|counter|de|dis|down|ex|extra|fore|il|im|in|inter|ir|micro|mid|mini|mis|multi|non|off|on|out"
    "|over|post|pre|pro|re|self|semi|sub|super|tele|trans|tri|ultra|un|under|up",
    re.IGNORECASE,
)

_CONTRACTED = re.compile(rf"(?=\w{{3}}){_PART}(?:['\u2019]{_PART})?")  # of three letters or more
# These are no misspellings, and no misspelling stands for them.
_NEGATIONS = frozenset(
    {"not", "nor", "none", "never", "cant", "wont", "dont", "isnt", "arent", "wasnt", "werent", "didnt", "doesnt"}
)
_LANGUAGES = ("de", "es", "fr", "it", "nl", "pt")  # languages whose words occur in English texts


class _Premise(NamedTuple):
    """The words of a premise.

    Attributes:
        words: the written form of each lower-cased word, in lower case if it occurs so.
        pairs: two adjacent words by their concatenation in lower case.
        shortened: lower-cased words by each string of :func:`shortened`.
    """

    words: Mapping[str, str]
    pairs: Mapping[str, str]
    shortened: Mapping[str, Sequence[str]]


class Lexicon(NamedTuple):
    """Functions that look up English words, in lower case.

    Attributes:
        is_word: tells whether a dictionary has a string.
        frequency: returns log10 of the frequency in 1e9 words, or 0.0 for an unknown string.
        is_foreign: tells whether a string is a frequent word of another language.
    """

    is_word: Callable[[str], bool]
    frequency: Callable[[str], float]
    is_foreign: Callable[[str], bool]


def _is_word(word: str) -> bool:
    from simplemma import is_known

    return is_known(word, lang="en")


def _frequency(word: str) -> float:
    share = _shares("en", "best").get(word)
    return math.log10(share * 1e9) if share else 0.0


def _is_foreign(word: str) -> bool:
    return any(word in _shares(language, "small") for language in _LANGUAGES)


@cache
def _shares(language: str, wordlist: str) -> Mapping[str, float]:
    """Return the share of each word in the texts of a language."""
    from wordfreq import get_frequency_dict

    return get_frequency_dict(language, wordlist=wordlist)


LEXICON = Lexicon(_is_word, _frequency, _is_foreign)  # simplemma and wordfreq, which load when first used


@lru_cache(maxsize=4096)
def corrected(hypothesis: str, premise: str) -> str:
    """Replace misspellings of the premise's words in a hypothesis.

    A misspelling has an edit distance of one (a letter omitted, added or substituted, or two swapped), joins two
    words, splits a word, adds a hyphen, or is an error of text recognition.
    """
    read = _read(premise)

    def digit(match: re.Match[str]) -> str:
        found = (match[1] + letter + match[3] for letter in _LETTERS_OF_DIGITS[match[2]])
        return next(
            (text for text in found if len(text) >= SHORTEST_SEEN and text.lower() in read.words), match[0]
        )

    text = _joined(_DIGIT.sub(digit, _WORD.sub(lambda match: _corrected_word(match[0], read), hypothesis)), read)
    return text if text == hypothesis or is_english(premise) else hypothesis


def leniently_corrected(hypothesis: str, premise: str) -> str:
    """Replace each word of a hypothesis that may be a misspelling of a word of the premise.

    It may be a word or a name itself, if a letter was omitted, doubled, added or swapped. So the result may say
    something else. A verdict is certain only if it holds for both.
    """
    words = {word.lower(): word for word in _CONTRACTED.findall(premise)}

    def word(match: re.Match[str]) -> str:
        lower = match[0].lower()
        if lower in words or lower in _NEGATIONS:
            return match[0]
        near = [other for other in words if OSA.distance(lower, other, score_cutoff=1) == 1]
        meant = [other for other in near if other not in _NEGATIONS and _may_be_slip(lower, other)]
        return _as_cased(words[meant[0]], match[0]) if meant else match[0]

    return _CONTRACTED.sub(word, hypothesis)


def _may_be_slip(word: str, meant: str) -> bool:
    """Tell whether a string may be a misspelling of a word.

    If the string is a word itself, it must not be a form of that word ("opens" and "open") or differ in one letter
    ("hired" and "fired"), as it is then mostly a wrong word.
    """
    if not LEXICON.is_word(word):
        return True
    exchanged = len(word) == len(meant) and sum(a != b for a, b in zip(word, meant, strict=True)) == 1
    return not exchanged and not _is_derived(word, meant)


@lru_cache(maxsize=256)
def _read(premise: str) -> _Premise:
    words: dict[str, str] = {}
    pairs: dict[str, str] = {}
    found = [part for word in _WORD.finditer(premise) for part in _PARTS.finditer(premise, *word.span())]
    for match in found:
        lower = match[0].lower()
        if words.get(lower, "A") != lower:  # Prefer the form in lower case.
            words[lower] = match[0]
    for first, second in pairwise(found):
        if premise[first.end() : second.start()] == " ":
            pairs.setdefault((first[0] + second[0]).lower(), f"{first[0]} {second[0]}")
    return _Premise(words, pairs, by_shortened(words))


def by_shortened(words: Iterable[str]) -> dict[str, list[str]]:
    """Index words by each string of :func:`shortened`."""
    found = defaultdict(list)
    for word in words:
        for left in shortened(word):
            found[left].append(word)
    return found


def shortened(word: str) -> Iterator[str]:
    """Yield a word, and the word without each letter. Strings at an edit distance of one share one of these."""
    if SHORTEST - 1 <= len(word) <= LONGEST:
        yield word
        yield from {word[:place] + word[place + 1 :] for place in range(len(word))}


def _corrected_word(word: str, premise: _Premise) -> str:
    parts = word.split("-")
    if len(parts) == 1:
        return _nearest(word, premise) or word
    solid = "".join(parts)
    if solid.lower() in premise.words and not (
        _HYPHENATED.fullmatch(parts[0])
        and all(LEXICON.is_word(part) or LEXICON.frequency(part) for part in word.lower().split("-"))
    ):
        return _as_cased(premise.words[solid.lower()], word)
    return "-".join(_nearest(part, premise) or part for part in parts)


def _nearest(word: str, premise: _Premise) -> str | None:
    """Return the word or the two words of the premise that a misspelling stands for, with its capital."""
    lower = word.lower()
    is_lower = word == lower
    if len(word) < SHORTEST or lower in premise.words or not word.isascii() or word[1:] != lower[1:]:
        return None
    if is_lower and lower in premise.pairs and not LEXICON.is_word(lower):
        return premise.pairs[lower]
    similar = {other for left in shortened(lower) for other in premise.shortened.get(left, ())}
    near = [other for other in sorted(similar) if OSA.distance(lower, other, score_cutoff=1) == 1]
    near = near or [read for pair in _LOOKS_LIKE if (read := lower.replace(*pair, 1)) in premise.words]
    if len(near) != 1 or LEXICON.is_word(lower) or not _is_misspelt(lower, near[0], is_lower):
        return None
    return _as_cased(premise.words[near[0]], word)


def _is_misspelt(word: str, meant: str, is_lower: bool) -> bool:
    """Tell whether a lower-cased string that is in no dictionary can only be a misspelling of a word."""
    if not LEXICON.is_word(meant) or _is_derived(word, meant) or LEXICON.is_foreign(word):
        return False
    frequency, of_meant = LEXICON.frequency(word), LEXICON.frequency(meant)
    if not is_lower:
        return len(word) >= SHORTEST_NAME and word[0] == meant[0] and not frequency and of_meant >= KNOWN_NAME
    if not frequency:
        return True
    return len(word) >= SHORTEST_SEEN and word[0] == meant[0] and of_meant - frequency >= RARER


def _is_derived(word: str, meant: str) -> bool:
    """Tell whether a string may be a form or a derivation of a similar word, by its ending or prefix."""
    same = Prefix.similarity(word, meant)
    end, meant_end = word[same:], meant[same:]
    if end and word[same - 1 : same] == end[0] and end[1:] == meant_end:  # A doubled letter is a slip.
        return False
    if _ENDING.fullmatch(end) and _ENDING.fullmatch(meant_end):
        return bool(end) or meant_end in ("s", "y")  # "subword" of "subwords", but not "coffe" of "coffee"
    same = Postfix.similarity(word, meant)
    return {word[: len(word) - same], meant[: len(meant) - same]} <= _PREFIXES


def _joined(text: str, premise: _Premise) -> str:
    """Join two pieces of a lower-case word of the premise if one of them is no word."""
    pieces: list[str] = []
    for second in text.split(" "):
        first = pieces[-1] if pieces else ""
        letters = _LETTERS.match(second)
        whole = first + letters[0] if letters else ""
        if (
            whole in premise.words
            and first.isalpha()
            and whole not in premise.pairs
            and LEXICON.is_word(whole)
            and not (LEXICON.is_word(first) and LEXICON.is_word(whole[len(first) :]))
        ):
            pieces[-1] = first + second
        else:
            pieces.append(second)
    return " ".join(pieces)


def _as_cased(word: str, like: str) -> str:
    """Write a word of the premise with a capital where the misspelling has one."""
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
