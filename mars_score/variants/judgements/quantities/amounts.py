"""Patterns of numbers with units, money, shares, ratios and ordinals, for texts with numbers in digits."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import regex

from mars_score.variants.judgements.quantities.quantity import Quantity
from mars_score.variants.judgements.quantities.units import (
    NATIONS,
    NO_UNIT,
    POINTS,
    SHARE,
    YEAR,
    Unit,
    currency_of,
    power_of,
    rate_of,
    unit_of,
)

_S = "[ \u00a0\u202f]"
_DASH = "[-\u2010-\u2015\u2212]"
_FREE = rf"(?<![\w#\u00a7^_=/\\.@\u00b1])(?<![^\d%]{_DASH})(?<!\d[,:\u2032'])"  # where a number may begin
_PERCENT = rf"{_S}?%|{_S}?\u2030|[ -]?per[ ]?cent\b|[ -]pct\b\.?|[ -]per[ ]?mille\b"
_SCALE = "hundred|thousand|million|billion|trillion|dozen"
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0, "k": 1e3,
    "m": 1e6, "mn": 1e6, "mln": 1e6, "mio": 1e6, "b": 1e9, "bn": 1e9, "tn": 1e12, "trn": 1e12,
}  # fmt: skip
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "twentieth": 20, "hundredth": 100, "3rd": 3,
    **{f"{number}th": number for number in (4, 5, 6, 7, 8, 9, 10, 20, 100)},
}  # fmt: skip
ARTICLED = (  # units that often follow an article
    "second|minute|hour|day|week|fortnight|month|year|decade|century|millennium|metre|meter|kilometre"
    "|kilometer|mile|foot|inch|yard|acre|gram|kilo|kilogram|tonne|ton|pound|ounce|litre|liter|pint|gallon|cup"
    "|tablespoon|teaspoon"
)
_VULGAR = "[\u00bc-\u00be\u2150-\u215e]"
_SYMBOL = "[$\u20ac\u00a3\u00a5\u0e3f\u20a6-\u20bd]"
_FIGURES = rf"""(?:
    \d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,12}})?
  | \d{{1,6}},\d{{1,2}}(?={_S}?(?:\u20ac|EUR\b|euros?\b))
  | \d{{1,3}}(?:[\u00a0\u202f'\u2019\ ]\d{{3}})+(?!\d)
  | \d{{0,15}}\.\d{{1,12}}
  | \d{{1,15}}
  | one(?=\ and\ (?:an?|1|one)\ (?:half|quarter)\b)
)(?!\d)"""
_AMOUNT = regex.compile(
    rf"""{_FREE}
    (?:(?P<currency>(?:US|AU?|CA?|NZ|HK|S|R)?\$|{_SYMBOL}|[A-Z]{{3}}(?={_S}?[\d.])){_S}?)?
    (?P<sign>(?<![\w)])[-\u2212](?=[\d.])|(?<!\d\ )(?i:minus|negative)\ )?
    (?:
      (?i:(?:(?P<tops>\d{{1,3}}|an?|one)[ -])?(?P<part>{"|".join(_PARTS)})(?P<parts>s?)\b)
      (?P<of>(?i:\ of\ an?\b|\ an?\b))?
    | (?P<number>{_FIGURES})
      (?:{_S}?(?P<vulgar>{_VULGAR})
      | (?:(?P<over>[/\u2044])|[ -](?P<top>\d)[/\u2044])(?P<below>\d{{1,2}})(?![\d/,.]))?
      (?P<more>(?i:\ and\ (?:an?|1|one)\ (?:half|quarter|3rd)\b|\ and\ 3\ quarters\b))?
      (?P<of>(?i:\ an?\b)(?<=\d/\d\ an?))?
    | (?P<vulgar>{_VULGAR})(?P<of>(?i:\ of\ an?\b|\ an?\b))?
    | (?i:(?P<article>an?)(?=[ -](?:{ARTICLED}|{_SCALE})\b)|(?P<article>one)(?=[ -]))
    )
    (?:(?:{_S}|-|(?<=\d))
      (?P<scale>(?i:(?:{_SCALE})\b|(?:k|mn|mln|mio|bn|tn|trn)\b\.?)|[mMB]\b(?!{_S}?/|\ per\ |[23\u00b2\u00b3^])))?
    (?:(?P<percent>(?i:(?:{_PERCENT})(?P<points>\ points?\b)?|[ -]percentage(?P<points>\ points?\b)))
    | (?:{_S}|-|(?<=\d)(?!(?:s|st|nd|rd|th)\b))(?:(?i:full|whole|entire|solid)\ )?
      (?:(?P<power>(?i:square|sq\.?|cubic))\ )?(?:(?P<nation>{"|".join(NATIONS)})\ )?
      (?P<unit>{_SYMBOL}|\u00b0{_S}?[CFcf]?|(?i:degrees?\ (?:celsius|centigrade|fahrenheit|[CF])\b)
        |[A-Za-z\u00b5\u03bc]{{1,20}})
      (?P<exponent>[\u00b2\u00b3]|\^?[23](?!\w))?
      (?P<per>(?:{_S}?/{_S}?|\ per\ |\ an?\ )(?P<rate>[A-Za-z]{{1,12}})\b)?
    )?""",
    regex.VERBOSE,
)
_MORE = re.compile(r"[ -]and[ -](?:an?|1|one)[ -](half|quarter)\b| and 3 quarters\b")
# After these words "an hour" is a quantity. Elsewhere it may be a rate.
_BEFORE_ARTICLE = (
    "for|in|within|after|about|around|take|takes|took|last|lasts|lasted|than|of|to|by|over|under|nearly"
    "|almost|need|needs|needed|wait|only|just|is|was|be|exactly|every|least|most|weigh|weighs|until|add|and"
    "|whole|roughly|approximately|some|up"
)
_ARTICLE = regex.compile(rf"^$|\b(?:{_BEFORE_ARTICLE})[ ]$", regex.IGNORECASE)
_BEFORE_YEAR = (
    r"in|since|until|till|from|by|of|year|years|after|before|during|around|about|circa|c\.|early|late|mid"
    r"|between|and|to|season|spring|summer|autumn|fall|winter|for|back|last|than|into|through|election"
)
_BEFORE = regex.compile(rf"\b(?:{_BEFORE_YEAR})[ -]$|[(]$|\d[-\u2013]$|, $", regex.IGNORECASE)
_YEAR = re.compile(r"1[1-9]\d\d|20\d\d")
_TO_YEAR = re.compile(r"[-\u2013]\d\d\b|\s?[-\u2013]\s?(?:1[1-9]|20)\d\d\b| to (?:1[1-9]|20)\d\d\b")
_PLURAL = re.compile(r" (?:[a-z]+ )?(?:[a-z]+s|people|men|women|children)\b")
_LONG = re.compile(r"\s(?:long|wide|high|tall|deep|away|from|above|below|apart|and|or|of|in|at|to|thick)\b")
_ONE_IN = regex.compile(
    rf"""{_FREE}(?P<top>\d{{1,3}}|one)\ (?:in|out\ of)(?:\ every)?\ (?P<below>\d{{1,3}}(?:,\d{{3}})*)
    (?![\w%]|[.,:]\d|[ ](?:{_SCALE})|{_PERCENT})""",
    regex.I | regex.X,
)
_RATIO = regex.compile(r"(?<![\w.,:/-])(?P<a>\d{1,5})\s?:\s?(?P<b>\d{1,3}(?:,\d{3})+|\d{1,6})(?![\w:/]|[.,]\d)")
_ORDINAL = regex.compile(r"(?<![\w.,-])(?P<number>\d{1,4})(?:st|nd|rd|th)\b", regex.IGNORECASE)
_PLACE = re.compile(r"[ -](?:place|prize|rank|position)\b", re.IGNORECASE)
ORDINAL, PAIR = Unit("", "ordinal", 1.0), Unit("", "pair", 1.0)


FRACTION, PER_MILLE = Unit("", "share", 1.0), Unit("per mille", "share", 0.001)
_Value = tuple[float, float, float]  # a number, half of its last digit, and half of its last digit other than 0


def _number(text: str) -> _Value:
    if text.lower() == "one":
        text = "1"
    if re.fullmatch(r"\d+,\d\d?", text):
        text = text.replace(",", ".")
    plain = re.sub(r"[,'\u2019 \u00a0\u202f]", "", text)
    decimals = len(plain.partition(".")[2])
    zeros = 0 if decimals or not float(plain) else len(plain) - len(plain.rstrip("0"))
    return float(plain), 0.5 * 10.0**-decimals, 0.5 * 10.0 ** (zeros - decimals)


def _value(match: regex.Match[str]) -> _Value | None:
    """Return the value of an amount without scale and unit, or None if the match is no amount."""
    if match["article"]:
        return 1.0, 0.5, 0.5
    if match["part"]:
        top = (match["tops"] or "one").lower()
        return (int(top) if top.isdigit() else 1) / _PARTS[match["part"].lower()], 0.0, 0.0
    if not match["number"]:
        return unicodedata.numeric(match["vulgar"]), 0.0, 0.0
    value, error, rounding = _number(match["number"])
    if match["below"]:
        below = int(match["below"])
        is_fraction = match["top"] or (match["number"].isdigit() and int(match["number"]) <= 2 * below)
        if not below or "0" in (match["below"][0], match["number"][0]) or not is_fraction:
            return None  # 28/2 and 12/05 are dates.
        return (value / below if match["over"] else value + int(match["top"]) / below), 0.0, 0.0
    if match["vulgar"]:
        return value + unicodedata.numeric(match["vulgar"]), 0.0, 0.0
    return (value + _more(match["more"]), 0.0, 0.0) if match["more"] else (value, error, rounding)


def _more(words: str) -> float:
    return 0.75 if "3 quarters" in words else 0.5 if "half" in words else 0.25 if "quarter" in words else 1 / 3


def _units(match: regex.Match[str]) -> tuple[list[Unit], int]:
    """Return the possible units after a number, and where they end."""
    if match["percent"]:
        sign = match["percent"].lower()
        unit = POINTS if match["points"] else PER_MILLE if "\u2030" in sign or "mille" in sign else SHARE
        return [unit], match.end("percent")
    name = match["unit"]
    if not name:
        return [], 0
    if match["power"] or match["exponent"]:
        is_cubic = (match["power"] or "").lower() == "cubic" or (match["exponent"] or "")[-1:] in ("3", "\u00b3")
        power = power_of(name, 3 if is_cubic else 2)
        return ([power], match.end("exponent") if match["exponent"] else match.end("unit")) if power else ([], 0)
    currency = currency_of(name, match["nation"] or "")
    if match["nation"] and not currency:
        return [], 0
    if match["rate"] and not currency and (rate := rate_of(name, match["rate"])):
        return [rate], match.end("rate")
    return [one for one in (unit_of(name), currency) if one], match.end("unit")


def _scale(match: regex.Match[str], units: list[Unit]) -> tuple[float, int]:
    """Return the factor of the scale after a number, and where it ends. The "m" of metres has the factor 1."""
    word = match["scale"]
    if not word:
        return 1.0, 0
    factor, end = _SCALES[word.lower().rstrip(".")], match.end("scale")
    is_money = any(unit.dimension.startswith("money") for unit in units)
    if len(word.rstrip(".")) > 1 or is_money:
        return factor, end
    is_apart = match.string[match.start("scale") - 1] in " -\u00a0\u202f"
    if word == "m":
        counts = _PLURAL.match(match.string, end) and not _LONG.match(match.string, end)
        return (factor if counts and not is_apart else 1.0), end
    return (1.0, 0) if is_apart else (factor, end)


def read_amount(match: regex.Match[str]) -> Quantity | None:
    """Read a number with its sign, scale and unit."""
    value = _value(match)
    units, scale, end = _unit_and_scale(match)
    if value is None or not _is_amount(match, end, bool(units), scale):
        return None
    text, sign = match.string, -1.0 if match["sign"] else 1.0
    if below := _BELOW_ZERO.match(text, end):
        named = unit_of(below["behind"] or "") or unit_of(below["before"] or "")
        sign, end, units = -1.0, below.end(), [named] if named else units
    if units and value[0].is_integer() and (more := _MORE.match(text, end)):  # an hour and a half
        value, end = (value[0] + _more(more[0]), 0.0, 0.0), more.end()
    plain = Quantity(
        match.start(), end, text[match.start() : end], 0.0, 0.0, NO_UNIT, sign * value[0], 1.0, error=value[1],
        rounding=value[2],
    )  # fmt: skip
    readings = [plain.in_unit(unit, scale) for unit in units or [_plain_unit(match, scale, end)]]
    if match["scale"] == "m" and scale > 1 and units == [NO_UNIT]:  # 11.5m viewers, or metres
        readings += [plain.in_unit(unit) for unit in [unit_of("m")] if unit]
    if _THREE_DECIMALS.fullmatch(match["number"] or "") and not match["currency"]:
        readings += [one.in_unit(one.unit, 1000.0) for one in readings]
    counted = None if any(unit.name for unit in units) else _COUNTED.match(text, end)
    return replace(
        readings[0], also=tuple(readings[1:]), counted=counted[1].lower().removesuffix("s") if counted else ""
    )


def _unit_and_scale(match: regex.Match[str]) -> tuple[list[Unit], float, int]:
    """Return the possible units of an amount, the factor of its scale, and where both end."""
    units, unit_end = _units(match)
    if match["currency"]:
        currency = currency_of(match["currency"])
        units, unit_end = [currency] if currency and not currency.name else [], 0  # not the word in "WON 52 %"
    scale, scale_end = _scale(match, units)
    if match["scale"] == "m" and not units:
        metre, unit_end = unit_of("m"), 0
        units = [NO_UNIT] if scale > 1 or not metre else [metre]
    return units, scale, max(unit_end if units else 0, scale_end, _number_end(match))


def _number_end(match: regex.Match[str]) -> int:
    groups = ("number", "vulgar", "below", "more", "parts", "article")
    return int(max(match.end(group) for group in groups))


def _plain_unit(match: regex.Match[str], scale: float, end: int) -> Unit:
    text = match.string
    if match["part"] and scale == 1:
        return FRACTION
    is_year = (
        scale == 1
        and _YEAR.fullmatch(match["number"] or "")
        and end == match.end("number")
        and (_BEFORE.search(text, max(0, match.start() - 20), match.start()) or _TO_YEAR.match(text, end))
        and not _COUNTS.match(text, end)
    )
    return YEAR if is_year else NO_UNIT


def _is_amount(match: regex.Match[str], end: int, has_unit: bool, scale: float) -> bool:
    """Tell whether a match is an amount, by the words around it."""
    text, before = match.string, match.string[max(0, match.start() - 40) : match.start()]
    is_plain = not has_unit and scale == 1 and not match["part"]
    if _JOINED.match(text, end) or (match["currency"] and not has_unit):
        return False
    if is_plain and _NAME.search(before) and not _COUNTED.match(text, end) and not _RANGE.match(text, end):
        return False
    if match["article"]:
        if match["article"].lower() == "one":
            return has_unit or scale != 1
        is_sum = has_unit and ((match["rate"] and end == match.end("rate")) or _MORE.match(text, end))
        return bool(scale != 1 or is_sum or (has_unit and _ARTICLE.search(before)))
    if match["part"] and not has_unit and scale == 1:
        if match["part"].lower() == "half" and not match["tops"]:
            return bool(_OF_ALL.match(text, end)) and not _ORDINAL_BEFORE.search(before)
        if match["tops"] and before.lower().endswith(" and ") and not match["tops"].isdigit():
            return False  # part of a sum that was not read
        if match["part"].lower() in ("half", "quarter") or match["parts"]:
            return not _NO_PART.match(text, end)
        return bool(match["tops"]) and bool(_OF_OR_END.match(text, end))
    return True


_SCALE_NAME = "celsius|fahrenheit|centigrade"
_BELOW_ZERO = re.compile(
    rf"(?: (?P<before>{_SCALE_NAME}))? below (?:zero|freezing)(?: (?P<behind>{_SCALE_NAME}|[CF])\b)?",
    re.IGNORECASE,
)
_THREE_DECIMALS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_NOT_COUNTED = (
    "on|in|at|of|for|to|and|or|by|with|from|the|an|but|as|per|is|was|were|are|has|had|have|who|that|which"
    "|when|while|if|so|than|then|after|before|since|until|because|although|though|he|she|it|they|we|you|his"
    "|her|its|their|not|there|then|now|here|more|will|would|can|could|may|might|must|should|into|up|out|over"
    "|under|about|during|each|both|all"
)
_COUNTED = re.compile(rf"[ -](?!(?:{_NOT_COUNTED})\b)([A-Za-z]{{2,30}})\b", re.IGNORECASE)
_COUNTS = re.compile(
    r" (?!(?:was|is|has|as|its|this|does|his|always|across|plus|versus)\b)(?:[a-z]+s|people|men|women|children)\b"
)
_JOINED = re.compile(r"['\u2019]\w|[\w^\u00b0\u00b1]|[.,:/]\d|\s?\u00b1|\s?\*\*\s?\d")
_NAME = re.compile(r"[\w,;] (?!(?:I|It|He|She|We|They|By|In|On|At|The)\b)[A-Z][a-z]+ $")  # Windows 10, Formula 1
_RANGE = re.compile(r"\s?[-:\u2013]\d| to \d|-\d")
_OF_ALL = re.compile(r" (?:of|the|his|her|its|their|our|my|your|all|these|those)\b", re.IGNORECASE)
_ORDINAL_BEFORE = re.compile(
    r"(?:\d(?:st|nd|rd|th)|first|second|other|each|either|better|latter)[ -]$", re.IGNORECASE
)
_NO_PART = re.compile(r"-[a-z]|[ -](?:past|to \d|points?|finals?|time|term|hour)\b", re.IGNORECASE)
_OF_OR_END = re.compile(r" of\b|\s*[.,;:)!?]|\s*$", re.IGNORECASE)


def read_one_in(match: regex.Match[str]) -> Quantity | None:
    """Read a share such as "one in four" and "six out of ten"."""
    top = 1 if match["top"].lower() == "one" else int(match["top"])
    below = int(match["below"].replace(",", ""))
    following = _COUNTED.match(match.string, match.end())
    is_odd = top > 20 and below not in (50, 100, 1000)  # "110 in 132 in"
    if top >= below or is_odd or (following and unit_of(following[1])):
        return None
    share = top / below
    return Quantity(match.start(), match.end(), match[0], share, share, FRACTION, share)


def read_ratio(match: regex.Match[str]) -> Quantity:
    """Read a score or a ratio such as 3:1."""
    parts = (int(match["a"]), int(match["b"].replace(",", "")))
    return pair_of(match.start(), match.end(), match[0], parts)


def pair_of(start: int, end: int, text: str, parts: tuple[int, int]) -> Quantity:
    """Return a score or ratio of two numbers."""
    return Quantity(start, end, text, parts[0], parts[1], PAIR, parts=parts)


def read_ordinal(match: regex.Match[str]) -> Quantity | None:
    """Read an ordinal. "First" counts only as in "first place", as it is mostly another word."""
    number = int(match["number"])
    if number == 1 and not _PLACE.match(match.string, match.end()):
        return None
    return Quantity(match.start(), match.end(), match[0], number, number, ORDINAL, number)


AMOUNTS = ((_RATIO, read_ratio), (_ONE_IN, read_one_in), (_AMOUNT, read_amount), (_ORDINAL, read_ordinal))
