"""The forms in which other tools keep contexts and answers: documents of retrievers, chats as they are logged."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mars_score.data.frames import entries_of, is_missing
from mars_score.data.names import (
    find_chat,
    find_question,
    names_chat,
    names_context,
    names_passages,
    names_question,
)
from mars_score.errors import BY_INDEX, Place, brief
from mars_score.text import is_blank, normalise, without_surrogates

_DOCUMENT_TEXTS = ("page_content", "text", "content", "passage", "snippet", "body")
_OF_DOCUMENTS = (
    "metadata",
    "meta",
    "score",
    "id",
    "source",
    "title",
    "url",
)  # beside "content", which messages have
_SPEAKERS = ("speaker", "author", "sender", "user", "name", "utterance")  # fields of turns, not of documents
_INNER = ("node", "document", "text_resource")  # fields of a hit that hold the document itself
_MESSAGE_TEXTS = ("content", "value", "parts", "text")
ROLES = ("system", "user", "assistant")
_TOOL = "tool"
_OTHER_ROLES = {
    "human": "user",
    "developer": "system",
    **dict.fromkeys(("ai", "gpt", "model", "bot", "chatgpt"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), _TOOL),
}
_TEXT_PARTS = ("text", "input_text", "output_text")
# What the type of a part that is no text has in its name, and how it is called in a report.
_PARTS = {
    "image": "images",
    "result": "results of tools",
    "tool": "calls of tools",
    "call": "calls of tools",
    "thinking": "parts of reasoning",
    "reasoning": "parts of reasoning",
}
PASSAGES_REMEDY = 'retrieved passages are given as {"passages": ["...", "..."]}, if need be with a "question"'


@dataclass
class Readings:
    """How contexts and candidates of rows were read where they are more than texts, for a report.

    Attributes:
        rows: their number.
        passages: number of rows by their number of passages.
        turns: number of rows by their number of turns.
        questions: number of rows with passages that have a question.
        answers: number of rows whose candidate is the last message of a chat.
        left_out: what was not read, by its kind.
        columns: by "context" and "prediction" the names of their columns, where these are not the default ones.
    """

    rows: int = 0
    passages: Counter[int] = field(default_factory=Counter)
    turns: Counter[int] = field(default_factory=Counter)
    questions: int = 0
    answers: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    columns: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield a line on each kind of context, on candidates, and on what was left out."""
        for counts, unit in ((self.passages, "passage"), (self.turns, "turn")):
            if counts:
                with_questions = self._with_questions() if unit == "passage" else ""
                rows = self._of_rows(counts.total())
                yield f"context: {_range(counts, unit)} a row{rows}{with_questions}{self._column('context')}"
        if self.answers:
            rows = self._of_rows(self.answers)
            yield f"candidate: the last message, which is the assistant's{rows}{self._column('prediction')}"
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Yield a line on what was left out, if anything was."""
        if self.left_out:
            yield f"left out: {', '.join(f'{kind} ({count})' for kind, count in sorted(self.left_out.items()))}"

    def _with_questions(self) -> str:
        if not self.questions:
            return ""
        return ", with a question" + ("" if self.questions == self.passages.total() else f" in {self.questions}")

    def _column(self, name: str) -> str:
        return f", from column {self.columns[name]!r}" if name in self.columns else ""

    def _of_rows(self, count: int) -> str:
        return "" if count == self.rows else f" ({count} of {self.rows} rows)"


def _range(counts: Counter[int], unit: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low if low == high else f'{low} to {high}'} {unit}{'' if high == 1 else 's'}"


def checked_text(
    name: str, value: object, remedy: str = "convert it or leave the row out", *, as_it_is: bool = False
) -> str:
    """Return a text as a plain string, normalised unless ``as_it_is``; a blank one is ""."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {brief(value)}; {remedy}")
    # JSON with cut emoji has unpaired surrogates, which tokenizers, files and Arrow tables refuse.
    text = without_surrogates(str(value))
    return "" if is_blank(text) else text if as_it_is else normalise(text)


