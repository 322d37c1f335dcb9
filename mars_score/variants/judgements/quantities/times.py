"""Patterns of dates, years, weekdays and times of day, for texts with numbers in digits."""

from __future__ import annotations

import calendar
import re
from dataclasses import replace

import regex

from mars_score.variants.judgements.quantities.quantity import Quantity
from mars_score.variants.judgements.quantities.units import CLOCK, DATE, WEEKDAY, YEAR, currency_of, unit_of

MONTHS = {  # by their names in lower case
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}
_WEEKDAYS = {
    name.lower(): number
    for names in (calendar.day_name, calendar.day_abbr)
    for number, name in enumerate(names, 1)
} | {"tues": 2, "thur": 4, "thurs": 4}
# These are also verbs, names and abbreviations.
_OTHER_WORDS = frozenset({"may", "march", "mar", "april", "june", "august", "jan", "dec"})
MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))  # a pattern
_MONTH = f"(?P<month>{MONTH_NAMES})"
_FREE = r"(?<![\w#\u00a7^_=/\\.@,:-])"  # A date or time may begin here.
_PERCENT = r"\s?%|\s?per ?cent\b"
_SCALE = "hundred|thousand|million|billion|trillion|dozen"
_YEAR = r"(?P<year>1[1-9]\d\d|20\d\d)(?![\d,]*\d)"
_DATES = [
    regex.compile(
        rf"{_FREE}(?P<day>\d\d?)(?:st|nd|rd|th)?(?:\ of)?\ {_MONTH}\b\.?(?:,?\ {_YEAR})?", regex.I | regex.X
    ),
    regex.compile(
        rf"\b{_MONTH}\b\.?\ (?:the\ )?(?P<day>\d\d?)(?:st|nd|rd|th)?(?!\w|[:.,%]\d|%)(?:(?:,|,?\ of)?\ {_YEAR})?",
        regex.I | regex.X,
    ),
    regex.compile(rf"\b{_MONTH}\b\.?,?\ (?:of\ )?{_YEAR}", regex.I | regex.X),
    regex.compile(r"(?<![\w-])(?P<year>[12]\d{3})-(?P<number>\d\d)-(?P<day>\d\d)(?![\w-]*\d)"),
    regex.compile(
        r"(?<![\w./-])(?P<day>\d\d?)(?P<dot>[./-])(?P<number>\d\d?)(?P=dot)(?P<year>(?:19|20)?\d\d)(?![\w/-]|\.\d)"
    ),
]
_MONTH_ALONE = regex.compile(
    rf"(?:\b(?:in|since|until|till|of|by|last|next|this|every|early|late|mid|from|to|between|during)[ -]\K"
    rf"|\b(?P<unsure>))"
    rf"{_MONTH}\b(?P<point>\.)?",
    regex.IGNORECASE,
)
_WEEKDAY = regex.compile(
    rf"(?:\b(?:on|by|until|till|next|last|every|from|to|since|this|and|or)[ ]\K|\b(?P<unsure>))"
    rf"(?P<day>{'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})s?\b(?P<point>\.)?",
    regex.IGNORECASE,
)
_DAYTIME = (
    r"(?:\s?(?P<half>[ap])(?:\.\s?m\.|\.?m\b)|(?:\ o['\u2019]?clock)?"
    r"(?:\ in\ the\ (?P<part>morning|afternoon|evening)|\ at\ (?P<part>night))|\ o['\u2019]?clock\b)"
)
_CLOCKS = [
    regex.compile(
        rf"""{_FREE}(?P<hour>[01]?\d|2[0-4])(?P<sign>[:.])(?P<minute>[0-5]\d)
        (?!\d|[:.,/]\d|\ (?:each|apiece|per)\b)(?P<daytime>{_DAYTIME})?""",
        regex.I | regex.X,
    ),
    regex.compile(
        rf"""(?:(?<=\b(?:at|until|till|by|about|around|after|before|is|was|,)\ )(?P<count>5|10|20|25)
        |(?<![\w.])(?P<count>5|10|20|25)(?=\ (?:past|to)\ 1?\d{_DAYTIME})
        |\b(?:a\ )?(?P<count>half|quarter)|(?<!\w)(?P<count>\d\d?)\ minutes)\ (?P<way>past|to)\ (?P<hour>1?\d)
        (?![.,:]?\d|{_PERCENT}|\ (?:{_SCALE}))(?P<daytime>{_DAYTIME})?""",
        regex.I | regex.X,
    ),
    regex.compile(rf"{_FREE}(?P<hour>1?\d|2[0-4])(?P<daytime>{_DAYTIME})", regex.I | regex.X),
    regex.compile(
        r"(?<=\b(?:at|from|until|till|by|before|after|to)\ )(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)"
        r"\ (?:hours|hrs)\b",
        regex.I | regex.X,
    ),
    regex.compile(r"\b(?:12\ )?(?P<name>noon|midday|midnight)\b", regex.I | regex.X),
]
_AT = re.compile(r"\b(?:at|from|until|till|by|before|after)\s$", re.IGNORECASE)
_TENS = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80,
    "nineties": 90,
}  # fmt: skip
TENS = "|".join(_TENS)
NAMED = f"(?:{MONTH_NAMES})|(?:{'|'.join(_WEEKDAYS)})s?"
_ERA = regex.compile(
    rf"""(?:\b(?P<when>early|mid|late|(?:the\ )?(?:end|beginning|start)\ of)[ -](?:the\ )?)?
    (?:(?<!\w)(?P<century>\d\d?)(?:st|nd|rd|th)[ -]century
    |(?<!\w)(?P<year>1[1-9]\d0|20\d0|['\u2019][2-9]0)['\u2019]?s\b
    |(?<!\w)(?P<hundreds>1[1-9]|20)[ -](?P<tens>{"|".join(_TENS)})\b
    |(?<=\bthe[ -](?:early[ -]|mid[ -]|late[ -])?)(?P<tens>{"|".join(_TENS)})\b)""",
    regex.I | regex.X,
)
_THIRDS = {"early": (0, 5), "start": (0, 4), "beginning": (0, 4), "mid": (3, 8), "late": (5, 10), "end": (6, 10)}
_SHORT_YEAR = regex.compile(r"(?<!\w)['\u2019](?P<year>\d\d)(?!\w|['\u2019])")


