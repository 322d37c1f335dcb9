"""Bounds of quantities: at least, at most, about and the like, by the words before and behind them."""

from __future__ import annotations

import re
from dataclasses import replace

import regex

from mars_score.variants.judgements.quantities.quantity import Quantity

_REACH = 60  # characters before a quantity in which its bound stands
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "": "", "~": "~"}
_END = r"(?:the |an? |about |the age of |the value of )?$"
_MORE = r"more than|greater than|higher than|longer than|older than|larger than|over|above|in excess of|upwards? of|beyond|exceed(?:s|ed|ing)?"
_LESS = r"(?:less|fewer|lower|shorter|younger|smaller) than|under|below|short of"
_BEFORE = [  # (a form, bound, near), the longer ones first
    (rf"(?:just|slightly|a little|little|a bit|marginally) (?:{_MORE})", ">", True),
    (
        rf"(?:just|slightly|a little|little|a bit|marginally) (?:{_LESS})|nearly|almost|not quite|close to|just short of",
        "<",
        True,
    ),
    (
        r"at least|no(?:t)? (?:less|fewer|lower|shorter|younger|earlier|sooner) than|(?:a )?minimum(?: of)?|min\.?|\u2265|>=|not before",
        ">=",
        False,
    ),
    (
        r"at (?:the )?most|no(?:t)? (?:more|greater|higher|longer|older|later|larger) than|up to|(?:a )?maximum(?: of)?|max\.?|within|\u2264|<=",
        "<=",
        False,
    ),
    (r"(?:minimum|lowest|least)\b(?: [\w'-]+){0,4} (?:is|of|was|are|at)", ">=", False),
    (r"(?:maximum|limit|cap|ceiling|highest)\b(?: [\w'-]+){0,4} (?:is|of|was|are|at)", "<=", False),
    (rf"{_MORE}|>|well over", ">", False),
    (rf"{_LESS}|<|not even|not yet|well under", "<", False),
    (
        r"about|around|approximately|approx\.?|roughly|some|circa|ca\.?|c\.|~|\u2248|or so|estimated(?: at)?|an estimated|in the region of",
        "~",
        False,
    ),
]
_FORMS = [(regex.compile(rf"(?<![\w-])(?:{form}) ?{_END}", regex.I), bound, near) for form, bound, near in _BEFORE]
# A negation turns a bound around: of a verb directly before it ("may not weigh more than"), or of people.
_NEGATED = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bcannot)(?: [\w-]+){0,1} $|\b(?:nobody|no one|none|no [\w-]+)(?: [\w-]+){0,1} $",
    re.IGNORECASE,
)
_TIMES = (
    "winter",
    "summer",
    "spring",
    "autumn",
    "season",
    "term",
    "session",
    "weekend",
    "night",
    "morning",
    "evening",
)
_UNTIL = re.compile(r"\bby (?:the end of )?$", re.IGNORECASE)
_BEHIND = [
    (
        regex.compile(
            r"(?: old| of age)?(?:\+|,? (?:or|and) (?:more|older|over|above|higher|longer|up|upwards?|later|onwards?)\b|,? at (?:the )?least\b"
            r"|,? (?:minimum|min\b))", regex.I
        ),
        ">=",
    ),
    (
        regex.compile(
            r"(?: old| of age)?,? (?:(?:or|and) (?:less|fewer|under|younger|below|lower|shorter|earlier)\b|at (?:the )?most\b|(?:maximum|max\b|tops\b))",
            regex.I,
        ),
        "<=",
    ),
]  # fmt: skip


def bounded(quantity: Quantity, text: str) -> Quantity:
    """Return a quantity with the bound that the words around it set."""
    bound, near = _bound(quantity, text)
    also = tuple(replace(one, bound=bound, near=near) for one in quantity.also)
    return replace(quantity, bound=bound, near=near, also=also)


def _bound(quantity: Quantity, text: str) -> tuple[str, bool]:
    for pattern, bound in _BEHIND:
        if pattern.match(text, quantity.end):
            return bound, False
    before = text[max(0, quantity.start - _REACH) : quantity.start]
    if quantity.dimension in ("date", "clock", "weekday", "year") and _UNTIL.search(before):
        return "<=", False
    for pattern, bound, near in _FORMS:
        found = pattern.search(before)
        if found and not (found[0].lower().startswith("over") and _is_time(quantity)):
            negated = (
                not near and not found[0].lower().startswith("no") and _NEGATED.search(before[: found.start()])
            )
            return (_OPPOSITE[bound] if negated else bound), near
    return "", False


def _is_time(quantity: Quantity) -> bool:
    """Tell whether something lasts: "over four winters" says during."""
    return quantity.dimension == "duration" or quantity.counted in _TIMES