# Contexts


def usual_form(name: str, value: object) -> Any:
    """Return a context as ``{"passages": [...]}``, perhaps with ``"question"``, or a list of turns or messages.

    Texts, records and lists of texts are returned as they are.

    Raises:
        TypeError: a dict looks like passages or a chat, but is none.
    """
    if isinstance(value, Mapping):
        return _usual_mapping(name, value)
    entries = None if isinstance(value, str) else entries_of(value)
    if entries and all(_is_document(entry) for entry in entries):
        return {"passages": entries}
    return value if entries is None else entries


def _usual_mapping(name: str, value: Mapping[Any, object]) -> Any:
    fields = {title: part for title, part in value.items() if not is_missing(part)}
    others = [title for title in fields if not names_question(title)]
    question = find_question(fields)
    # If one row has passages, Arrow gives the field to all. A question alone lacks its passages.
    if "passages" in value and not others:
        others = ["passages"]
    if len(fields) == 1 and (chat := find_chat(fields, lambda title: _entries(fields[title]) is not None)):
        return fields[chat]
    if is_message(value) and _unwrapped(value).get("role") in (*ROLES, *_OTHER_ROLES):
        return [value]
    if "page_content" in _unwrapped(value):
        return {"passages": [value]}
    passages = [title for title in others if names_passages(title) and _are_passages(value[title])]
    is_named = len(others) == 1 and (names_passages(others[0]) or (question and names_context(others[0])))
    only_texts = is_named and len(fields) <= 2
    if only_texts and (entries := _entries(value[others[0]])) is not None:
        return {"passages": entries} | ({} if question is None else {"question": fields[question]})
    if passages or only_texts or "passages" in others:
        shown = f"{name} must be a string, got {brief(value)}"
        raise TypeError(f"{shown}; {PASSAGES_REMEDY}; in a record give the field another name")
    if chats := [title for title in others if names_chat(title) and is_chat(fields[title])]:
        remedy = f"give the list of messages alone, or as {{{chats[0]!r}: [...]}}; in a record rename the field"
        raise TypeError(f"{name} must be a string, got {brief(value)}; {remedy}")
    return value


def _entries(value: object) -> list[Any] | None:
    return None if isinstance(value, str) else entries_of(value)


def _are_passages(value: object) -> bool:
    """Tell whether a value is a list of texts or documents, perhaps with missing ones."""
    entries = [entry for entry in _entries(value) or () if not is_missing(entry)]
    return bool(entries) and all(isinstance(entry, str) or _has_text(entry) for entry in entries)


def document_text(entry: object) -> Any:
    """Return the text of a document as retrievers give it, or the entry itself if it is none.

    That is ``page_content`` (LangChain), ``text`` (LlamaIndex), ``content`` (Haystack), also of the ``node`` or
    ``document`` of a hit, in a dict or an object.
    """
    if isinstance(entry, (str, Sequence)):
        return entry
    fields = _unwrapped(entry) if isinstance(entry, Mapping) else _fields_of_object(entry)
    for name in _DOCUMENT_TEXTS:
        if not is_missing(fields.get(name)):
            return _joined_parts(fields[name], Counter())
    for name in _INNER:
        if not is_missing(fields.get(name)):
            return document_text(fields[name])
    return None if any(name in fields for name in _DOCUMENT_TEXTS) else entry


def _fields_of_object(entry: object) -> dict[str, Any]:
    """Return the texts of an object that is a document; none of one that is a message or something else."""
    names = (
        () if hasattr(entry, "role") or getattr(entry, "type", "") in _OTHER_ROLES else ("page_content", "text")
    )
    fields = {name: getattr(entry, name, None) for name in names}
    fields = {name: text for name, text in fields.items() if isinstance(text, str)}
    return fields or ({"node": entry.node} if hasattr(entry, "node") else {})


