"""Checks of input rows: TypeErrors and ValueErrors name the input, the row and the remedy.

A column may be any ordered iterable: a list, a generator, a NumPy array, a pandas series, a pyarrow array, a
column of a dataset. The functions return plain lists, tuples and strings; a text of white space and zero-width
characters alone is blank and becomes "". ``where`` names a row in an error.
"""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from mars_score.data.frames import entries_of, is_table, unnested
from mars_score.errors import brief
from mars_score.rows import TASKS, Example, Row
from mars_score.text import PASSAGE_BREAK, is_blank, normalise, whole

_NO_MIX = "To score every row by its context alone, give no references at all"
ROLES = ("system", "user", "assistant")
Where = Callable[[int], str]  # names a row in an error: 3 -> "predictions[3]"
WhereColumn = Callable[[str], Where]  # does so for each column


def index_in(column: str) -> Where:
    """Return a function that names a row of a column by its index."""
    return f"{column}[{{}}]".format


class Context(NamedTuple):
    """A context as one text, and the task that its type says: "" where it is a string."""

    text: str
    task: str


# Columns


def check_candidates(predictions: Any, *, where: Where = "predictions[{}]".format) -> list[str]:
    """Return the candidates, one string per row, without outer white space; blank ones are allowed."""
    return [_text(where(row), value) for row, value in enumerate(_column("predictions", predictions))]


def check_candidate_lists(predictions: Any) -> list[tuple[str, ...]]:
    """Return the candidates of each row, which is a string or a list of them."""
    remedy = "give at least one candidate or leave the row out"
    column = list(map(unnested, _column("predictions", predictions)))
    return _lists(column, "predictions[{}]".format, if_empty=remedy)


def check_references(references: Any, *, where: Where = "references[{}]".format) -> list[tuple[str, ...]]:
    """Return the references, one or more strings per row, none of them blank; a row may be a string."""
    return _lists(
        _column("references", references),
        where,
        if_empty=f"give at least one reference or leave the row out. {_NO_MIX}",
        if_blank=f"reference; fill it or leave it out. {_NO_MIX}",
    )


def check_samples(samples: Any, rows: int = 0, *, where: Where = "samples[{}]".format) -> list[tuple[str, ...]]:
    """Return the different samples of each row: a text, or a list of texts; None, "" and an empty list are none.

    None: ``rows`` rows without samples. A blank text within a list is a ValueError.
    """
    if samples is None:
        return [()] * rows
    column = _column("samples", samples)
    column = [() if value is None or (isinstance(value, str) and is_blank(value)) else value for value in column]
    remedy = "sample; leave it out (an empty list is a row without samples)"
    checked = _lists(column, where, if_blank=remedy)
    return [tuple(dict.fromkeys(texts)) for texts in checked]


def check_tasks(tasks: Any, rows: int, *, where: Where = "tasks[{}]".format) -> list[str]:
    """Return the task of each row, one of :data:`mars_score.rows.TASKS`; "" where none is said.

    A single name is that of all rows; None: ``rows`` rows without.
    """
    if tasks is None or isinstance(tasks, str):
        tasks = [tasks] * rows
    checked = []
    for row, task in enumerate(_column("tasks", tasks)):
        if task is not None and task != "" and task not in TASKS:
            raise ValueError(f"{where(row)} must be one of {', '.join(map(repr, TASKS))}, got {task!r:.60}")
        checked.append(task or "")
    return checked


def check_contexts(
    contexts: Any, rows: int = 0, *, use_context: bool = True, where: Where = "contexts[{}]".format
) -> list[Context]:
    """Return the contexts; blank ones without ``use_context``, but they are checked all the same.

    Args:
        contexts: per row a string; a list of strings (the turns of a dialogue) or of chat messages ``{"role": ...,
            "content": ...}``; ``{"passages": [...]}``, if need be with a ``"question"``; or any other dict, a
            record of fields and values. In these dicts None counts as no value, as Arrow gives all dicts of a
            column the same fields. None: ``rows`` rows without contexts.
        rows: their number.
        use_context: False: contexts may be missing.
        where: names a row.
    """
    if contexts is None:
        if use_context:
            raise ValueError("contexts are missing: pass one string per row, or set use_context=False")
        return [Context("", "")] * rows
    checked = [_context(where(row), value) for row, value in enumerate(_column("contexts", contexts))]
    return checked if use_context else [Context("", "")] * len(checked)


