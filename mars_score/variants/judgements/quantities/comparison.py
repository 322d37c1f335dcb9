"""Compare quantities by value: whether they are equal, follow from others, or contradict others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product

from mars_score.variants.judgements.quantities.quantity import Quantity
from mars_score.variants.judgements.quantities.recognition import read_quantities
from mars_score.variants.judgements.quantities.units import CALENDAR, YEAR_SECONDS, same_dimension

# Relative tolerances
_EXACT = 1e-6  # error of conversion
_CONVERTED = 0.02  # largest error of a value that was converted to another unit and rounded
_ABOUT = 0.03  # smallest range of "about"
_MOST = 0.1  # largest range of "about"
_ROUNDED = 0.02  # "8 billion" may stand for 8.1 billion without "about"
_FAR = 1.5  # factor up to which "more than 3" may be said
_NEAR = 1.1  # factor up to which "just over 3" may be said
_SCALE = 20.0  # °C; smallest value that the tolerance of a temperature is relative to


def equal(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities have the same value, up to their written digits and without their bounds.

    If a quantity has several readings, one that agrees is enough.
    """
    return any(_equal(*pair) for pair in product(one.readings, other.readings))


def _equal(one: Quantity, other: Quantity) -> bool:
    if one.parts and other.parts:
        return one.parts == other.parts
    if not _comparable(one, other):
        return False
    if bool(one.parts) != bool(other.parts) and "number" not in (one.dimension, other.dimension):
        return False
    return all(
        abs(a - b) <= _tolerance(one, other, max(abs(a), abs(b)))
        for a, b in ((one.low, other.low), (one.high, other.high))
    )


def _comparable(one: Quantity, other: Quantity) -> bool:
    """Tell whether two dimensions may be the same. A bare number may be a share or a year."""
    pair = {one.dimension, other.dimension}
    if pair == {"number", "share"}:
        number = one if one.dimension == "number" else other
        share = other if number is one else one
        return number.high <= 1 and not number.counted and share.low <= 1
    return pair == {"number", "year"} or same_dimension(one.dimension, other.dimension)


def _tolerance(one: Quantity, other: Quantity, value: float) -> float:
    if one.dimension == "temperature":
        value = max(value, _SCALE)
    exact = value * _EXACT
    if one.unit.name == other.unit.name or "year" in (one.dimension, other.dimension):
        return exact
    calendar = {name in CALENDAR for name in (one.unit.name, other.unit.name)}
    if one.dimension == "duration" and len(calendar) == 2:  # Months and years have no fixed number of days.
        return value * _CONVERTED
    return max(exact, min(one.error, other.error, value * _CONVERTED))


# Entailment


def is_said(quantity: Quantity, others: Sequence[Quantity]) -> bool:
    """Tell whether a quantity equals one of a premise, or follows from one by rounding or its bound."""
    readings = [reading for other in others for reading in other.readings]
    if quantity.dimension == "pair":
        numbers = {other.low for other in others if other.dimension == "number"} | {1}
        if numbers.issuperset(quantity.parts):
            return True
    return any(_follows(*pair) for pair in product(quantity.readings, readings)) or _is_derived(quantity, others)


def _follows(said: Quantity, known: Quantity) -> bool:
    if said.dimension in ("date", "year", "weekday", "clock") or known.dimension == "date":
        return _time_follows(said, known)
    if _as_bare_number(said, known):
        return True
    if said.parts and known.parts:
        return sorted(said.parts) == sorted(known.parts) or _equal(said, known)
    if said.dimension == "number" and said.low in known.parts and known.dimension in ("pair", "number"):
        return True
    if not _comparable(said, known):
        return False
    if _equal(said, known):
        return not _strict_against(said, known)
    if said.is_single and not known.is_single:
        return said.low in (known.low, known.high)
    return said.is_single and _value_follows(said, known)


def _strict_against(said: Quantity, known: Quantity) -> bool:
    """Tell whether bounds of the same value exclude each other: 8 and more than 8, at least 8 and at most 8."""
    if said.bound in ("", "~"):
        return known.bound in ("<", ">") and not known.near
    if known.bound in ("", "~"):
        return said.bound in ("<", ">") and known.bound == ""
    return said.bound[0] != known.bound[0]


def _value_follows(said: Quantity, known: Quantity) -> bool:
    value, other = said.low, known.low
    size = max(abs(value), abs(other))
    if said.bound in ("", "~"):
        if said.bound == "~" or known.bound == "~" or known.near or said.near:
            return abs(value - other) <= _approximate(said, known, size)
        is_rounder = said.rounding > known.rounding and (
            said.scale > 1 or said.low >= 1000 or known.error < said.error
        )
        return is_rounder and abs(value - other) <= min(said.rounding, size * _ROUNDED)
    reach = _NEAR if said.near else _FAR
    if said.bound[0] == ">":
        return known.bound[:1] != "<" and value <= other <= value * reach
    return known.bound[:1] != ">" and value / reach <= other <= value


