"""Read the quantities of an English text, without numbers that may be something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import regex

from mars_score.variants.judgements.quantities.amounts import AMOUNTS, ARTICLED, pair_of
from mars_score.variants.judgements.quantities.quantity import Quantity
from mars_score.variants.judgements.quantities.times import CLOCKS, DATES, NAMED, NAMES, TENS, YEARS
from mars_score.variants.judgements.quantities.units import NO_UNIT, unit_of
from mars_score.variants.judgements.quantities.words import CARDINALS, ORDINALS, InDigits

_Form = tuple[regex.Pattern[str], Callable[[regex.Match[str]], Quantity | None]]
_TELEPHONES = regex.compile(  # also web and mail addresses
    r"""(?:https?://|www\.)\S+ | (?<!\S)[^\s@]{1,80}@\S+
    | (?<![\w.,$\u20ac\u00a3:'\u2019])(?<!\d[ \u00a0\u202f])0\d{2,15}(?:[ -]\d{2,8}){0,6}
    | \+\d{1,3}[ -]?\(?\d[\d\ ()-]{5,20}\d | \(\d{3}\)\ ?\d{3}[ -]?\d{4} | (?<!\d)\d{3}-\d{4}(?!\d)
    | (?<!\d)\d{3}[ .-]\d{3}[ .-]\d{4}(?!\d) | (?<!\d)\(?\d{3}\)?\ 0\d{3}(?!\d)""",
    regex.VERBOSE,
)
_NUMBERED = (
    r"version|release|build|v\.?|no\.|nos\.|number|item|room|gate|flight|bus|line|route|section|sec\.|chapter"
    r"|page|pp?\.|table|figure|fig\.|article|question|step|part|phase|level|type|class|highway|motorway"
    r"|channel|platform|track|title|paragraph|equation|eq\.|appendix|para\.|psalm|pin|code|id|isbn|zip|tel\.?"
    r"|phone|fax|call"
)
_COUNTS = "per ?cent|million|billion|thousand|hundred|people|times|years?|days?|hours?|minutes?|per"
_IDENTIFIERS = regex.compile(
    rf"""\b(?i:{_NUMBERED})\ ?\(?\#?\d[\w./-]{{0,20}}+(?!\s?%|[ -](?i:{_COUNTS})\b)
    | (?<![\w.])\d{{1,9}}(?:\.\d{{1,9}}){{2,9}}[\w-]{{0,20}}
    | \b(?![A-Z]{{2,3}}\$?\d[\d.,]{{0,15}}(?:m|bn|k|M|B)?\b)[A-Z][A-Za-z]{{0,15}}[-\u2010\u2011]?\d[\w-]{{0,20}}
    | \b[B-HJ-Z][ -]\d+\b | \b24/7\b | \b9/11\b""",
    regex.VERBOSE,
)
_MARKS = (
    regex.compile(  # list marks, citations, losses in accounts, margins of error, powers, durations with seconds
        r"""(?m:^)\s{0,9}\(?\d{1,2}[.)]\s | [(\[](?!(?:1[1-9]|20)\d\d\))\d[\d.,]{0,15}[)\]]
    | (?<!\d)\d[\d.,]{0,15}\s?\u00b1\s?\d[\d.,]{0,15} | (?<!\d)\d{1,15}(?:\^|\*\*)-?\d+
    | (?<!\d)\d{1,15}[\u00b9\u00b2\u00b3] | (?<![\d:])\d{1,2}(?::\d\d){2,4}""",
        regex.VERBOSE,
    )
)
_PHRASES = regex.compile(  # phrases with ordinals that count nothing
    r"""\b\d{1,3}(?:st|nd|rd|th)[ -](?:to[ -])?last\b | \blast\ but\ (?:one|\d)\b
    | \b(?:1st|2nd|3rd|4th|first)\ quarters?\b
    | \b3rd[ -](?:part(?:y|ies)|world|person)\b | \b2nd[ -](?:hand|nature|thoughts?|guess\w*)
    | \bquarter[- ](?:points?|finals?)\b""",
    regex.VERBOSE | regex.IGNORECASE,
)


def _no_quantity(match: regex.Match[str]) -> Quantity:
    return Quantity(match.start(), match.end(), "", 0.0, 0.0)


_FORMS: tuple[_Form, ...] = (
    (_TELEPHONES, _no_quantity),
    *DATES,
    *CLOCKS,
    *YEARS,
    *((pattern, _no_quantity) for pattern in (_IDENTIFIERS, _MARKS, _PHRASES)),
    *AMOUNTS,
    *NAMES,
)


@lru_cache(maxsize=4096)
def read_quantities(text: str) -> tuple[Quantity, ...]:
    """Read the quantities of an English text, in order."""
    found, at = [], 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        found += [_at(quantity, text, at + quantity.start, at + quantity.end) for quantity in _read(text[at:end])]
        at = end
    return tuple(found)


_LONGEST = 5000  # most characters of a sentence; a longer one is no prose and takes too long
# Roughly the end of a sentence, where no quantity goes on. A capital is rare after an abbreviation.
_SENTENCE_END = re.compile(r"\n+|(?<=[a-z]{3}[.!?])\s+(?=[A-Z])")
_MAY_HAVE = re.compile(
    rf"""[\d\u00bc-\u00be\u2150-\u215e]|\b(?:half|quarters?|(?:{CARDINALS})|(?:{ORDINALS}|second)s?|dozens?
    |twice|noon|midday|midnight|a\ (?:couple|pair|score|gross)|an?\ (?:{ARTICLED})
    |{NAMED}|{TENS})\b""",
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=4096)
def _read(sentence: str) -> tuple[Quantity, ...]:
    if len(sentence) > _LONGEST or not _MAY_HAVE.search(sentence):
        return ()
    found = sorted(_found(InDigits(sentence), sentence), key=lambda quantity: quantity.start)
    return tuple(bounded(quantity, sentence) for quantity in _joined(found, sentence))


def _found(digits: InDigits, original: str) -> Iterable[Quantity]:
    """Yield the quantities. Where patterns overlap, the first one counts."""
    claimed = bytearray(len(digits.text))
    for pattern, read in _FORMS:
        at = 0
        while match := pattern.search(digits.text, at):
            quantity = None if claimed[match.start()] else read(match)
            at = max(quantity.end if quantity else 0, match.start() + 1)
            if not quantity or any(claimed[quantity.start : quantity.end]):
                continue
            claimed[quantity.start : quantity.end] = b"\1" * (quantity.end - quantity.start)
            if quantity.text:
                yield _at(quantity, original, *digits.original_span(quantity.start, quantity.end))


def _at(quantity: Quantity, text: str, start: int, end: int) -> Quantity:
    also = tuple(replace(one, start=start, end=end, text=text[start:end]) for one in quantity.also)
    return replace(quantity, start=start, end=end, text=text[start:end], also=also)


# Quantities of several numbers

_RANGE = re.compile(r"\s?[-\u2010-\u2015\u2212]\s?|\s+to\s+|-to-|\s+or\s+|\s+and\s+")
_BETWEEN = re.compile(r"\bbetween $", re.IGNORECASE)
_FROM = re.compile(r"\bfrom (?:about |around )?$", re.IGNORECASE)
_COMPOUND = re.compile(r"\s|\s?,?\s?and\s|,\s")


def _joined(found: list[Quantity], text: str) -> list[Quantity]:
    """Join the parts of ranges, scores and compounds such as "1 h 30 min"."""
    joined: list[Quantity] = []
    for quantity in found:
        one = _join(joined[-1], quantity, text) if joined else None
        if one is None:
            joined.append(quantity)
        else:
            joined[-1:] = one
    return joined


def _join(first: Quantity, second: Quantity, text: str) -> list[Quantity] | None:
    """Join two adjacent quantities, or None if they are separate."""
    between = text[first.end : second.start]
    if len(between) > 6 or not first.is_single or not second.is_single:
        return None
    if _COMPOUND.fullmatch(between) and (total := _compound(first, second, between, text)):
        return [total]
    if not _RANGE.fullmatch(between):
        return None
    word = between.strip(" -\u2010\u2011\u2012\u2013\u2014\u2015\u2212").lower()
    start = first.start
    if word == "and":
        before = _BETWEEN.search(text, max(0, start - 8), start)
        if not before:
            return None
        start = before.start()
    return _range(first, second, word, start, text)


def _range(first: Quantity, second: Quantity, word: str, start: int, text: str) -> list[Quantity] | None:
    """Return the range or the score of two quantities, or both in one unit, or None if they are unrelated."""
    span = (start, second.end, text[start : second.end])
    if first.dimension == "year" and second.dimension in ("number", "year") and second.written < 100 and not word:
        last = first.low - first.low % 100 + second.written
        return [_ranged(first, first.low, last, span)] if last > first.low else None
    pair = _in_one_unit(first, second)
    if not pair:
        return None
    low, high = pair
    are_numbers = low.dimension == "number" and low.low.is_integer() and high.low.is_integer()
    parts = (int(low.low), int(high.low)) if are_numbers and word not in ("and", "or") else ()
    has_unit = first.dimension not in ("number", "year", "date", "weekday", "clock")
    is_change = word == "to" and has_unit and _FROM.search(text, max(0, start - 12), start)
    if low.low < high.low and not is_change:
        return [replace(_ranged(high, low.low, high.low, span), parts=parts)]
    return [pair_of(*span, parts)] if len(parts) == 2 else [low, high]


_UNITLESS = ("clock", "ordinal", "weekday", "pair")


def _in_one_unit(first: Quantity, second: Quantity) -> tuple[Quantity, Quantity] | None:
    """Give a bare number the unit and scale of the other, or None if they have different dimensions."""
    kinds = first.dimension, second.dimension
    if "date" in kinds:
        return None
    if kinds[0] != "number" and first.unit.name != second.unit.name and kinds[1] != "number":
        return None
    if kinds[0] != kinds[1] and ("number" not in kinds or kinds[0] in _UNITLESS or kinds[1] in _UNITLESS):
        return None
    if kinds[0] == "number" != kinds[1]:
        scale = second.scale if first.scale == 1 else 1.0
        return (
            first.in_unit(second.unit, scale) if kinds[1] != "year" else replace(first, unit=second.unit)
        ), second
    if kinds[1] == "number" != kinds[0]:
        if not kinds[0].startswith("money"):
            return None
        second = second.in_unit(first.unit)
    if first.scale == 1 < second.scale:
        first = first.in_unit(first.unit, second.scale)
    return first, second


def _ranged(quantity: Quantity, low: float, high: float, span: tuple[int, int, str]) -> Quantity:
    return replace(quantity, start=span[0], end=span[1], text=span[2], low=low, high=high, also=())


def _compound(first: Quantity, second: Quantity, between: str, text: str) -> Quantity | None:
    """Return the sum of a quantity and one in a smaller unit, or None if they are no sum."""
    is_money = first.dimension.startswith("money") and first.text[-1:].isalpha()
    follows = second.dimension == "number" and between == " "  # a bare number, as in "one metre 80"
    is_two_digits = 10 <= second.written < 100 and not second.counted
    if is_money and follows and is_two_digits:
        second = replace(second, low=second.written / 100, unit=first.unit._replace(factor=0.01))
    elif first.unit.name == "meter" and first.text[-1:].isalpha() and follows:
        if not is_two_digits:
            return None
        second = second.in_unit(unit_of("cm") or NO_UNIT)
    elif first.unit.name == "foot" and follows and not second.counted:
        second = second.in_unit(unit_of("inch") or NO_UNIT)
    elif first.dimension != second.dimension and not (is_money and second.unit.name in ("cent", "penny", "pence")):
        return None
    factor, smaller = first.unit.factor, second.unit.factor
    if first.dimension not in ("duration", "length", "mass") and not is_money:
        return None
    if not smaller < factor or second.low >= factor * 1.0001 or not first.written.is_integer():
        return None
    low = first.low + second.low
    return replace(
        first, end=second.end, text=text[first.start : second.end], low=low, high=low, written=low / factor,
        error=second.error, rounding=second.error, also=(),
    )  # fmt: skip


# Bounds


_REACH = 60  # characters before a quantity that are searched for a bound
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "": "", "~": "~"}
_END = r"(?:the\ |an?\ |about\ |the\ age\ of\ )?$"
_MORE = (
    r"(?:more|greater|higher|longer|older|larger)\ than|over|above|beyond|in\ excess\ of|upwards?\ of"
    r"|exceed(?:s|ed|ing)?"
)
_LESS = r"(?:less|fewer|lower|shorter|younger|smaller)\ than|under|below|short\ of"
_IS = r"\b(?:\ [\w'-]+){0,4}\ (?:is|of|was|are|at)"  # "limit for hand luggage is"
_JUST = r"(?:just|slightly|a\ little|little|a\ bit|marginally)"
# Words before a quantity, its bound, and whether it is close to it; longer patterns first.
_WORDS_BEFORE = [
    (rf"{_JUST}\ (?:{_MORE})", ">", True),
    (rf"{_JUST}\ (?:{_LESS})|nearly|almost|not\ quite|close\ to", "<", True),
    (
        r"at\ least|not?\ (?:less|fewer|lower|shorter|younger|earlier|sooner)\ than|not\ before|\u2265|>=",
        ">=",
        False,
    ),
    (r"at\ (?:the\ )?most|not?\ (?:more|greater|higher|longer|older|later|larger)\ than|\u2264|<=", "<=", False),
    (rf"(?:a\ )?minimum(?:\ of)?|min\.?|(?P<noun>(?:minimum|lowest|least){_IS})", ">=", False),
    (r"(?:a\ )?maximum(?:\ of)?|max\.?|up\ to|within", "<=", False),
    (rf"(?P<noun>(?:maximum|limit|cap|ceiling|highest){_IS})", "<=", False),
    (rf"{_MORE}|>|well\ over", ">", False),
    (rf"{_LESS}|<|not\ even|not\ yet|well\ under", "<", False),
    (r"about|around|approximately|approx\.?|roughly|some|circa|ca\.?|c\.|~|\u2248", "~", False),
    (r"(?:an\ )?estimated(?:\ at)?|in\ the\ region\ of", "~", False),
]
_BEFORE = [
    (regex.compile(rf"(?<![\w-])(?:{form})\ ?{_END}", regex.IGNORECASE | regex.VERBOSE), bound, near)
    for form, bound, near in _WORDS_BEFORE
]
# A negation reverses a bound, if it negates the verb before it ("may not weigh more than") or people ("no one").
_NEGATED = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bcannot)(?: [\w-]+)? $|\b(?:nobody|no one|none|no [\w-]+)(?: [\w-]+)? $",
    re.IGNORECASE,
)
_TIMES = ("winter", "summer", "spring", "autumn", "season", "term", "session", "weekend", "night", "morning")
_BY = re.compile(r"\bby (?:the end of )?$", re.IGNORECASE)
_BEHIND = [
    (
        re.compile(
            r"(?: old| of age)?(?:\+|,? (?:or|and) (?:more|older|over|above|higher|longer|up|upwards?|later)\b"
            r"|,? at (?:the )?least\b|,? min(?:imum)?\b)",
            re.IGNORECASE,
        ),
        ">=",
    ),
    (
        re.compile(
            r"(?: old| of age)?,? (?:(?:or|and) (?:less|fewer|under|younger|below|lower|shorter|earlier)\b"
            r"|at (?:the )?most\b|max(?:imum)?\b|tops\b)",
            re.IGNORECASE,
        ),
        "<=",
    ),
]


class _Bound(NamedTuple):
    """The fields of a quantity about its bound."""

    bound: str = ""
    near: bool = False
    before: int = 0
    behind: int = 0


def bounded(quantity: Quantity, text: str) -> Quantity:
    """Return a quantity with its bound."""
    bound = _bound(quantity, text)._asdict()
    return replace(quantity, **bound, also=tuple(replace(one, **bound) for one in quantity.also))


def _bound(quantity: Quantity, text: str) -> _Bound:
    for pattern, bound in _BEHIND:
        if found := pattern.match(text, quantity.end):
            return _Bound(bound, behind=len(found[0]))
    before = text[max(0, quantity.start - _REACH) : quantity.start]
    if quantity.dimension in ("date", "clock", "weekday", "year") and (found := _BY.search(before)):
        return _Bound("<=", before=len(found[0]))
    for pattern, bound, near in _BEFORE:
        found = pattern.search(before)
        if found and not (found[0].lower().startswith("over") and _is_time(quantity)):
            may_be_negated = not near and not found[0].lower().startswith("no")
            if may_be_negated and _NEGATED.search(before[: found.start()]):
                return _Bound(_OPPOSITE[bound])
            has_noun = found.groupdict().get("noun") is not None
            return _Bound(bound, near, before=0 if has_noun else len(found[0]))
    return _Bound()


def _is_time(quantity: Quantity) -> bool:
    """Tell whether a quantity is a period, as "over" then means "during"."""
    return quantity.dimension == "duration" or quantity.counted in _TIMES