def _at(match: regex.Match[str], value: float, high: float | None = None, **fields: object) -> Quantity:
    start, end = match.span()
    return Quantity(start, end, match[0], value, value if high is None else high, **fields)  # type: ignore[arg-type]


def _year(text: str) -> int:
    """Read a year of four digits, or of two digits from 1950 to 2049."""
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 50 else 1900)


def _date(match: regex.Match[str]) -> Quantity | None:
    fields = match.groupdict()
    name = (fields.get("month") or "").lower()
    day, year = int(fields.get("day") or 0), _year(fields["year"]) if fields["year"] else 0
    if (
        name in _OTHER_WORDS
        and not year
        and match["month"].islower()
        and not re.search(r"\d(?:st|nd|rd|th)", match[0])
    ):
        return None
    month = MONTHS[name] if name else int(fields["number"])
    readings = [(year, month, day)]
    if fields.get("dot"):
        readings.append((year, day, month))  # American, with the month first
    found = [
        _at(match, year, unit=DATE, parts=parts)
        for parts in dict.fromkeys(readings)
        if parts[1] <= 12 and parts[2] <= 31
    ]
    return replace(found[0], also=tuple(found[1:])) if found else None


def _month(match: regex.Match[str]) -> Quantity | None:
    name = match["month"].lower()
    is_name = len(name) > 3 and name not in _OTHER_WORDS and name != "sept"
    if match["month"].islower() and name in _OTHER_WORDS:
        return None
    if match["unsure"] is not None and not is_name and not (match["point"] and name != "may"):
        return None
    return _at(match, 0, unit=DATE, parts=(0, MONTHS[name], 0))


