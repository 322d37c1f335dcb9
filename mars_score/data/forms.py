"""Read rows in the forms of other tools: usual names of columns and fields, documents of retrievers, chats."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from mars_score.data.frames import entries_of, is_missing
from mars_score.errors import ColumnError, Place, brief
from mars_score.text import is_blank, normalise, without_surrogates

_DOCUMENT_TEXTS = ("page_content", "text", "content", "passage", "snippet", "body")
# A dict with "content" may be a message. One of these fields shows that it is a document.
_DOCUMENT_FIELDS = {"metadata", "meta", "score", "id", "source", "title", "url"}
_TURN_FIELDS = {"speaker", "author", "sender", "user", "name", "utterance"}  # no document has these
_INNER = ("node", "document", "text_resource")  # fields of a search hit that hold the document itself
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
_PARTS = {  # a word in the type of a part that is not text, and what a report calls the part
    "image": "images",
    "result": "results of tools",
    "tool": "calls of tools",
    "call": "calls of tools",
    "thinking": "parts of reasoning",
    "reasoning": "parts of reasoning",
}
PASSAGES_REMEDY = 'give retrieved passages as {"passages": ["...", "..."]}, optionally with a "question"'


@dataclass
class Readings:
    """Counts of how contexts and candidates were read that are more than plain texts, for a report."""

    rows: int = 0
    passages: Counter[int] = field(default_factory=Counter)  # rows by their number of passages
    turns: Counter[int] = field(default_factory=Counter)  # rows by their number of turns
    questions: int = 0  # rows with passages that have a question
    answers: int = 0  # rows whose candidate is the last message of a chat
    left_out: Counter[str] = field(default_factory=Counter)  # parts that were not read, by kind
    # names of the columns "context" and "prediction", where they differ from the default
    columns: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind of context, one for the candidates, and one for what was left out."""
        with_questions = ""
        if self.questions:
            some = "" if self.questions == self.passages.total() else f" in {self.questions}"
            with_questions = f", with a question{some}"
        for counts, unit, suffix in ((self.passages, "passage", with_questions), (self.turns, "turn", "")):
            if counts:
                rows = self._of_rows(counts.total())
                yield f"context: {_range(counts, unit)} a row{rows}{suffix}{self._column('context')}"
        if self.answers:
            rows = self._of_rows(self.answers)
            yield f"candidate: the last message, which is the assistant's{rows}{self._column('prediction')}"
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Yield a line on what was left out, if anything was."""
        if self.left_out:
            yield f"left out: {', '.join(f'{kind} ({count})' for kind, count in sorted(self.left_out.items()))}"

    def _column(self, name: Literal["context", "prediction"]) -> str:
        return f", from column {self.columns[name]!r}" if name in self.columns else ""

    def _of_rows(self, count: int) -> str:
        return "" if count == self.rows else f" ({count} of {self.rows} rows)"


def _range(counts: Counter[int], unit: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low if low == high else f'{low} to {high}'} {unit}{'' if high == 1 else 's'}"


def checked_text(
    name: str, value: object, remedy: str = "convert it or leave the row out", *, as_it_is: bool = False
) -> str:
    """Return a text as a plain string, normalised unless ``as_it_is``. A blank text becomes ""."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {brief(value)}; {remedy}")
    # Emoji cut in half leave unpaired surrogates in JSON, which tokenizers, files and Arrow refuse.
    text = without_surrogates(str(value))
    return "" if is_blank(text) else text if as_it_is else normalise(text)


# Contexts


def usual_form(name: str, value: object) -> object:
    """Return a context as ``{"passages": [...]}``, optionally with ``"question"``, or a list of turns or messages.

    Texts, records and lists of texts are returned unchanged.

    Raises:
        TypeError: a dict looks like passages or a chat, but is neither.
    """
    if isinstance(value, Mapping):
        return _usual_mapping(name, value)
    entries = None if isinstance(value, str) else entries_of(value)
    if entries and all(_is_document(entry) for entry in entries):
        return {"passages": entries}
    return value if entries is None else entries


def _usual_mapping(name: str, value: Mapping[str, object]) -> object:
    fields = {title: part for title, part in value.items() if not is_missing(part)}
    others = [title for title in fields if not names_question(title)]
    question = find_question(fields)
    # Arrow gives the field of passages to all rows. Beside a question alone it is meant.
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
    """Tell whether a value is a list of texts or documents. Some entries may be missing."""
    entries = [entry for entry in _entries(value) or () if not is_missing(entry)]
    return bool(entries) and all(isinstance(entry, str) or _has_text(entry) for entry in entries)