def _approximate(said: Quantity, known: Quantity, size: float) -> float:
    return max(size * _ABOUT, min(max(said.rounding, known.rounding), size * _MOST))


def _as_bare_number(said: Quantity, known: Quantity) -> bool:
    """Tell whether one quantity is the other without its unit, as in "aged 34", "at nine" and "number five"."""
    for bare, full in ((said, known), (known, said)):
        if bare.dimension == "number" and full.written == bare.low and bare.is_single and full.is_single:
            is_age = full.dimension == "duration" and full.unit.name == "year"
            is_full_hour = full.dimension == "clock" and not full.low % 60
            if is_age or is_full_hour or full.dimension in ("ordinal", "degree"):
                return not _strict_against(said, known)
    dimensions = {said.dimension, known.dimension}
    if dimensions == {"ordinal", "duration"}:  # an anniversary
        ordinal, duration = (said, known) if said.dimension == "ordinal" else (known, said)
        return math.isclose(duration.low / YEAR_SECONDS, ordinal.low, rel_tol=1e-3)
    return dimensions == {"degree", "temperature"} and said.written == known.written


def _time_follows(said: Quantity, known: Quantity) -> bool:
    if said.dimension == "date" and known.dimension == "date":
        return all(a in (0, b) for a, b in zip(said.parts, known.parts, strict=True)) or _equal(said, known)
    if {said.dimension, known.dimension} == {"date", "year"}:
        date, year = (said, known) if said.dimension == "date" else (known, said)
        return (
            bool(date.parts[0])
            and year.low <= date.parts[0] <= year.high
            and (said is year or not any(date.parts[1:]))
        )
    if not _comparable(said, known) and not _as_bare_number(said, known):
        return False
    if said.dimension == "clock" and known.dimension == "number":
        return _as_bare_number(said, known)
    if {said.dimension, known.dimension} == {"year", "number"}:
        return _equal(said, known)
    if said.is_single and known.is_single:
        reach = 15 if said.dimension == "clock" else 2  # minutes or years
        return _equal(said, known) or (said.bound == "~" and abs(said.low - known.low) <= reach)
    return (said.low <= known.low and known.high <= said.high) or said.low in (known.low, known.high)


def _is_derived(quantity: Quantity, others: Sequence[Quantity]) -> bool:
    """Tell whether a quantity is a time computed from two of a premise, such as the time between two years."""
    if quantity.dimension == "clock":  # half an hour after 6:30
        times = [reading.low for other in others if other.dimension == "clock" for reading in other.readings]
        spans = [other.low / 60 for other in others if other.dimension == "duration"]
        return any(
            (time + sign * span) % 1440 == quantity.low for time in times for span in spans for sign in (1, -1)
        )
    years = [value for other in others if other.dimension == "year" for value in {other.low, other.high}]
    if quantity.dimension == "duration":
        length = quantity.low / YEAR_SECONDS
        return any(math.isclose(abs(a - b), length, rel_tol=0.02) for a in years for b in years if a != b)
    if quantity.dimension == "year" and quantity.is_single:
        spans = [
            other.low / YEAR_SECONDS
            for other in others
            if other.dimension == "duration" and other.low >= YEAR_SECONDS
        ]
        return any(math.isclose(abs(quantity.low - year), span, rel_tol=0.01) for year in years for span in spans)
    return False


# Contradiction


def conflicts(quantity: Quantity, others: Sequence[Quantity]) -> Quantity | None:
    """Return the quantity of a premise that excludes one of a hypothesis, or None if there is none.

    Both have the same dimension and, as plain numbers, count the same things. The caller must check that both
    texts are about the same fact.
    """
    if is_said(quantity, others):
        return None
    candidates = [other for other in others if _differs(quantity, other)]
    rivals = [other for other in others if _is_rival(quantity, other)]
    if not candidates or len(candidates) < len(rivals):  # Another one may be meant.
        return None
    return min(candidates, key=lambda other: abs(other.low - quantity.low))


def differ_in_place(quantity: Quantity, other: Quantity) -> bool:
    """Tell whether a quantity differs from one of a premise at the same place of the same sentence.

    It does not if it follows from the other by rounding or its bound, but two ranges have to be equal.
    """
    if not _is_same_kind(quantity, other):
        return False
    exact = not (quantity.bound or other.bound or quantity.is_single or other.is_single)
    if exact:
        return not equal(quantity, other)
    excluded = all(_excludes(a, b) for a, b in product(quantity.readings, other.readings))
    return excluded and not is_said(quantity, [other])


def _is_rival(quantity: Quantity, other: Quantity) -> bool:
    if quantity.dimension == other.dimension == "number":
        return bool(quantity.counted) and quantity.counted == other.counted
    return _is_same_kind(quantity, other) and "number" not in (quantity.dimension, other.dimension)


def _differs(quantity: Quantity, other: Quantity) -> bool:
    return _is_rival(quantity, other) and all(
        _excludes(a, b) for a, b in product(quantity.readings, other.readings)
    )


