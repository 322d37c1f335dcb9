"""A link to a question: its texts and settings as query parameters of the page's address."""

from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, urlencode

from mars_score.space.inputs import CANDIDATES, REFERENCES, SAMPLES, Choices, Inquiry, read_question
from mars_score.space.limits import Refused

LINK_CHARACTERS = 7_500  # servers commonly take 8,192 bytes for the first line of a request
_DEFAULTS = asdict(Choices())
_TIMES = {
    **dict.fromkeys(("context", *_DEFAULTS), 1),
    "reference": REFERENCES,
    "candidate": CANDIDATES,
    "sample": SAMPLES,
}


def to_query(inquiry: Inquiry) -> str:
    """``?context=...&reference=...&candidate=...`` with the settings that differ from the defaults.

    Raises:
        Refused: it would be longer than servers accept.
    """
    question, choices = inquiry.question, asdict(inquiry.choices)
    values = {
        "context": question.context,
        "reference": question.references,
        "candidate": question.candidates,
        "sample": question.samples,
    }
    for name, value in choices.items():
        if value != _DEFAULTS[name]:
            values[name] = str(value).lower() if isinstance(value, bool) else value
    query = f"?{urlencode(values, doseq=True)}"
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
        sent = parse_qs(query.removeprefix("?"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Refused("The link cannot be read: its letters are damaged, or its parameters too many.") from None
    values = {name: texts for name, texts in sent.items() if name in _TIMES}
    if not values:
        return None
    for name, texts in values.items():
        if len(texts) > _TIMES[name]:
            raise Refused(f"The link has {len(texts)} times {name!r}; at most {_TIMES[name]} work.")
        if _TIMES[name] > 1 and any("\n" in text or "\r" in text for text in texts):
            raise Refused(f"In the link a {name} has several lines; each has to be one.")
    columns = (values.get(name) for name in ("reference", "candidate", "sample"))
    question = read_question("".join(values.get("context", [])), *columns)
    settings = {name: _setting(name, values[name][0]) for name in _DEFAULTS if name in values}
    return Inquiry(question, Choices.read(settings))


def _setting(name: str, text: str) -> Any:
    """A setting as the page has it."""
    if not isinstance(_DEFAULTS[name], bool):
        return text
    if text not in ("true", "false"):
        raise Refused(f"A setting of the link cannot be used: {name} is {text!r:.50}, neither true nor false")
    return text == "true"