def document_text(entry: object) -> object:
    """Return the text of a retriever's document, or the entry itself if it is not a document.

    The text is ``page_content`` (LangChain), ``text`` (LlamaIndex) or ``content`` (Haystack) of a dict or object,
    or of the ``node`` or ``document`` in a search hit.
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


def _fields_of_object(entry: object) -> dict[str, object]:
    """Return the text fields of an object that is a document; {} for a message or anything else."""
    is_message = hasattr(entry, "role") or getattr(entry, "type", "") in _OTHER_ROLES
    names = () if is_message else ("page_content", "text")
    fields: dict[str, object] = {
        name: text for name in names if isinstance(text := getattr(entry, name, None), str)
    }
    return fields or ({"node": entry.node} if hasattr(entry, "node") else {})


def _has_text(entry: object) -> bool:
    return not isinstance(entry, (str, Sequence)) and document_text(entry) is not entry and not is_message(entry)


def _is_document(entry: object) -> bool:
    """Tell whether an entry of a list is a document, by its fields alone."""
    if not _has_text(entry):
        return False
    if not isinstance(entry, Mapping):
        return True
    fields = entry.keys()
    return not fields & _TURN_FIELDS and bool(fields & {"page_content", "text", *_INNER, "lc", *_DOCUMENT_FIELDS})


def _unwrapped(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a message or document, also of one that LangChain serialised."""
    for name, sign in (("kwargs", "lc"), ("data", "type")):
        if sign in entry and isinstance(fields := entry.get(name), Mapping):
            return {"type": entry.get("type"), **fields}
    return entry


# Chats


class Turn(NamedTuple):
    """A message of a chat: its role, one of :data:`ROLES`, and its text."""

    role: str
    text: str


def is_message(entry: object) -> bool:
    """Tell whether an entry is a message of a chat: a dict with a role."""
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


def split_chats(
    predictions: Sequence[object], place: Place, readings: Readings
) -> tuple[list[object], list[object]]:
    """Split chats into candidates, their last messages, and contexts, the messages before.

    Any other prediction is its own candidate and context.

    Raises:
        TypeError, ValueError: a bad message, or a chat that does not end with the assistant's message.
    """
    candidates, contexts = list[object](), list[object]()
    for row, value in enumerate(predictions):
        candidate, context = value, value
        if is_chat(value):
            name, messages = place.of("predictions", row), entries_of(value) or []
            *before, last = messages
            role, candidate = _read_message(f"{name}[{len(before)}]", last, readings)
            if role != "assistant":
                fault = f"{name} ends with a message of the {role}; the last one is the candidate"
                raise ValueError(f"{fault}, and must be the assistant's; leave out what follows it")
            readings.answers += 1
            context = before
        candidates.append(candidate)
        contexts.append(context)
    return candidates, contexts


def turns_of(name: str, messages: Sequence[Mapping[str, object]], readings: Readings) -> list[Turn]:
    """Return the messages of a chat that have a text. The last one must not be the assistant's.

    Calls and results of tools, images and messages without a text are left out and counted.

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


def _read_message(label: str, entry: Mapping[str, object], readings: Readings) -> Turn:
    """Return the role and the text, "" for none, of a message. Count what is left out."""
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
    role = said.casefold() if isinstance(said, str) else ""
    role = _OTHER_ROLES.get(role, role)
    if role not in (*ROLES, _TOOL):
        raise ValueError(f'{label}["role"] must be one of {", ".join(map(repr, ROLES))}, got {said!r:.60}')
    left_out = Counter({"calls of tools": len(calls)})
    content = _joined_parts(message[name] if name else None, left_out)
    text = ""
    if not is_missing(content):
        text = checked_text(f'{label}["{name}"]', content, "write it as text or leave it out", as_it_is=True)
    if role == _TOOL:
        left_out["results of tools"] += 1
    elif not text and not +left_out:
        left_out["messages without a text"] += 1
    readings.left_out += left_out
    return Turn(role, text)


def _joined_parts(content: object, left_out: Counter[str]) -> object:
    """Return the texts of a content that is a list of parts as one text. Count its other parts."""
    if isinstance(content, Mapping):  # {"parts": [...]}, {"value": "..."}
        content = next((content[name] for name in ("parts", "value", "text") if name in content), content)
    parts = _entries(content)
    if parts is None or isinstance(content, Mapping):
        return content
    texts: list[Any] = []
    for part in parts:
        if isinstance(part, Mapping) and part.get("type", "text") not in _TEXT_PARTS:
            said = str(part.get("type"))
            left_out[next((kind for sign, kind in _PARTS.items() if sign in said), "parts that are no text")] += 1
        elif not is_missing(text := _joined_parts(part, left_out) if isinstance(part, Mapping) else part):
            texts.append(text)
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else content


def with_question(title: object, value: object, question: object) -> object:
    """Return passages as ``{"passages": [...]}``, with a question that is a text; return other contexts as given.

    Args:
        title: of the column. A usual name of passages makes a list of texts passages.
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


# The usual names of columns and fields


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
