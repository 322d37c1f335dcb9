"""A link to a question: its texts and settings as query parameters of the page's address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from mars_score.space.choices import Choices
from mars_score.space.inputs import Question, read_question
from mars_score.space.limits import CANDIDATES, LINK_CHARACTERS, REFERENCES, Refused

_CONTEXT, _REFERENCE, _CANDIDATE = "context", "reference", "candidate"
_TEXTS = (_CONTEXT, _REFERENCE, _CANDIDATE)


@dataclass(frozen=True)
class Inquiry:
    """What a visitor wants scored: texts and settings."""

    question: Question
    choices: Choices


def to_query(inquiry: Inquiry) -> str:
    """``?context=...&reference=...&candidate=...`` with the settings that differ from the defaults.

    Raises:
        Refused: it would be longer than servers accept.
    """
    question = inquiry.question
    texts = [(_REFERENCE, one) for one in question.references] + [(_CANDIDATE, one) for one in question.candidates]
    settings = {name: _written(value) for name, value in inquiry.choices.settings().items()}
    query = f"?{urlencode([(_CONTEXT, question.context), *texts, *settings.items()])}"
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
    readers: dict[str, Callable[[str], Any]] = {name: _reader(value) for name, value in asdict(Choices()).items()}
    values: dict[str, list[str]] = {name: [] for name in (*_TEXTS, *readers)}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    if not any(values[name] for name in (*_TEXTS, *readers)):
        return None
    limits = {_REFERENCE: REFERENCES, _CANDIDATE: CANDIDATES}
    for name in (*_TEXTS, *readers):
        if len(values[name]) > limits.get(name, 1):
            raise Refused(f"The link has {len(values[name])} times {name!r}; at most {limits.get(name, 1)} work.")
        if name in limits and any("\n" in text or "\r" in text for text in values[name]):
            raise Refused(f"In the link a {name} has several lines; each has to be one.")
    question = read_question("".join(values[_CONTEXT]), values[_REFERENCE], values[_CANDIDATE])
    try:
        given = {name: read(values[name][0]) for name, read in readers.items() if values[name]}
    except ValueError as error:
        raise Refused(f"A setting of the link cannot be used: {str(error)[:200]}") from None
    if unknown := [name for name in values if name not in {*_TEXTS, *readers} and not name.startswith("__")]:
        notice = f"The link has parameters that mean nothing here: {', '.join(unknown)[:200]}."
        question = replace(question, notices=(*question.notices, notice))
    return Inquiry(question, Choices.read(**{**asdict(Choices()), **given}))


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reader(default: Any) -> Callable[[str], Any]:
    """What reads a setting, by the type of its default."""
    if isinstance(default, bool):
        return _boolean
    return str if default is None else type(default)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r:.50} is neither true nor false")
    return text == "true"
