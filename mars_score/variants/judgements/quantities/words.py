"""Write number words in digits: "thirty-four", "the second of June", "nineteen seventy-four"."""

import re
from bisect import bisect_right
from functools import lru_cache

import regex
from text_to_num import alpha2digit

_SMALL = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    "|eighteen|nineteen"
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SCALES = "hundred|thousand|million|billion|trillion"
ORDINALS = (
    "first|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
    "|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|fortieth|fiftieth|sixtieth|seventieth"
    "|eightieth|ninetieth|hundredth|thousandth"
)
CARDINALS = f"{_SMALL}|{_TENS}|{_SCALES}"
_CARDINAL = rf"(?:{_SMALL}|{_TENS}|{_SCALES})"
# "second" is a duration after a number and "per", and after "a" unless a noun follows.
_NOT_BEHIND_SECOND = "of|in|and|or|at|on|to|later|after|before|with|from|for|by|so|as|than|is|was"
_SECOND = (
    rf"(?<!\b(?:{_SMALL}|{_TENS}|{_SCALES}|per|half a|split|\d)[ -])(?<!\ba )second\b"
    rf"|(?<=\ba )second(?= (?!(?:{_NOT_BEHIND_SECOND})\b)[a-z])"
)
_ONE_PAIR = (  # a pair of these is one thing
    "trousers|pants|jeans|shorts|tights|leggings|glasses|spectacles|goggles|scissors|pliers|tweezers|tongs"
    "|binoculars|headphones|pyjamas|pajamas|shoes|socks|boots|gloves|trainers|sneakers"
)
_NUMBER = regex.compile(
    rf"(?<![\w-])(?:(?:{_SMALL}|{_TENS})|(?<!\b(?:half|of) )an? (?=(?:{_SCALES})\b)(?:{_SCALES}))\b"
    rf"(?:(?:[ -]|(?<=\b(?:{_SCALES})) and ){_CARDINAL}\b)*"
    rf"(?:(?:(?<=\b(?:{_TENS}|{_SCALES}))[ -]|(?<=\b(?:{_SCALES})) and )(?:{ORDINALS})\b"
    rf"|(?<=\b(?:{_TENS}))-second\b)?"
    rf"|(?<![\w-])(?:(?:{ORDINALS})\b|{_SECOND})|\ba (?:couple|pair|score|gross) of\b(?! (?:{_ONE_PAIR})\b)"
    r"|\btwice\b(?! (?:as|the|his|her|its|their|that|this)\b)",
    regex.IGNORECASE,
)
_NAMED = {"a couple of": "2", "a pair of": "2", "a score of": "20", "a gross of": "144", "twice": "2 times"}
_YEAR = re.compile(r"(1[1-9]|20) (\d\d)")
_ONE = re.compile(rf"(?: to |-to-| or |-| and )(?:\d|{_SMALL}|{_TENS})", re.IGNORECASE)


class InDigits:
    """Writes the number words of a text in digits, as ``text``."""

    def __init__(self, original: str) -> None:
        parts, at, length = [], 0, 0
        self._changes = [(0, 0, 0, 0)]  # start and end in the new text, start and end in the original
        for match in _NUMBER.finditer(original):
            if match[0].lower() == "one" and not _ONE.match(original, match.end()):
                continue  # mostly a pronoun
            if digits := in_digits(match[0]):
                parts += [original[at : match.start()], digits]
                length += match.start() - at
                self._changes.append((length, length + len(digits), match.start(), match.end()))
                length, at = length + len(digits), match.end()
        self.text = "".join([*parts, original[at:]])

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original for a span of the new text."""
        _, new_end, old_start, old_end = self._change(start)
        first = old_start if start < new_end else old_end + start - new_end
        _, new_end, _, old_end = self._change(end - 1)
        return first, old_end if end <= new_end else old_end + end - new_end

    def _change(self, at: int) -> tuple[int, int, int, int]:
        return self._changes[bisect_right(self._changes, at, key=lambda change: change[0]) - 1]


@lru_cache(maxsize=4096)
def in_digits(words: str) -> str | None:
    """Write a number, an ordinal or a year in digits, or None if the words are several numbers."""
    if named := _NAMED.get(words.lower()):
        return named
    digits = str(alpha2digit(re.sub(r"^an? ", "one ", words.lower()), "en", 0))
    if year := _YEAR.fullmatch(digits):
        return year[1] + year[2]
    return digits if re.fullmatch(r"\d+(?:st|nd|rd|th)?", digits) else None
