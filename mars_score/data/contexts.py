"""Contexts that are more than a text: chat messages and retrieved passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Between the passages of a context, which are one text: the record separator of ASCII, which texts do not hold.
BETWEEN_PASSAGES = "\x1e"
ROLES = ("system", "user", "assistant")


def passages_of(context: str) -> list[str]:
    """The passages of a context; a context without passages is one."""
    return context.split(BETWEEN_PASSAGES)


def as_prose(context: str) -> str:
    """A context as language models read it: passages are paragraphs."""
    return context.replace(BETWEEN_PASSAGES, "\n\n")


def text_of_passages(where: str, context: Mapping[Any, Any]) -> str:
    """``{"passages": [...]}`` as one text, from which :func:`passages_of` gets the passages.

    Raises:
        TypeError: another mapping, or a passage that is no string; named with the row and the passage.
        ValueError: no passage, or a blank one.
    """
    if set(context) != {"passages"} or isinstance(context["passages"], (str, Mapping)):
        remedy = 'retrieved passages are given as {"passages": ["...", "..."]}'
        raise TypeError(f"{where} must be a string, got dict ({context!r:.60}); {remedy}")
    passages = list(context["passages"])
    if not passages:
        raise ValueError(f"{where} holds no passages; give at least one, or an empty text for no context")
    for number, passage in enumerate(passages):
        if not isinstance(passage, str):
            found = f"got {type(passage).__name__} ({passage!r:.60})"
            raise TypeError(f'{where}["passages"][{number}] must be a string, {found}; convert it or leave it out')
        if not passage.strip():
            raise ValueError(f'{where}["passages"][{number}] is blank; leave it out')
    return BETWEEN_PASSAGES.join(passage.replace(BETWEEN_PASSAGES, " ").strip() for passage in passages)


def turns_of_messages(where: str, messages: Sequence[Mapping[Any, Any]]) -> list[str]:
    """The texts of ``[{"role": ..., "content": ...}]``: what the candidate, the assistant's next message, answers.

    Raises:
        TypeError: a message without role or content, or with a content that is no string.
        ValueError: a blank content, an unknown role, or roles out of order: the system's message is the first,
            user and assistant alternate, and the last message is the user's.
    """
    before = None
    for number, message in enumerate(messages):
        place, role, content = f"{where}[{number}]", message.get("role"), message.get("content")
        if not isinstance(content, str):
            found = f"got {type(content).__name__} ({content!r:.60})"
            raise TypeError(f'{place}["content"] must be a string, {found}; write it as text or leave it out')
        if role not in ROLES:
            raise ValueError(f'{place}["role"] must be one of {", ".join(map(repr, ROLES))}, got {role!r:.60}')
        if not content.strip():
            raise ValueError(f'{place}["content"] is blank; leave the message out')
        if role == "system" and number:
            raise ValueError(f"{place} is a message of the system, which must be the first; move or join it")
        if role == before:
            raise ValueError(f"{place} is a second message of the {role} in sequence; join the two")
        before = role
    if before != "user":
        remedy = "the candidate answers the last one, which must be the user's; leave out what follows it"
        raise ValueError(f"{where} ends with a message of the {before}; {remedy}")
    return [message["content"] for message in messages]
