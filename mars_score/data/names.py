"""Recognise the usual names of columns and fields of candidates, passages, questions and chats, however spelt."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from mars_score.errors import ColumnError

Title = TypeVar("Title")  # of a column or field; most are strings

_QUESTIONS = ("question", "userinput", "query", "input")  # in order of preference
_CANDIDATES = ("candidate", "candidates")  # as spelt in files of ratings
_CHATS = ("messages", "conversation", "conversations")
_WHOSE = "(retrieved|retrieval|source|reference|relevant|supporting|gold)?"
_PASSAGES = re.compile(
    rf"{_WHOSE}(contexts|documents|docs|passages|chunks|snippets)|(retrieved|retrieval)context"
    r"|(retrieved|source)nodes|(context|document|passage|chunk)s?list"
)
_NOT_RETRIEVED = ("reference", "relevant", "supporting", "gold")  # what should have been retrieved


def names_passages(title: object) -> bool:
    """Tell whether a column or field has a usual name of passages, such as ``doc.retrieved_contexts``."""
    return bool(_PASSAGES.fullmatch(_plain(title)))


def names_context(title: object) -> bool:
    """Tell whether a field is called "context"."""
    return _plain(title) == "context"


def names_question(title: object) -> bool:
    """Tell whether a column or field has a usual name of a question."""
    return _plain(title) in _QUESTIONS


def names_chat(title: object) -> bool:
    """Tell whether a column or field has a usual name of a list of messages."""
    return _plain(title) in _CHATS


def usual_titles(
    unknown: Sequence[str], titles: Sequence[str], holds_list: Callable[[str], bool]
) -> dict[str, str]:
    """Find the columns of contexts and candidates by their usual names.

    Contexts may be in a column of passages, candidates in a column called "candidate", and both in a chat.

    Args:
        unknown: what to find a column for, among ``"context"`` and ``"prediction"``, the keys of the result.
        titles: of all columns.
        holds_list: tells whether a column holds lists.

    Raises:
        ColumnError: several columns could hold the contexts.
    """
    if not unknown:
        return {}
    chat = find_chat(titles, holds_list)
    passages = []
    if "context" in unknown:
        passages = [title for title in titles if _names_retrieved(title) and holds_list(title)]
    if len(passages) > 1:
        fault = f"columns {', '.join(map(repr, passages))} could all hold the contexts"
        raise ColumnError(f"{fault}; name one", ["context"])
    candidate = next((title for title in _CANDIDATES if title in titles), chat)
    usual = {"context": passages[0] if passages else chat, "prediction": candidate}
    return {name: title for name in unknown if (title := usual[name]) is not None}


def find_chat(titles: Iterable[Title], holds_list: Callable[[Title], bool]) -> Title | None:
    """Return the first column that has a usual name of a chat and holds lists, or None."""
    return next((title for title in titles if names_chat(title) and holds_list(title)), None)


def find_question(titles: Iterable[Title], used: Collection[object] = ()) -> Title | None:
    """Return the column or field of questions, or None. Columns in ``used`` are left out."""
    by_name = {_plain(title): title for title in reversed([*titles]) if title not in used}
    return next((by_name[name] for name in _QUESTIONS if name in by_name), None)


def _names_retrieved(title: object) -> bool:
    return names_passages(title) and not _plain(title).startswith(_NOT_RETRIEVED)


def _plain(title: object) -> str:
    """Return the last part of a name in lower case, without separators between its words."""
    return re.sub(r"[\W_]", "", title.rpartition(".")[2]).casefold() if isinstance(title, str) else ""
