"""A link to a question: its texts and settings as query parameters of the page's address."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from mars_score.space.choices import Choices
from mars_score.space.inputs import Inquiry, read_question
from mars_score.space.limits import CANDIDATES, LINK_CHARACTERS, REFERENCES, Refused

_CONTEXT, _REFERENCE, _CANDIDATE = _TEXTS = ("context", "reference", "candidate")
_DEFAULTS = asdict(Choices())
_MOST = {_REFERENCE: REFERENCES, _CANDIDATE: CANDIDATES}  # times; all others once


def to_query(inquiry: Inquiry) -> str:
    """``?context=...&reference=...&candidate=...`` with the settings that differ from the defaults.

    Raises:
        Refused: it would be longer than servers accept.
    """
    question = inquiry.question
    pairs = [(_CONTEXT, question.context)]
    pairs += [(_REFERENCE, text) for text in question.references]
    pairs += [(_CANDIDATE, text) for text in question.candidates]
    for name, value in asdict(inquiry.choices).items():
        if value != _DEFAULTS[name]:
            pairs.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    query = f"?{urlencode(pairs)}"
    if len(query) > LINK_CHARACTERS:
        raise Refused(
            f"These texts are too long for a link: it would have {len(query):,} characters, and more than "
            f"{LINK_CHARACTERS:,} are not safe to send."
        )
    return query


def read_query(query: str) -> Inquiry | None:
    """The texts and settings of a link; None for one that has neither.

    Raises:
        Refused: too long, or not a question that the page itself could send.
    """
    if len(query) > LINK_CHARACTERS:
        raise Refused(f"The link has {len(query):,} characters; at most {LINK_CHARACTERS:,} are allowed here.")
    try:
        pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Refused("The link cannot be read: its letters are damaged, or its parameters too many.") from None
    known = (*_TEXTS, *_DEFAULTS)
    values: dict[str, list[str]] = {name: [] for name in known}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    if not any(values[name] for name in known):
        return None
    for name in known:
        most = _MOST.get(name, 1)
        if len(values[name]) > most:
            raise Refused(f"The link has {len(values[name])} times {name!r}; at most {most} work.")
        if name in _MOST and any("\n" in text or "\r" in text for text in values[name]):
            raise Refused(f"In the link a {name} has several lines; each has to be one.")
    question = read_question("".join(values[_CONTEXT]), values[_REFERENCE], values[_CANDIDATE])
    if unknown := [name for name in values if name not in known and not name.startswith("__")]:
        notice = f"The link has parameters that mean nothing here: {', '.join(unknown)[:200]}."
        question = replace(question, notices=(*question.notices, notice))
    settings = {name: _setting(name, values[name][0]) for name in _DEFAULTS if values[name]}
    return Inquiry(question, Choices.read(settings))


def _setting(name: str, text: str) -> Any:
    """A setting as the page has it."""
    if not isinstance(_DEFAULTS[name], bool):
        return text
    if text not in ("true", "false"):
        raise Refused(f"A setting of the link cannot be used: {name} is {text!r:.50}, neither true nor false")
    return text == "true"
