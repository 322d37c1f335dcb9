"""Read the bounds of quantities, such as at least, at most and about, from the words around them."""

from __future__ import annotations

import re
from dataclasses import replace

import regex

from mars_score.variants.judgements.quantities.quantity import Quantity

_REACH = 60  # characters before a quantity that are searched for a bound
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "": "", "~": "~"}
_END = r"(?:the\ |an?\ |about\ |the\ age\ of\ )?$"
_MORE = (
    r"(?:more|greater|higher|longer|older|larger)\ than|over|above|beyond|in\ excess\ of|upwards?\ of"
    r"|exceed(?:s|ed|ing)?"
)
_LESS = r"(?:less|fewer|lower|shorter|younger|smaller)\ than|under|below|short\ of"
_JUST = r"(?:just|slightly|a\ little|little|a\ bit|marginally)"
_BEFORE = [  # pattern, bound, and whether the value is close to it; longer patterns first
    (rf"{_JUST}\ (?:{_MORE})", ">", True),
    (rf"{_JUST}\ (?:{_LESS})|nearly|almost|not\ quite|close\ to", "<", True),
    (
        r"at\ least|not?\ (?:less|fewer|lower|shorter|younger|earlier|sooner)\ than|not\ before|\u2265|>=",
        ">=",
        False,
    ),
    (r"at\ (?:the\ )?most|not?\ (?:more|greater|higher|longer|older|later|larger)\ than|\u2264|<=", "<=", False),
    (
        r"(?:a\ )?minimum(?:\ of)?|min\.?|(?:minimum|lowest|least)\b(?:\ [\w'-]+){0,4}\ (?:is|of|was|are|at)",
        ">=",
        False,
    ),
    (r"(?:a\ )?maximum(?:\ of)?|max\.?|up\ to|within", "<=", False),
    (r"(?:maximum|limit|cap|ceiling|highest)\b(?:\ [\w'-]+){0,4}\ (?:is|of|was|are|at)", "<=", False),
    (rf"{_MORE}|>|well\ over", ">", False),
    (rf"{_LESS}|<|not\ even|not\ yet|well\ under", "<", False),
    (r"about|around|approximately|approx\.?|roughly|some|circa|ca\.?|c\.|~|\u2248", "~", False),
    (r"(?:an\ )?estimated(?:\ at)?|in\ the\ region\ of", "~", False),
]
_FORMS = [
    (regex.compile(rf"(?<![\w-])(?:{form})\ ?{_END}", regex.IGNORECASE | regex.VERBOSE), bound, near)
    for form, bound, near in _BEFORE
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


def bounded(quantity: Quantity, text: str) -> Quantity:
    """Return a quantity with its bound."""
    bound, near = _bound(quantity, text)
    also = tuple(replace(one, bound=bound, near=near) for one in quantity.also)
    return replace(quantity, bound=bound, near=near, also=also)


def _bound(quantity: Quantity, text: str) -> tuple[str, bool]:
    for pattern, bound in _BEHIND:
        if pattern.match(text, quantity.end):
            return bound, False
    before = text[max(0, quantity.start - _REACH) : quantity.start]
    if quantity.dimension in ("date", "clock", "weekday", "year") and _BY.search(before):
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
    """Tell whether a quantity is a period, as "over" then means "during"."""
    return quantity.dimension == "duration" or quantity.counted in _TIMES
