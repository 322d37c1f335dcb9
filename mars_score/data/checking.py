"""Check input columns. Each TypeError or ValueError names the input, the row and the remedy.

A column may be any ordered iterable: a list, a generator, a NumPy array, a pandas series, a pyarrow array, a
column of a dataset. Checked columns are plain lists. A text of white space and zero-width characters alone is
blank and becomes "". The argument ``place`` names a row in errors.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from mars_score.data.forms import (
    PASSAGES_REMEDY,
    Readings,
    checked_text,
    document_text,
    turns_of,
    usual_form,
)
from mars_score.data.frames import entries_of, is_missing, is_table, plain_value, splits_of, unnested
from mars_score.errors import BY_INDEX, Place, brief, warn
from mars_score.rows import TASKS, Contexts, Example, Row, Tasks, Texts
from mars_score.text import PASSAGE_BREAK, is_blank, normalise

_NO_MIX = "To score every row by its context alone, give no references at all"


class Context(NamedTuple):
    """A context as one text, the task that its type implies ("" for a string), and its question."""

    text: str
    task: str
    question: str = ""


def check_candidates(predictions: Texts, *, place: Place = BY_INDEX) -> list[str]:
    """Return one candidate per row, without outer white space. Candidates may be blank."""
    column = _column("predictions", predictions)
    return [checked_text(place.of("predictions", row), value) for row, value in enumerate(column)]


def check_candidate_lists(predictions: Texts, *, place: Place = BY_INDEX) -> list[tuple[str, ...]]:
    """Return the candidates of each row, given as a string or a list of strings."""
    column = list(map(unnested, _column("predictions", predictions)))
    return _lists("predictions", column, place, if_empty="give at least one candidate or leave the row out")


def check_references(references: Texts | None, *, place: Place = BY_INDEX) -> list[tuple[str, ...]]:
    """Return the references of each row, given as a string or a list of strings. None may be blank.

    Missing values (None, NaN, ...) in a list are left out.
    """
    return _lists(
        "references",
        _column("references", references),
        place,
        if_empty=f"give at least one reference or leave the row out. {_NO_MIX}",
        if_blank=f"reference; fill it or leave it out. {_NO_MIX}",
        drop_missing=True,
    )


def check_samples(samples: Texts | None, rows: int = 0, *, place: Place = BY_INDEX) -> list[tuple[str, ...]]:
    """Return the distinct samples of each row, given as a text, a list of texts, None, "" or an empty list.

    If ``samples`` is None, all ``rows`` rows have none. A blank text in a list is a ValueError.
    """
    if samples is None:
        return [()] * rows
    column = _column("samples", samples)
    column = [
        () if is_missing(value) or (isinstance(value, str) and is_blank(value)) else value for value in column
    ]
    if_blank = "sample; leave it out (an empty list is a row without samples)"
    lists = _lists("samples", column, place, if_blank=if_blank, drop_missing=True)
    return [tuple(dict.fromkeys(texts)) for texts in lists]


def check_tasks(tasks: Tasks | None, rows: int, *, place: Place = BY_INDEX) -> list[str]:
    """Return the task of each row: one of :data:`mars_score.rows.TASKS`, or "" for none.

    A single name or None applies to all ``rows`` rows.
    """
    if tasks is None or isinstance(tasks, str):
        tasks = [tasks] * rows
    checked = []
    for row, task in enumerate(_column("tasks", tasks)):
        task = "" if is_missing(task) else task
        if task not in ("", *TASKS):
            known = ", ".join(map(repr, TASKS))
            raise ValueError(f"{place.of('tasks', row)} must be one of {known}, got {task!r:.60}")
        checked.append(task)
    return checked


def check_contexts(
    contexts: Contexts | None,
    rows: int = 0,
    *,
    use_context: bool = True,
    place: Place = BY_INDEX,
    readings: Readings | None = None,
) -> list[Context]:
    """Check the contexts and return one per row.

    Args:
        contexts: per row a string; a list of strings (the turns of a dialogue) or of chat messages ``{"role": ...,
            "content": ...}``; ``{"passages": [...]}``, optionally with a ``"question"``; or any other dict, a
            record of fields and values. Missing values (None, NaN, ...) of a dict are left out, because Arrow
            gives all dicts of a column the same fields. Passages and chats may have the forms of
            :mod:`mars_score.data.forms`. None is allowed without ``use_context``.
        rows: the number of rows if the contexts are None.
        use_context: if False, contexts are checked, but blank ones are returned.
        place: names a row.
        readings: counts what was read. If None, a warning tells what was left out.

    Raises:
        TypeError, ValueError: a bad context, named with its row.
    """
    if contexts is None:
        if use_context:
            raise ValueError("contexts are missing: pass one string per row, or set use_context=False")
        return [Context("", "")] * rows
    counted = Readings() if readings is None else readings
    column = _column("contexts", contexts)
    checked = [_context(place.of("contexts", row), value, counted) for row, value in enumerate(column)]
    counted.rows += len(checked)
    if not use_context:
        return [Context("", "")] * len(checked)
    for sentence in counted.warnings() if readings is None else ():
        warn(sentence)
    return checked


def check_examples(
    references: Texts | None,
    contexts: Contexts | None,
    samples: Texts | None = None,
    tasks: Tasks | None = None,
    *,
    use_context: bool,
    task: str | None = None,
    place: Place = BY_INDEX,
    readings: Readings | None = None,
    **columns: Sequence[object],
) -> list[Example]:
    """Check what candidates are compared with, and return one example per row.

    Args:
        references: None to score by contexts alone, which then may not be blank.
        contexts: as for :func:`check_contexts`.
        samples: as for :func:`check_samples`.
        tasks: as for :func:`check_tasks`.
        use_context: if False, no row has a context.
        task: the task of rows without one in ``tasks``. If None, the type of the context implies it.
        place: names a row of a column.
        readings: as for :func:`check_contexts`.
        columns: other columns of the same length, by name.

    Raises:
        TypeError, ValueError: bad input, named with its row.
    """
    if references is None:
        checked_contexts = _contexts_alone(contexts, place, readings)
        reference_lists: list[tuple[str, ...]] = [()] * len(checked_contexts)
    else:
        reference_lists = check_references(references, place=place)
        columns["references"] = reference_lists
        checked_contexts = check_contexts(
            contexts, len(reference_lists), use_context=use_context, place=place, readings=readings
        )
    count = len(reference_lists)
    sample_lists = check_samples(samples, count, place=place)
    checked_tasks = check_tasks(tasks, count, place=place)
    for name, column, checked in (
        ("contexts", contexts, checked_contexts),
        ("samples", samples, sample_lists),
        ("tasks", tasks, checked_tasks),
    ):
        if column is not None:
            columns[name] = checked
    _check_lengths(columns)
    examples = []
    for texts, context, others, row_task in zip(
        reference_lists, checked_contexts, sample_lists, checked_tasks, strict=True
    ):
        kind = row_task or task or context.task or "text"
        text = _context_text(context.text, kind)
        examples.append(Example(tuple(dict.fromkeys(texts)), text, others, kind, context.question))
    return examples


def check_rows(
    predictions: Texts,
    references: Texts | None,
    contexts: Contexts | None,
    samples: Texts | None = None,
    tasks: Tasks | None = None,
    *,
    place: Place = BY_INDEX,
    **options: Any,
) -> list[Row]:
    """Check the columns of rows with one candidate each. ``options`` are those of :func:`check_examples`."""
    candidates = check_candidates(predictions, place=place)
    examples = check_examples(references, contexts, samples, tasks, place=place, predictions=candidates, **options)
    return [example.with_candidate(text) for example, text in zip(examples, candidates, strict=True)]


def _contexts_alone(contexts: Contexts | None, place: Place, readings: Readings | None) -> list[Context]:
    """Check contexts by which candidates are scored without references: none may be blank."""
    if contexts is None:
        raise ValueError("references and contexts are missing: pass one of them, one entry per row")
    checked = check_contexts(contexts, place=place, readings=readings)
    for row, context in enumerate(checked):
        if not context.text:
            raise ValueError(
                f"{place.of('contexts', row)} is blank, and without references there is nothing else to score the "
                "candidate by; fill it, give references or leave the row out"
            )
    return checked


def with_task(row: Row, task: str) -> Row:
    """Return a row with another task, its context normalised for that task."""
    return replace(row, task=task, context=_context_text(row.context, task))


def _context_text(text: str, task: str) -> str:
    # Line breaks separate the turns of a dialogue and the fields of a record. Elsewhere they are white space.
    return normalise(text, keep_lines=task in ("dialogue", "data"))


def _check_lengths(columns: Mapping[str, Sequence[object]]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        by_row = "; references go by row, not by system or annotator" if "references" in lengths else ""
        raise ValueError(f"all inputs need one entry for each row, but {sizes}; add or remove entries{by_row}")


def _column(name: str, value: object) -> list[Any]:
    if value is None:
        raise TypeError(f"{name} are missing: pass a list with one entry per row")
    entries = entries_of(value)
    if entries is not None:
        return entries
    if isinstance(value, str):
        remedy = "for a single row pass a list of one"
    elif isinstance(value, Set):
        remedy = "a set has no order: pass a list in the order of the rows"
    elif splits := splits_of(value):
        remedy = f'pass a column of one of its tables, such as data["{splits[0]}"]["{name}"]'
    elif isinstance(value, Mapping) or is_table(value):
        remedy = f'pass one of its columns, such as data["{name}"], or the table to MarsScorer.score_table'
    else:
        remedy = "pass a list"
    raise TypeError(f"{name} must be a list with one entry per row, got {type(value).__name__}; {remedy}")


def _lists(
    name: str,
    column: Sequence[object],
    place: Place,
    *,
    if_empty: str = "",
    if_blank: str = "",
    drop_missing: bool = False,
) -> list[tuple[str, ...]]:
    """Return the texts of each row, given as a text or a list of texts.

    With ``if_empty`` or ``if_blank``, an empty list or a blank text is an error with this remedy. With
    ``drop_missing``, missing entries of a list are left out, because tables pad short lists with them.
    """
    checked = []
    for row, value in enumerate(column):
        where = place.of(name, row)
        entries = None if isinstance(value, str) else entries_of(value)
        present = [value] if entries is None else entries
        if drop_missing and entries is not None:
            present = [entry for entry in entries if not is_missing(entry)]
        texts = tuple(checked_text(where, text) for text in present)
        if if_empty and not texts:
            raise ValueError(f"{where} is an empty list; {if_empty}")
        if if_blank and any(map(is_blank, texts)):
            raise ValueError(f"{where} holds a blank {if_blank}")
        checked.append(texts)
    return checked


def _context(name: str, value: object, readings: Readings) -> Context:
    value = usual_form(name, value)
    if isinstance(value, Mapping):
        record = {field: part for field, part in value.items() if not is_missing(part)}
        # Arrow gives the field of passages to all rows. Beside a question alone it is meant.
        if "passages" in record or ("passages" in value and record.keys() <= {"question"}):
            return _passages(name, record, readings)
        return Context(_record(name, record), "data")
    entries = None if isinstance(value, str) else entries_of(value)
    if entries is None:
        return Context(checked_text(name, value, as_it_is=True), "")
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        turns = [turn.text for turn in turns_of(name, entries, readings)]
    else:
        turns = [checked_text(name, entry, as_it_is=True) for entry in entries]
    if not any(turns):
        return Context("", "")
    if "" in turns:
        raise ValueError(f"{name}[{turns.index('')}] is blank; leave the turn out")
    readings.turns[len(turns)] += 1
    return Context("\n".join(" ".join(turn.splitlines()) for turn in turns), "dialogue")


def _passages(name: str, context: Mapping[str, object], readings: Readings) -> Context:
    """Join the passages by :data:`PASSAGE_BREAK`. The question stays apart."""
    passages = entries_of(context.get("passages")) if set(context) <= {"passages", "question"} else None
    if passages is None:
        raise TypeError(f"{name} must be a string, got {brief(context)}; {PASSAGES_REMEDY}")
    if len(passages) == 1 and isinstance(passages[0], (list, tuple)):
        passages = list(passages[0])  # Vector stores give a list for each question.
    texts, question = [], ""
    if "question" in context:
        part = f'{name}["question"]'
        text = checked_text(part, context["question"], "convert it or leave it out", as_it_is=True)
        if not text:
            raise ValueError(f"{part} is blank; leave it out")
        question = normalise(text.replace(PASSAGE_BREAK, " "))
        readings.questions += 1
    for number, passage in enumerate(map(document_text, passages)):
        part, text = f'{name}["passages"][{number}]', ""
        if not is_missing(passage):
            text = checked_text(part, passage, "convert it or leave it out", as_it_is=True)
        if text:
            texts.append(normalise(text.replace(PASSAGE_BREAK, " ")))
        else:
            readings.left_out["blank passages"] += 1
    readings.passages[len(texts)] += 1
    return Context(PASSAGE_BREAK.join(texts), "summary", question)


def _record(name: str, record: Mapping[str, object]) -> str:
    """Write a record as "field: value, field: value", with values other than strings as JSON."""
    if not record:
        fault = "is an empty record; give it fields with values other than None, or an empty text for no context"
        raise ValueError(f"{name} {fault}")
    try:
        values = {field: plain_value(value, f"{name}.{field}") for field, value in record.items()}
        texts = [
            f"{field}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for field, value in values.items()
        ]
    except RecursionError:
        raise TypeError(f"{name} must be a record of texts and numbers, got {brief(record)}; convert it") from None
    return checked_text(name, ", ".join(texts), as_it_is=True)