def _excludes(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities of a dimension cannot both be true of one thing."""
    if one.dimension == other.dimension == "date":
        return any(a and b and a != b for a, b in zip(one.parts, other.parts, strict=True))
    if one.parts or other.parts:
        return sorted(one.parts) != sorted(other.parts)
    if not same_dimension(one.dimension, other.dimension):
        return True
    if one.dimension in ("weekday", "year", "clock") and not (one.is_single and other.is_single):
        return one.dimension == "year" and (one.high < other.low or other.high < one.low)
    if other.bound not in ("", "~") and not other.near and one.bound in ("", "~"):
        return False  # "10 kg" may be an example beyond a limit.
    if not (one.is_single or other.is_single or one.bound or other.bound):
        return not _equal(one, other)
    (low, high), (least, most) = _interval(one), _interval(other)
    size = max(abs(one.low), abs(other.low))
    margin = _tolerance(one, other, size)
    if "~" in (one.bound, other.bound):
        margin = max(margin, _approximate(one, other, size))
    if not _equal(one, other) and (high < least - margin or most < low - margin):
        return True
    return bool(one.bound and other.bound) and _equal(one, other) and _strict_against(one, other)


def _interval(quantity: Quantity) -> tuple[float, float]:
    """Return the lowest and the highest value that a quantity allows."""
    if quantity.bound[:1] == ">":
        return quantity.low + (quantity.error * 1e-3 if quantity.bound == ">" else 0), math.inf
    if quantity.bound[:1] == "<":
        return -math.inf, quantity.high - (quantity.error * 1e-3 if quantity.bound == "<" else 0)
    return quantity.low, quantity.high


# Notation


def in_notation_of(hypothesis: str, premise: str) -> str:
    """Write each quantity of a hypothesis as the premise writes the same value, and the same bound."""
    known = read_quantities(premise)
    parts, at = [], 0
    for quantity in read_quantities(hypothesis):
        same = [other for other in known if _is_same_kind(quantity, other) and equal(quantity, other)]
        bounded = next((other for other in same if _has_same_bound(quantity, other)), None)
        if bounded:
            start, end, text = _written_with_bound(quantity, bounded, hypothesis, premise)
        elif same and not any(other.text.lower() == quantity.text.lower() for other in known):
            start, end, text = _written(quantity, same[0], hypothesis)
        else:
            continue
        if start >= at:
            parts += [hypothesis[at:start], text]
            at = end
    return "".join([*parts, hypothesis[at:]])


def _has_same_bound(one: Quantity, other: Quantity) -> bool:
    """Tell whether words beside both quantities state the same bound, as "under 10" and "fewer than 10"."""
    are_stated = all(quantity.before or quantity.behind for quantity in (one, other))
    return are_stated and (one.bound, one.near) == (other.bound, other.near)


def _written_with_bound(quantity: Quantity, other: Quantity, text: str, premise: str) -> tuple[int, int, str]:
    """Return the span of a quantity with its bound, and the words of another one with its bound."""
    start, end = quantity.start - quantity.before, quantity.end + quantity.behind
    written = premise[other.start - other.before : other.end + other.behind]
    change = str.upper if text[start].isupper() else str.lower
    return start, end, change(written[0]) + written[1:]


def _is_same_kind(one: Quantity, other: Quantity) -> bool:
    return any(same_dimension(a.dimension, b.dimension) for a, b in product(one.readings, other.readings))


def _written(quantity: Quantity, other: Quantity, text: str) -> tuple[int, int, str]:
    """Return a span of a text and its replacement, which has the notation of another quantity."""
    mine, theirs = _NUMBER_AND_UNIT.fullmatch(quantity.text), _NUMBER_AND_UNIT.fullmatch(other.text)
    written = other.text
    if mine and theirs and quantity.unit.name and other.unit.name:
        if _same_word(mine["unit"], theirs["unit"]):  # Only the number differs: "thirty-four-year-old".
            return quantity.start, quantity.start + len(mine["number"]), theirs["number"]
        if mine["space"] == "-":  # "a 90-minute film"
            written = f"{theirs['number']}-{theirs['unit'].removesuffix('s')}"
    begins = _SENTENCE_START.search(text, max(0, quantity.start - 3), quantity.start)
    if begins:
        written = written[:1].upper() + written[1:]
    elif _CAPITAL_WORD.match(written) and other.dimension not in ("date", "weekday"):
        written = written[:1].lower() + written[1:]
    return quantity.start, quantity.end, written


_NUMBER_AND_UNIT = re.compile(r"(?P<number>.+?)(?P<space>[ -]?)(?P<unit>[A-Za-z]+)")
_SENTENCE_START = re.compile(r"^$|(?<=[.!?]) $|\n$")
_CAPITAL_WORD = re.compile(r"[A-Z][a-z]+\b")


def _same_word(one: str, other: str) -> bool:
    return one.lower().removesuffix("s") == other.lower().removesuffix("s")
