"""Compare libraries that parse quantities, and measure how often equal and different values are recognised.

``python -m research.quantities`` prints what each installed library reads in each text: "yes" for the right value
and unit, what it reads instead, or nothing. With ``--groups FILE`` it measures MARS on groups of a ``text``, texts
that say the ``same`` in another notation, texts with ``different`` values, and ``harmless`` changes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from mars_score.variants.judgements.quantities import conflicts, is_said, read_quantities
from research.results import markdown

Reading = tuple[Any, str]  # a value, and the name of its unit or kind
Reader = Callable[[str], list[Reading]]
TEXTS: dict[str, Reading] = {
    "thirty-four": (34, ""),
    "nineteen seventy-four": (1974, ""),
    "two and a half million": (2.5e6, ""),
    "a dozen": (12, ""),
    "8.1bn": (8.1e9, ""),
    "3 000 people": (3000, ""),
    "25 percent": (25, "perc"),
    "one in four": (0.25, ""),
    "5 \u00b5g": (5, "microgram"),
    ".5 mg": (0.5, "milligram"),
    "\u00bd cup": (0.5, "cup"),
    "two kilometres": (2, "kilomet"),
    "25 km/h": (25, "hour"),
    "212 \u00b0F": (212, "f"),
    "90 minutes": (5400, "duration"),
    "an hour and a half": (5400, "duration"),
    "1 h 30 min": (5400, "duration"),
    "\u20ac49.90": (49.9, "euro"),
    "EUR 49.90": (49.9, "euro"),
    "USD 1.2m": (1.2e6, "dollar"),
    "$1.2 million": (1.2e6, "dollar"),
    "21:40": ("21:40", "time"),
    "9:40 p.m.": ("21:40", "time"),
    "half past nine": ("09:30", "time"),
    "3 May 2024": ("2024-05-03", "date"),
    "May 3, 2024": ("2024-05-03", "date"),
    "third place": (3, "ordinal"),
    "3 to 5 days": ((259200, 432000), "duration"),
    "1939-45": ((1939, 1945), ""),
    "at most 8 kg": (8, "kilogram"),
    "version 2.10.3": (None, ""),
    "COVID-19": (None, ""),
    "one of them": (None, ""),
    "(5) million": (None, ""),
}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def _quantulum3(text: str) -> list[Reading]:
    parser = importlib.import_module("quantulum3.parser")
    return [(found.value, found.unit.name) for found in parser.parse(text)]


def _pint(text: str) -> list[Reading]:
    found = importlib.import_module("pint").UnitRegistry()(text)
    return [(found.magnitude, str(found.units))] if hasattr(found, "units") else [(found, "")]


def _words(module: str, function: str, *arguments: object) -> Reader:
    def read(text: str) -> list[Reading]:
        found = str(getattr(importlib.import_module(module), function)(text, *arguments))
        is_number = found.replace(".", "", 1).isdigit()
        return [(float(found), "")] if is_number else [(found, "")][: found != text]

    return read


def _price_parser(text: str) -> list[Reading]:
    price = importlib.import_module("price_parser").Price.fromstring(text)
    names = {"\u20ac": "euro", "EUR": "euro", "$": "dollar", "USD": "dollar"}
    return [] if price.amount is None else [(float(price.amount), names.get(price.currency, str(price.currency)))]


def _dateparser(text: str) -> list[Reading]:
    found = importlib.import_module("dateparser.search").search_dates(text, languages=["en"]) or []
    return [
        (f"{at:%H:%M}" if ":" in text else f"{at:%Y-%m-%d}", "time" if ":" in text else "date") for _, at in found
    ]


def _ctparse(text: str) -> list[Reading]:
    found = importlib.import_module("ctparse").ctparse(text)
    if not found:
        return []
    text = str(found.resolution).removesuffix(" (X/X)").removesuffix(" X:X")
    return [(text[-5:], "time")] if ":" in text else [(text, "date")]


def _recognizers(text: str) -> list[Reading]:
    numbers, units, times = (
        importlib.import_module(f"recognizers_{name}") for name in ("number", "number_with_unit", "date_time")
    )
    found = []
    for name in ("recognize_currency", "recognize_dimension", "recognize_temperature"):
        found += [
            (entity.resolution["value"], entity.resolution["unit"])
            for entity in getattr(units, name)(text, "en-us")
        ]
    for entity in times.recognize_datetime(text, "en-us"):
        value = entity.resolution["values"][0]
        found.append((value.get("value", value.get("timex")), value["type"]))
    for name in ("recognize_percentage", "recognize_number", "recognize_ordinal"):
        found += [
            (entity.resolution["value"], name.partition("_")[2])
            for entity in getattr(numbers, name)(text, "en-us")
        ]
    return found[:1]


READERS: dict[str, Reader] = {
    "quantulum3": _quantulum3,
    "recognizers-text-suite": _recognizers,
    "text2num": _words("text_to_num", "alpha2digit", "en", 0),
    "numerizer": _words("numerizer", "numerize"),
    "number-parser": _words("number_parser", "parse"),
    "word2number": _words("word2number.w2n", "word_to_num"),
    "pint": _pint,
    "price-parser": _price_parser,
    "dateparser": _dateparser,
    "ctparse": _ctparse,
}


def _own(text: str) -> list[Reading]:
    found: list[Reading] = []
    for quantity in read_quantities(text):
        value: Any = quantity.low if quantity.is_single else (quantity.low, quantity.high)
        if quantity.dimension == "clock":
            value = f"{int(quantity.low) // 60:02}:{int(quantity.low) % 60:02}"
        elif quantity.dimension == "date":
            value = "{}-{:02}-{:02}".format(*quantity.parts)
        names = {"clock": "time", "share": "share perc", "money:EUR": "euro", "money:USD": "dollar"}
        is_unit = quantity.dimension in ("mass", "volume", "length", "speed", "temperature")
        value = quantity.written if is_unit or quantity.unit.name == "percent" else value
        found.append((value, quantity.unit.name if is_unit else names.get(quantity.dimension, quantity.dimension)))
    return found


def _cell(read: Reader, text: str, expected: Reading) -> str:
    try:
        found = read(text)
    except Exception:  # Each library has its own errors for texts that it cannot read.
        found = []
    if not found:
        return "yes" if expected[0] is None else ""
    (value, unit), *others = found
    seconds = _SECONDS.get(f"{unit}".lower())
    if expected[1] == "duration" and seconds and isinstance(value, int | float):
        value, unit = value * seconds, "duration"
    if not others and _is_same(value, expected[0]) and expected[1] in f"{unit}".lower():
        return "yes"
    return "; ".join(f"{value} {unit}".strip() for value, unit in found)[:40]


def _is_same(value: Any, expected: Any) -> bool:
    text = f"{value}".rstrip("%")
    if isinstance(expected, tuple):
        return bool(value == expected)
    if isinstance(expected, str):
        return text.startswith(expected)
    try:
        return bool(abs(float(text) - expected) < 1e-6)
    except (TypeError, ValueError):
        return False


def _print_table() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    installed = {}
    for name, read in {**READERS, "mars_score": _own}.items():
        try:
            read("5 km")
        except ImportError:
            continue
        except Exception:  # It is installed but cannot read this.
            pass
        installed[name] = read
    rows = [
        [text, *(_cell(read, text, expected) for read in installed.values())] for text, expected in TEXTS.items()
    ]
    right = [column.count("yes") for column in list(zip(*rows, strict=True))[1:]]
    print(markdown([["text", *installed], *rows, [f"right of {len(TEXTS)}", *map(str, right)]]))


def _measure(file: Path) -> None:
    """Print the shares of texts with an unsaid quantity, and with one that conflicts, by half of the groups."""
    groups = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [["half", "texts", "number", "unsaid", "conflict"]]
    for half in (0, 1):
        chosen = [group for group in groups if hashlib.sha1(group["text"].encode()).digest()[0] % 2 == half]
        for kind in ("same", "harmless", "different"):
            texts = [(text, group["text"]) for group in chosen for text in group[kind]]
            pairs = [(read_quantities(text), read_quantities(known)) for text, known in texts]
            unsaid = fmean(any(not is_said(quantity, known) for quantity in said) for said, known in pairs)
            differ = fmean(any(conflicts(quantity, known) for quantity in said) for said, known in pairs)
            rows.append([str(half), kind, str(len(pairs)), f"{unsaid:.3f}", f"{differ:.3f}"])
    print(markdown(rows))


def main() -> None:
    """Print the table of libraries, or the measurement on groups."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=Path, metavar="FILE", help="JSON Lines of groups to measure on")
    file = parser.parse_args().groups
    if file:
        _measure(file)
    else:
        _print_table()


if __name__ == "__main__":
    main()