def _weekday(match: regex.Match[str]) -> Quantity | None:
    name = match["day"].lower()
    is_short = not name.endswith("day")
    if is_short and (
        match["day"].islower()
        or (match["unsure"] is not None and not _GOES_ON.match(match.string, match.end("day")))
    ):
        return None
    quantity = _at(match, _WEEKDAYS[name], unit=WEEKDAY)
    if is_short or not match["point"]:
        return quantity
    return replace(quantity, end=quantity.end - 1, text=quantity.text[:-1])  # without the end of the sentence


_GOES_ON = re.compile(r"\.,? [a-z\d]")  # after an abbreviation; "The Sun." is none


def _clock(match: regex.Match[str]) -> Quantity | None:
    fields = match.groupdict()
    if name := fields.get("name"):
        return _at(match, 0 if name.lower() == "midnight" else 720, unit=CLOCK, written=12)
    hour, minute = int(match["hour"]), int(fields.get("minute") or 0)
    if fields.get("sign") == "." and not match["daytime"] and not _is_at_time(match):
        return None
    if way := fields.get("way"):
        count = {"half": 30, "quarter": 15}.get(match["count"].lower()) or int(match["count"])
        if hour > 12 or (way.lower() == "to" and match["count"].lower() == "half"):
            return None
        hour, minute = (hour, count) if way.lower() == "past" else ((hour - 2) % 12 + 1, 60 - count)
    half = (fields.get("half") or "").lower() or _half(fields.get("part"), hour)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    value = hour % 24 * 60 + minute
    is_either = not half and "daytime" in fields and 1 <= hour <= 12 and not match["hour"].startswith("0")
    also = (_at(match, (value + 720) % 1440, unit=CLOCK, written=hour),) if is_either else ()
    return _at(match, value, unit=CLOCK, written=hour, also=also)


def _is_at_time(match: regex.Match[str]) -> bool:
    """Tell whether a number such as 8.30 follows a word such as "at", and no unit follows."""
    if not _AT.search(match.string, 0, match.start()):
        return False
    behind = _AMOUNT.match(match.string, match.end())
    return not (behind and (not behind["word"] or unit_of(behind["word"]) or currency_of(behind["word"])))


_AMOUNT = regex.compile(  # the rest of "9.30 to 10.15 metres"
    rf"""(?:\s?(?:-|\u2013|to|and|or)\s?\d+(?:\.\d+)?)?
    (?:\s?[%\u2030\u00b0$\u20ac\u00a3\u00a5] | [ -](?:{_SCALE}|points?|percent|a\ share)\b
    | [ -]?(?P<word>[^\W\d_]+))""",
    regex.VERBOSE,
)


def _half(part: str | None, hour: int) -> str:
    """Return "a" or "p" (as in a.m. and p.m.) for a part of the day, or "" without one."""
    if part and part.lower() == "night":
        return "p" if 6 <= hour < 12 else "a"
    return {"morning": "a", "afternoon": "p", "evening": "p"}.get((part or "").lower(), "")


def _era(match: regex.Match[str]) -> Quantity:
    """Read a century or a decade, or the early, middle or late part of one."""
    if match["century"]:
        first, length = (int(match["century"]) - 1) * 100, 100
    elif match["year"]:
        first = _year(match["year"].lstrip("'\u2019"))
        length = 100 if first % 100 == 0 and first != 2000 else 10
    else:
        first, length = int(match["hundreds"] or 19) * 100 + _TENS[match["tens"].lower()], 10
    when = (match["when"] or "").lower()
    low, high = next((share for word, share in _THIRDS.items() if word in when), (0, 10))
    return _at(match, first + length * low // 10, first + length * high // 10 - 1, unit=YEAR)


def _short_year(match: regex.Match[str]) -> Quantity:
    return _at(match, _year(match["year"]), unit=YEAR)


DATES = tuple((pattern, _date) for pattern in _DATES)
CLOCKS = tuple((pattern, _clock) for pattern in _CLOCKS)
YEARS = ((_ERA, _era), (_SHORT_YEAR, _short_year))
NAMES = ((_MONTH_ALONE, _month), (_WEEKDAY, _weekday))  # names of months and days without a number
