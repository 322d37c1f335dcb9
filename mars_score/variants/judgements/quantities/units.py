"""Look up units and currencies: their dimensions, and their factors to a base unit by pint."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pint

# Units of pint that follow numbers in texts. Most of its other names are ordinary words.
_UNITS = frozenset([
    "meter", "inch", "foot", "yard", "mile", "nautical_mile", "light_year", "gram", "metric_ton", "ton", "pound",
    "ounce", "stone", "carat", "second", "minute", "hour", "day", "week", "fortnight", "month", "year", "liter",
    "cup", "pint", "quart", "gallon", "tablespoon", "teaspoon", "fluid_ounce", "cubic_centimeter", "acre",
    "hectare", "mile_per_hour", "kilometer_per_hour", "knot", "byte", "bit", "bit_per_second", "watt",
    "horsepower", "watt_hour", "joule", "calorie", "british_thermal_unit", "electron_volt", "newton", "volt",
    "ampere", "ohm", "hertz", "revolutions_per_minute", "decibel", "mole", "pascal", "bar", "millimeter_Hg",
    "meter_Hg", "standard_atmosphere", "pound_force_per_square_inch", "degree", "degree_Celsius",
    "degree_Fahrenheit", "kelvin",
])  # fmt: skip
# Units with prefixes.
_METRIC = frozenset([
    "meter", "gram", "second", "liter", "byte", "bit", "bit_per_second", "watt", "watt_hour", "joule", "calorie",
    "electron_volt", "newton", "volt", "ampere", "ohm", "hertz", "mole", "pascal", "bar",
])  # fmt: skip
_PREFIXES = {
    "", "kilo", "mega", "giga", "tera", "hecto", "deci", "centi", "milli", "micro", "nano", "kibi", "mebi", "gibi",
}  # fmt: skip
# Names that pint lacks or misreads. A symbol that is more often another word is no unit ("").
_ALIASES = {
    "kilo": "kilogram", "kilos": "kilogram", "kgs": "kilogram", "kms": "kilometer", "kmh": "kilometer_per_hour",
    "cms": "centimeter", "mls": "milliliter", "mth": "month", "mths": "month", "mo": "month", "mos": "month",
    "wk": "week", "wks": "week", "gramme": "gram", "kilogramme": "kilogram", "centigrade": "degree_Celsius",
    "celsius": "degree_Celsius", "fahrenheit": "degree_Fahrenheit", "\u00b0c": "degree_Celsius",
    "\u00b0f": "degree_Fahrenheit", "\u00b0": "degree", "db": "decibel", "kts": "knot", "kt": "knot", "h": "hour",
    "kb": "kilobyte", "mb": "megabyte", "gb": "gigabyte",
    "tb": "terabyte", "kbps": "kilobit_per_second", "mbps": "megabit_per_second", "gbps": "gigabit_per_second",
    **dict.fromkeys(("in", "a", "b", "d", "k", "n", "pt", "pts"), ""),
}  # fmt: skip
_DIMENSIONS = {  # pint's names of dimensions -> ours
    "[length]": "length", "[mass]": "mass", "[time]": "duration", "[length] ** 3": "volume",
    "[length] ** 2": "area", "[length] / [time]": "speed", "[temperature]": "temperature", "dimensionless": "data",
}  # fmt: skip
_BASES = {"dimensionless": "bit", "[temperature]": "degree_Celsius"}  # base units that differ from pint's
_COUNTED = ("decibel", "degree", "revolutions_per_minute")
YEAR_SECONDS = 365.25 * 86400.0
# Plurals without the s, too.
_YEARS = {"decade": 10, "century": 100, "centurie": 100, "millennium": 1000, "millennia": 1000}
CALENDAR = frozenset({"month", "year", "decade", "century", "millennium"})  # units of varying length

SYMBOLS = {
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD",
    "R$": "BRL", "$": "dollar", "\u20ac": "EUR", "\u00a3": "GBP", "\u00a5": "JPY", "\u20b9": "INR",
    "\u20a9": "KRW", "\u20bd": "RUB", "\u20aa": "ILS", "\u20ba": "TRY", "\u20b4": "UAH", "\u20ab": "VND",
    "\u0e3f": "THB", "\u20b1": "PHP", "\u20a6": "NGN",
}  # fmt: skip
_CODES = frozenset([
    "USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "AUD", "CAD", "NZD", "HKD", "SGD", "TWD", "KRW", "SEK", "NOK",
    "DKK", "ISK", "CZK", "PLN", "HUF", "RON", "RUB", "UAH", "TRY", "ILS", "AED", "SAR", "EGP", "ZAR", "NGN", "KES",
    "BRL", "MXN", "ARS", "CLP", "COP", "IDR", "MYR", "VND", "THB", "PHP",
])  # fmt: skip
# A name that several currencies share maps to a word in lower case.
_NAMES = {
    "dollar": "dollar", "buck": "dollar", "euro": "EUR", "pound": "GBP", "quid": "GBP", "yen": "JPY",
    "rupee": "INR", "yuan": "CNY", "franc": "franc", "crown": "crown", "krona": "crown", "kronor": "crown",
    "krone": "crown", "kroner": "crown", "koruna": "crown", "peso": "peso", "won": "KRW", "rouble": "RUB",
    "ruble": "RUB", "shekel": "ILS", "lira": "TRY", "zloty": "PLN", "forint": "HUF", "baht": "THB", "rand": "ZAR",
    "dirham": "AED",
}  # fmt: skip
_CENTS = {"cent": "cent", "penny": "GBP", "pence": "GBP"}
_SHARED = {  # shared name -> currencies
    "dollar": {"USD", "AUD", "CAD", "NZD", "HKD", "SGD", "TWD"},
    "franc": {"CHF"},
    "crown": {"SEK", "NOK", "DKK", "CZK", "ISK"},
    "peso": {"MXN", "PHP", "ARS", "CLP", "COP"},
    "cent": {"USD", "AUD", "CAD", "NZD", "HKD", "SGD", "EUR", "ZAR", "dollar"},
}


NATIONS = {
    "US": "USD", "U.S.": "USD", "American": "USD", "Canadian": "CAD", "Australian": "AUD", "Swiss": "CHF",
    "British": "GBP", "Swedish": "SEK", "Norwegian": "NOK", "Danish": "DKK", "Czech": "CZK", "Mexican": "MXN",
}  # fmt: skip


class Unit(NamedTuple):
    """A unit. ``factor`` and ``offset`` convert a value to the base unit of the dimension."""

    name: str
    dimension: str
    factor: float
    offset: float = 0.0

    def base(self, value: float) -> float:
        """Convert a value to the base unit."""
        return value * self.factor + self.offset


NO_UNIT = Unit("", "number", 1.0)
SHARE = Unit("percent", "share", 0.01)
POINTS = Unit("percentage point", "percentage point", 1.0)
DATE, YEAR, WEEKDAY, CLOCK = (Unit("", name, 1.0) for name in ("date", "year", "weekday", "clock"))


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint  # takes a third of a second

    return pint.UnitRegistry()


@lru_cache(maxsize=4096)
def unit_of(word: str) -> Unit | None:
    """Return the unit with a name or symbol, such as "kilometres", "kWh" or "°C", or None."""
    word = unicodedata.normalize("NFKC", re.sub(r"(?i)^degrees? |(?<=\u00b0)\s", "", word.strip(" .-")))
    if word in ("C", "F"):
        word = f"\u00b0{word}"
    lower = word.lower()
    if (many := lower.removesuffix("s")) in _YEARS or lower in _YEARS:
        name = lower if lower in _YEARS else many
        return Unit(name, "duration", _YEARS[name] * YEAR_SECONDS)
    known = _ALIASES.get(lower)
    # Symbols may differ by case (mW and MW), but texts in capitals have only one: "25 KM".
    in_any_case = len(word) > 3 or (len(word) > 1 and word.isupper())
    names = [known] if known is not None else [word, *([lower] if in_any_case else [])]
    return next((unit for name in names if name and (unit := _unit(name))), None)


def _unit(name: str) -> Unit | None:
    registry = _registry()
    try:
        readings = registry.parse_unit_name(name) or registry.parse_unit_name(name.removesuffix("s"))
    except (ValueError, AttributeError):
        return None
    known = (one for one in readings if one[1] in _UNITS and one[0] in _PREFIXES)
    found = next((one for one in known if not one[0] or one[1] in _METRIC), None)
    if found is None:
        return None
    full = found[0] + found[1]
    if found[1] in _COUNTED:  # no dimension, or a logarithmic scale
        return Unit(full, found[1], 1.0)
    dimension = str(registry.Quantity(1.0, full).dimensionality)
    base = _BASES.get(dimension) or registry.Quantity(1.0, full).to_base_units().units
    zero, one = (float(registry.Quantity(number, full).to(base).magnitude) for number in (0.0, 1.0))
    return Unit(full, _DIMENSIONS.get(dimension, dimension), one - zero, zero)


@lru_cache(maxsize=4096)
def rate_of(first: str, second: str) -> Unit | None:
    """Return the rate of two units, such as metres per second, or None if one of the names is no unit."""
    above, below = unit_of(first), unit_of(second)
    if not above or not below or above.offset or below.offset:
        return None
    dimension = f"{above.dimension}/{below.dimension}"
    known = {"length/duration": "speed"}
    return Unit(f"{above.name}/{below.name}", known.get(dimension, dimension), above.factor / below.factor)


@lru_cache(maxsize=4096)
def power_of(name: str, exponent: int) -> Unit | None:
    """Return a square or cubic unit of length, or None if the name is no unit of length."""
    unit = unit_of(name)
    if not unit or unit.dimension != "length":
        return None
    return Unit(f"{unit.name}^{exponent}", "area" if exponent == 2 else "volume", unit.factor**exponent)


def currency_of(word: str, nation: str = "") -> Unit | None:
    """Return the currency with a symbol, code or name, perhaps of a nation, or None."""
    word = word.strip()
    lower = word.lower()
    if word.upper() in SYMBOLS or word.upper() in _CODES:
        return Unit("", f"money:{SYMBOLS.get(word.upper(), word.upper())}", 1.0)
    for names, factor in ((_NAMES, 1.0), (_CENTS, 0.01)):
        for name in (lower, lower.removesuffix("s")):
            if name in names:
                return Unit(name, f"money:{NATIONS.get(nation, names[name])}", factor)
    return None


def same_dimension(one: str, other: str) -> bool:
    """Tell whether two dimensions may be the same, as "dollars" may be those of any country."""
    if one == other:
        return True
    a, b = one.removeprefix("money:"), other.removeprefix("money:")
    if a == one or b == other:
        return {one, other} == {"number", "share"}
    return b in _SHARED.get(a, ()) or a in _SHARED.get(b, ())
