"""The usual names of columns and fields that hold candidates, passages, questions and chats, however spelt."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mars_score.errors import ColumnError

Title = TypeVar("Title")  # of a column or field; most are strings

_QUESTIONS = ("question", "userinput", "query", "input")  # the first that is there is taken
_CANDIDATES = ("candidate", "candidates")  # spelt so: files of ratings
_CHATS = ("messages", "conversation", "conversations")
_WHOSE = "(retrieved|retrieval|source|reference|relevant|supporting|gold)?"
_PASSAGES = re.compile(
    rf"{_WHOSE}(contexts|documents|docs|passages|chunks|snippets)|(retrieved|retrieval)context"
    r"|(retrieved|source)nodes|(context|document|passage|chunk)s?list"
)
_NOT_RETRIEVED = ("reference", "relevant", "supporting", "gold")  # what should have been retrieved


def names_passages(title: object) -> bool:
    """Tell whether a column or field, such as ``doc.retrieved_contexts``, is called as passages usually are."""
    return bool(_PASSAGES.fullmatch(_plain(title)))


def names_context(title: object) -> bool:
    """Tell whether a field, which stands beside a question, is called a context."""
    return _plain(title) == "context"


def names_question(title: object) -> bool:
    """Tell whether a column or field is called as a question usually is."""
    return _plain(title) in _QUESTIONS


def names_chat(title: object) -> bool:
    """Tell whether a column or field is called as a list of messages usually is."""
    return _plain(title) in _CHATS


def usual_titles(
    unknown: Sequence[str], titles: Sequence[str], holds_list: Callable[[str], bool]
) -> dict[str, str]:
    """Return the titles of contexts that are passages or chats, and of candidates that are called so, or chats.

    Args:
        unknown: of ``"context"`` and ``"prediction"`` those whose column is looked for.
        titles: of all columns.
        holds_list: tells whether a column holds lists.

    Raises:
        ColumnError: several columns could hold the contexts.
    """
    if not unknown:
        return {}
    chat = find_chat(titles, holds_list)
    passages = find_passages(titles, holds_list) if "context" in unknown else []
    if len(passages) > 1:
        fault = f"columns {', '.join(map(repr, passages))} could all hold the contexts"
        raise ColumnError(f"{fault}; name one", ["context"])
    candidate = next((title for title in _CANDIDATES if title in titles), chat)
    usual = {"context": passages[0] if passages else chat, "prediction": candidate}
    return {name: title for name in unknown if (title := usual[name]) is not None}


def find_chat(titles: Iterable[Title], holds_list: Callable[[Title], bool]) -> Title | None:
    """Return the first column that is called like a chat and holds lists, or None."""
    return next((title for title in titles if names_chat(title) and holds_list(title)), None)


def find_passages(titles: Iterable[Title], holds_list: Callable[[Title], bool]) -> list[Title]:
    """Return the columns that are called like passages that were retrieved, and hold lists."""
    return [
        title
        for title in titles
        if names_passages(title) and not _plain(title).startswith(_NOT_RETRIEVED) and holds_list(title)
    ]


def find_question(titles: Iterable[Title], used: Iterable[object] = ()) -> Title | None:
    """Return the column or field of questions that is not used for something else, or None."""
    by_name = {_plain(title): title for title in reversed([*titles]) if title not in [*used]}
    return next((by_name[name] for name in _QUESTIONS if name in by_name), None)


def _plain(title: object) -> str:
    """Return the last part of a name in lower case, without signs between its words."""
    return re.sub(r"[\W_]", "", title.rpartition(".")[2]).casefold() if isinstance(title, str) else ""