def check_examples(
    references: Any,
    contexts: Any,
    samples: Any = None,
    tasks: Any = None,
    *,
    use_context: bool,
    task: str | None = None,
    where: WhereColumn = index_in,
    **columns: Sequence[Any],
) -> list[Example]:
    """Check what candidates are compared with, row by row.

    Args:
        references: None: candidates are scored by their contexts, none of which may be blank.
        contexts: as for :func:`check_contexts`.
        samples: as for :func:`check_samples`.
        tasks: as for :func:`check_tasks`.
        use_context: False: no row has a context.
        task: of rows for which ``tasks`` says none; None: as the type of the context says.
        where: names a row of a column.
        columns: others that must be as long, by name.

    Raises:
        TypeError, ValueError: bad input, named with its row.
    """
    if references is None:
        reference_lists, checked_contexts = _contexts_alone(contexts, where("contexts"))
    else:
        reference_lists = check_references(references, where=where("references"))
        columns["references"] = reference_lists
        checked_contexts = check_contexts(
            contexts, len(reference_lists), use_context=use_context, where=where("contexts")
        )
    count = len(reference_lists)
    sample_lists = check_samples(samples, count, where=where("samples"))
    checked_tasks = check_tasks(tasks, count, where=where("tasks"))
    for name, column, checked in (
        ("contexts", contexts, checked_contexts),
        ("samples", samples, sample_lists),
        ("tasks", tasks, checked_tasks),
    ):
        if column is not None:
            columns[name] = checked
    check_lengths(**columns)
    return [
        _example(row_references, context, row_samples, row_task or task or context.task or "text")
        for row_references, context, row_samples, row_task in zip(
            reference_lists, checked_contexts, sample_lists, checked_tasks, strict=True
        )
    ]


def check_rows(
    predictions: Any,
    references: Any,
    contexts: Any,
    samples: Any = None,
    tasks: Any = None,
    *,
    use_context: bool,
    task: str | None = None,
    where: WhereColumn = index_in,
) -> list[Row]:
    """Check the columns of rows, one candidate each; arguments and errors as for :func:`check_examples`."""
    candidates = check_candidates(predictions, where=where("predictions"))
    examples = check_examples(
        references,
        contexts,
        samples,
        tasks,
        use_context=use_context,
        task=task,
        where=where,
        predictions=candidates,
    )
    return [example.with_candidate(text) for example, text in zip(examples, candidates, strict=True)]


def _contexts_alone(contexts: Any, where: Where) -> tuple[list[tuple[str, ...]], list[Context]]:
    """Check contexts that candidates are scored by without references; return no references for each."""
    if contexts is None:
        raise ValueError("references and contexts are missing: pass one of them, one entry per row")
    checked = check_contexts(contexts, where=where)
    for row, context in enumerate(checked):
        if not context.text:
            raise ValueError(
                f"{where(row)} is blank, and without references there is nothing else to score the candidate by; "
                "fill it, give references or leave the row out"
            )
    return [()] * len(checked), checked


def with_task(row: Row, task: str) -> Row:
    """Return a row as one of another task."""
    return replace(row, task=task, context=_context_text(row.context, task))


def _context_text(text: str, task: str) -> str:
    # The lines of a text are white space, those of a dialogue are turns and those of a record fields.
    return normalise(text, keep_lines=task in ("dialogue", "data"))


def _example(references: tuple[str, ...], context: Context, samples: tuple[str, ...], task: str) -> Example:
    return Example(tuple(dict.fromkeys(references)), _context_text(context.text, task), samples, task)


def check_lengths(**columns: Sequence[Any]) -> None:
    """Raise ValueError unless all columns have the same number of rows."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        by_row = "; references go by row, not by system or annotator" if "references" in lengths else ""
        raise ValueError(f"all inputs need one entry for each row, but {sizes}; add or remove entries{by_row}")


def _column(name: str, value: Any) -> list[Any]:
    if value is None:
        raise TypeError(f"{name} are missing: pass a list with one entry per row")
    entries = entries_of(value)
    if entries is not None:
        return entries
    if isinstance(value, str):
        remedy = "for a single row pass a list of one"
    elif isinstance(value, Set):
        remedy = "a set has no order: pass a list in the order of the rows"
    elif isinstance(value, Mapping) or is_table(value):
        remedy = f'pass one of its columns, such as data["{name}"]'
    else:
        remedy = "pass a list"
    raise TypeError(f"{name} must be a list with one entry per row, got {type(value).__name__}; {remedy}")


def _lists(column: list[Any], where: Where, *, if_empty: str = "", if_blank: str = "") -> list[tuple[str, ...]]:
    """Check rows that are a text or a list of texts; the remedies are for empty lists and blank texts."""
    checked = []
    for row, value in enumerate(column):
        name = where(row)
        entries = None if isinstance(value, str) else entries_of(value)
        texts = tuple(_text(name, text) for text in ([value] if entries is None else entries))
        if if_empty and not texts:
            raise ValueError(f"{name} is an empty list; {if_empty}")
        if if_blank and any(map(is_blank, texts)):
            raise ValueError(f"{name} holds a blank {if_blank}")
        checked.append(texts)
    return checked


def _text(name: str, value: Any, *, as_it_is: bool = False) -> str:
    """Return ``value`` as a plain string, normalised; unpaired surrogates become U+FFFD, a blank text ""."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {brief(value)}; convert it or leave the row out")
    text = whole(str(value))  # halves are from cut emoji in JSON; tokenizers, files and Arrow tables refuse them
    return "" if is_blank(text) else text if as_it_is else normalise(text)


