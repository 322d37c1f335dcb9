"""Contexts that are more than a text: turns of a dialogue, chat messages and retrieved passages."""

from collections.abc import Mapping, Sequence
from typing import Any

from mars_score.data.values import brief, entries_of, is_blank

# Between the passages of a context, which are one text: the record separator of ASCII, which texts do not hold.
BETWEEN_PASSAGES = "\x1e"
ROLES = ("system", "user", "assistant")


def passages_of(context: str) -> list[str]:
    """The passages of a context; a context without passages is one."""
    return context.split(BETWEEN_PASSAGES)


def as_prose(context: str) -> str:
    """A context as language models read it: passages are paragraphs."""
    return context.replace(BETWEEN_PASSAGES, "\n\n")


def context_text(place: str, value: Any) -> Any:
    """A context in any of its forms as one text; anything else as it is.

    Args:
        place: names the row in an error (TypeError, ValueError).
        value: a string; a list of strings, the turns of a dialogue, which become lines; chat messages
            ``[{"role": ..., "content": ...}]``; or retrieved passages ``{"passages": [...]}``.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _text_of_passages(place, value)
    turns = entries_of(value)
    if turns is None:
        return value
    if turns and all(isinstance(turn, Mapping) for turn in turns):
        turns = _turns_of_messages(place, turns)
    for turn in turns:
        _check_text(place, turn, "convert it or leave the row out")
    return turns[0] if len(turns) == 1 else "\n".join(" ".join(turn.splitlines()) for turn in turns)


def _text_of_passages(place: str, context: Mapping[Any, Any]) -> str:
    """``{"passages": [...]}`` as one text, from which :func:`passages_of` gets the passages."""
    passages = entries_of(context["passages"]) if set(context) == {"passages"} else None
    if passages is None:
        remedy = 'retrieved passages are given as {"passages": ["...", "..."]}'
        raise TypeError(f"{place} must be a string, got {brief(context)}; {remedy}")
    if not passages:
        raise ValueError(f"{place} holds no passages; give at least one, or an empty text for no context")
    for number, passage in enumerate(passages):
        of_passage = f'{place}["passages"][{number}]'
        _check_text(of_passage, passage, "convert it or leave it out")
        if is_blank(passage):
            raise ValueError(f"{of_passage} is blank; leave it out")
    return BETWEEN_PASSAGES.join(passage.replace(BETWEEN_PASSAGES, " ").strip() for passage in passages)


def _turns_of_messages(place: str, messages: Sequence[Mapping[Any, Any]]) -> list[str]:
    """The texts of chat messages: the system's first, if any, then user and assistant by turns, last the user."""
    before = None
    for number, message in enumerate(messages):
        of_message, role = f"{place}[{number}]", message.get("role")
        content: Any = message.get("content")
        _check_text(f'{of_message}["content"]', content, "write it as text or leave it out")
        if role not in ROLES:
            roles = ", ".join(map(repr, ROLES))
            raise ValueError(f'{of_message}["role"] must be one of {roles}, got {role!r:.60}')
        if is_blank(content):
            raise ValueError(f'{of_message}["content"] is blank; leave the message out')
        if role == "system" and number:
            raise ValueError(f"{of_message} is a message of the system, which must be the first; move or join it")
        if role == before:
            raise ValueError(f"{of_message} is a second message of the {role} in sequence; join the two")
        before = role
    if before != "user":
        remedy = "the candidate answers the last one, which must be the user's; leave out what follows it"
        raise ValueError(f"{place} ends with a message of the {before}; {remedy}")
    return [message["content"] for message in messages]


def _check_text(place: str, value: Any, remedy: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{place} must be a string, got {brief(value)}; {remedy}")