def _has_text(entry: object) -> bool:
    return not isinstance(entry, (str, Sequence)) and document_text(entry) is not entry and not is_message(entry)


def _is_document(entry: object) -> bool:
    """Tell whether an entry of a list, which nothing else says to be passages, is a document."""
    if not _has_text(entry) or (isinstance(entry, Mapping) and any(name in entry for name in _SPEAKERS)):
        return False
    if not isinstance(entry, Mapping) or any(name in entry for name in ("page_content", "text", *_INNER)):
        return True
    return "lc" in entry or any(name in entry for name in _OF_DOCUMENTS)


def _unwrapped(entry: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the fields of a message or document that LangChain serialised."""
    for name, sign in (("kwargs", "lc"), ("data", "type")):
        if sign in entry and isinstance(entry.get(name), Mapping):
            return {"type": entry.get("type"), **entry[name]}
    return entry


# Chats


class Turn(NamedTuple):
    """A message of a chat: its role, one of :data:`ROLES`, and its text."""

    role: str
    text: str


def is_message(entry: object) -> bool:
    """Tell whether an entry is a message of a chat: a dict with a role, and perhaps a text."""
    if not isinstance(entry, Mapping):
        return False
    message = _unwrapped(entry)
    if "role" in message or "from" in message:
        return True
    return str(message.get("type")).casefold() in (*ROLES, *_OTHER_ROLES) and "content" in message


def is_chat(value: object) -> bool:
    """Tell whether a value is a list of messages."""
    entries = None if isinstance(value, Iterator) else _entries(value)
    return bool(entries) and all(map(is_message, entries or ()))


def answer_and_context(
    name: str, messages: Sequence[Mapping[Any, object]], readings: Readings
) -> tuple[str, list[Any]]:
    """Split a chat into the text of its last message, which must be the assistant's, and the messages before it.

    Raises:
        TypeError, ValueError: a bad message, or another role.
    """
    *before, last = messages
    number = len(before)
    role, text = _read_message(f"{name}[{number}]", last, readings)
    if role != "assistant":
        fault = f"{name} ends with a message of the {role}; the last one is the candidate"
        raise ValueError(f"{fault}, and must be the assistant's; leave out what follows it")
    readings.answers += 1
    return text, before


def turns_of(name: str, messages: Sequence[Mapping[Any, object]], readings: Readings) -> list[Turn]:
    """Return the messages of a chat that have a text, those of the system first; the last is not the assistant's.

    Calls of tools and their results, images and messages without a text are left out, and counted.

    Raises:
        TypeError, ValueError: a bad message, or one in a wrong place.
    """
    turns, role = list[Turn](), ""
    for number, message in enumerate(messages):
        label = f"{name}[{number}]"
        role, text = _read_message(label, message, readings)
        if role == "system" and any(turn.role != "system" for turn in turns):
            raise ValueError(f"{label} is a message of the system, which must be the first; move or join it")
        if text and role != _TOOL:
            turns.append(Turn(role, text))
    if role in ("assistant", "system"):
        remedy = "the candidate answers the last one, which must be the user's; leave out what follows it"
        if role == "assistant":
            remedy += ", or take its last message as the candidate"
        raise ValueError(f"{name} ends with a message of the {role}; {remedy}")
    return turns


def _read_message(label: str, entry: Mapping[Any, object], readings: Readings) -> Turn:
    """Return the role and the text of a message, which may be ""; count what is left out."""
    message = _unwrapped(entry)
    calls = entries_of(message.get("tool_calls")) or ([1] if message.get("function_call") else [])
    said = next((message[title] for title in ("role", "from", "type") if title in message), None)
    name = next((name for name in _MESSAGE_TEXTS if name in message), None)
    if said is None or (name is None and not calls):
        keys = ", ".join(map(repr, message)) or "none"
        raise TypeError(
            f'{label} must be a message with "role" and "content" (keys here: {keys}); rename its keys, or '
            'give texts that were retrieved as {"passages": [...]}'
        )
    role = said.casefold() if isinstance(said, str) else said
    role = _OTHER_ROLES.get(role, role) if isinstance(role, str) else role
    if role not in (*ROLES, _TOOL):
        raise ValueError(f'{label}["role"] must be one of {", ".join(map(repr, ROLES))}, got {said!r:.60}')
    left_out = Counter({"calls of tools": len(calls)})
    content = _joined_parts(message.get(name), left_out)
    text = ""
    if not is_missing(content):
        text = checked_text(f'{label}["{name}"]', content, "write it as text or leave it out", as_it_is=True)
    if role == _TOOL:
        left_out["results of tools"] += 1
    elif not text and not +left_out:
        left_out["messages without a text"] += 1
    readings.left_out += left_out
    return Turn(role, text)


def _joined_parts(content: object, left_out: Counter[str]) -> Any:
    """Return the texts of a content that is a list of parts as one text; count its other parts."""
    if isinstance(content, Mapping):  # {"parts": [...]}, {"value": "..."}
        content = next((content[name] for name in ("parts", "value", "text") if name in content), content)
    parts = _entries(content)
    if parts is None or isinstance(content, Mapping):
        return content
    texts = []
    for part in parts:
        if isinstance(part, Mapping) and part.get("type", "text") not in _TEXT_PARTS:
            said = str(part.get("type"))
            left_out[next((kind for sign, kind in _PARTS.items() if sign in said), "parts that are no text")] += 1
        elif not is_missing(text := _joined_parts(part, left_out) if isinstance(part, Mapping) else part):
            texts.append(text)
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else content


# Columns


class UsualColumns(NamedTuple):
    """Candidates and contexts of rows in the forms that the checks take; None for a column that is not used."""

    predictions: list[Any] | None
    contexts: list[Any] | None


def usual_columns(
    columns: UsualColumns,
    titles: tuple[str | None, str | None],
    readings: Readings,
    *,
    questions: Sequence[object] | None = None,
    are_dialogues: Sequence[bool] | None = None,
    place: Place = BY_INDEX,
) -> UsualColumns:
    """Turn candidates that are chats, and contexts that a column's name calls passages, into the usual forms.

    Args:
        columns: as they stand in a file or table.
        titles: names of both columns.
        readings: counts the candidates that are chats.
        questions: of the rows, for contexts that are passages.
        are_dialogues: for each row whether its task is said to be a dialogue, so that a list holds its turns.
        place: names a row of a column.

    Raises:
        TypeError, ValueError: a candidate is a chat that does not end with the assistant's message.
    """
    predictions, contexts = columns
    if contexts is not None:
        asked, dialogues = dict(enumerate(questions or ())), dict(enumerate(are_dialogues or ()))
        contexts = [
            value if dialogues.get(row) else with_question(titles[1], value, asked.get(row))
            for row, value in enumerate(contexts)
        ]
    if predictions is None or not any(map(is_chat, predictions)):
        return UsualColumns(predictions, contexts)
    is_context, texts, before = titles[0] == titles[1], list[Any](), list[Any]()
    for row, value in enumerate(predictions):
        if is_chat(value):
            text, value = answer_and_context(place.of("predictions", row), entries_of(value) or [], readings)
            texts.append(text)
        else:
            texts.append(value)
        before.append(value)
    return UsualColumns(texts, before if is_context else contexts)


def with_question(title: object, value: object, question: object) -> Any:
    """Return a context that is passages with their question, if that is a text, and others as they are.

    Args:
        title: of the column, which says that a list is passages, unless it holds messages or documents.
        value: the context.
        question: from another column.
    """
    entries = _entries(value)
    if entries is None:
        return value
    if is_chat(entries) or not (names_passages(title) or (entries and all(map(_is_document, entries)))):
        return entries
    has_question = isinstance(question, str) and not is_blank(question)
    return {"passages": entries} | ({"question": question} if has_question else {})