# Contexts


def _context(name: str, value: Any) -> Context:
    if isinstance(value, Mapping):
        given = {field: part for field, part in value.items() if part is not None}
        # A record beside rows with passages has fields of its own; a question alone lacks its passages.
        if "passages" in given or ("passages" in value and given.keys() <= {"question"}):
            return Context(_passages(name, given), "summary")
        return Context(_record(name, given), "data")
    turns = None if isinstance(value, str) else entries_of(value)
    if turns is None:
        return Context(_text(name, value, as_it_is=True), "")
    if turns and all(isinstance(turn, Mapping) for turn in turns):
        turns = _message_texts(name, turns)
    for turn in turns:
        _check_string(name, turn, "convert it or leave the row out")
    blank = [number for number, turn in enumerate(turns) if is_blank(turn)]
    if len(blank) == len(turns):
        return Context("", "")  # as a blank text
    if blank:
        raise ValueError(f"{name}[{blank[0]}] is blank; leave the turn out")
    text = "\n".join(" ".join(turn.splitlines()) for turn in turns)
    return Context(_text(name, text, as_it_is=True), "dialogue")


def _passages(name: str, context: Mapping[Any, Any]) -> str:
    """Join ``{"passages": [...]}`` and its question, which comes first, by :data:`PASSAGE_BREAK`."""
    passages = entries_of(context.get("passages")) if set(context) <= {"passages", "question"} else None
    if passages is None:
        remedy = 'retrieved passages are given as {"passages": ["...", "..."]}, if need be with a "question"'
        raise TypeError(f"{name} must be a string, got {brief(context)}; {remedy}")
    named = [(f'{name}["passages"][{number}]', passage) for number, passage in enumerate(passages)]
    if "question" in context:
        named.insert(0, (f'{name}["question"]', context["question"]))
    for part, passage in named:
        _check_string(part, passage, "convert it or leave it out")
        if is_blank(passage):
            raise ValueError(f"{part} is blank; leave it out")
    return PASSAGE_BREAK.join(_text(part, passage.replace(PASSAGE_BREAK, " ")) for part, passage in named)


def _record(name: str, record: Mapping[Any, Any]) -> str:
    """Write a record as one text: "field: value, field: value"; values that are no strings as JSON."""
    if not record:
        fault = "is an empty record; give it fields with values other than None, or an empty text for no context"
        raise ValueError(f"{name} {fault}")
    try:
        given = map(_without_none, record.values())
        values = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in given]
    except (TypeError, ValueError, RecursionError):
        raise TypeError(f"{name} must be a record of texts and numbers, got {brief(record)}; convert it") from None
    text = ", ".join(f"{field}: {value}" for field, value in zip(record, values, strict=True))
    return _text(name, text, as_it_is=True)


def _without_none(value: Any) -> Any:
    """Leave out values of None in a dict and the dicts within; entries of lists stay, as their places count."""
    if isinstance(value, dict):
        return {field: _without_none(part) for field, part in value.items() if part is not None}
    return list(map(_without_none, value)) if isinstance(value, (list, tuple)) else value


def _message_texts(name: str, messages: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the texts of chat messages: the system's first, if any, then user and assistant by turns."""
    before = None
    for number, message in enumerate(messages):
        label = f"{name}[{number}]"
        if not {"role", "content"} <= set(message):
            here = ", ".join(map(repr, message)) or "none"
            raise TypeError(
                f'{label} must be a message with "role" and "content" (keys here: {here}); rename its keys, or '
                'give texts that were retrieved as {"passages": [...]}'
            )
        if entries_of(message.get("tool_calls")):
            remedy = 'write them as text in its "content", or leave them out'
            raise ValueError(f'{label} has "tool_calls", which are not read; {remedy}')
        role, content = message["role"], message["content"]
        _check_string(f'{label}["content"]', content, "write it as text or leave it out")
        if role not in ROLES:
            roles = ", ".join(map(repr, ROLES))
            raise ValueError(f'{label}["role"] must be one of {roles}, got {role!r:.60}')
        if is_blank(content):
            raise ValueError(f'{label}["content"] is blank; leave the message out')
        if role == "system" and number:
            raise ValueError(f"{label} is a message of the system, which must be the first; move or join it")
        if role == before:
            raise ValueError(f"{label} is a second message of the {role} in sequence; join the two")
        before = role
    if before != "user":
        remedy = "the candidate answers the last one, which must be the user's; leave out what follows it"
        raise ValueError(f"{name} ends with a message of the {before}; {remedy}")
    return [message["content"] for message in messages]


def _check_string(name: str, value: Any, remedy: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {brief(value)}; {remedy}")
