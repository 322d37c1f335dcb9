"""Checks of input rows: TypeErrors and ValueErrors name the input, the row and the remedy.

A column may be any ordered iterable: a list, a generator, a NumPy array, a pandas series, a pyarrow array, a
column of a dataset. The functions return plain lists, tuples and strings; a text of whitespace and zero-width
characters alone is blank and becomes "". ``where`` names a row in an error.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from mars_score.data.contexts import context_text
from mars_score.data.values import brief, entries_of, is_blank, is_table, whole


class Row(NamedTuple):
    """What a score depends on besides the settings; all texts are checked."""

    candidate: str
    references: tuple[str, ...]
    context: str
    samples: tuple[str, ...] = ()  # texts that others than the candidate's system wrote for the context


_NO_MIX = "To score every row by its context alone, give no references at all"
Where = Callable[[int], str]  # names a row in an error: 3 -> "predictions[3]"


def check_candidates(predictions: Any, *, where: Where = "predictions[{}]".format) -> list[str]:
    """The candidates, one string per row; blank ones are allowed."""
    return [_text(where(row), value) for row, value in enumerate(_column("predictions", predictions))]


def check_candidate_lists(predictions: Any) -> list[tuple[str, ...]]:
    """The candidates of each row: a string, or a list of them."""
    remedy = "give at least one candidate or leave the row out"
    return _lists(_column("predictions", predictions), "predictions[{}]".format, if_empty=remedy)


def check_references(references: Any, *, where: Where = "references[{}]".format) -> list[tuple[str, ...]]:
    """The references, one or more strings per row, none of them blank; a row may be a string."""
    return _lists(
        _column("references", references),
        where,
        if_empty=f"give at least one reference or leave the row out. {_NO_MIX}",
        if_blank=f"reference; fill it or leave it out. {_NO_MIX}",
    )


def check_samples(samples: Any, rows: int = 0, *, where: Where = "samples[{}]".format) -> list[tuple[str, ...]]:
    """The different samples of each row: a text, or a list of texts; None, "" and an empty list are none.

    None: ``rows`` rows without samples. A blank text within a list is a ValueError.
    """
    if samples is None:
        return [()] * rows
    if isinstance(samples, int):
        raise TypeError(
            f"samples are texts for each row, got {samples}; the number of texts that the language model is to "
            "write is sample_count"
        )
    column = _column("samples", samples)
    column = [() if value is None or (isinstance(value, str) and is_blank(value)) else value for value in column]
    remedy = "sample; leave it out (an empty list is a row without samples)"
    checked = _lists(column, where, if_blank=remedy)
    return [tuple(dict.fromkeys(map(str.strip, texts))) for texts in checked]


def check_contexts(
    contexts: Any, rows: int = 0, *, use_context: bool = True, where: Where = "contexts[{}]".format
) -> list[str]:
    """The contexts, one string per row; empty ones without ``use_context``, but they are checked all the same.

    Each may have any of the forms of :func:`mars_score.data.contexts.context_text`. None: ``rows`` rows without
    contexts.
    """
    if contexts is None:
        if use_context:
            raise ValueError("contexts are missing: pass one string per row, or set use_context=False")
        return [""] * rows
    checked = [
        _text(where(row), context_text(where(row), value))
        for row, value in enumerate(_column("contexts", contexts))
    ]
    return checked if use_context else [""] * len(checked)


def check_reference_free(contexts: Any, *, where: Where = "contexts[{}]".format) -> list[str]:
    """The contexts of rows that are scored without references, one string per row, none of them blank."""
    if contexts is None:
        raise ValueError("references and contexts are missing: pass one of them, one entry per row")
    checked = check_contexts(contexts, where=where)
    for row, context in enumerate(checked):
        if is_blank(context):
            raise ValueError(
                f"{where(row)} is blank, and without references there is nothing else to score the candidate by; "
                "fill it, give references or leave the row out"
            )
    return checked


def check_rows(
    references: Any,
    contexts: Any,
    samples: Any = None,
    *,
    use_context: bool,
    where: Callable[[str], Where] = lambda column: f"{column}[{{}}]".format,
    **columns: Sequence[Any],
) -> tuple[list[tuple[str, ...]], list[str], list[tuple[str, ...]]]:
    """References, context and samples of each row; ``columns`` are others that must be as long, by name.

    Without references (None) rows are scored by their contexts, which are checked by :func:`check_reference_free`.
    """
    if references is None:
        texts = check_reference_free(contexts, where=where("contexts"))
        rows: list[tuple[str, ...]] = [()] * len(texts)
    else:
        rows = check_references(references, where=where("references"))
        columns["references"] = rows
        texts = check_contexts(contexts, len(rows), use_context=use_context, where=where("contexts"))
    if contexts is not None:
        columns["contexts"] = texts
    others = check_samples(samples, len(rows), where=where("samples"))
    if samples is not None:
        columns["samples"] = others
    check_lengths(**columns)
    return rows, texts, others


def check_lengths(**columns: Sequence[Any]) -> None:
    """Raise ValueError unless all columns have the same number of rows."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"all inputs need one entry for each row, but {sizes}; add or remove entries")


def _column(name: str, value: Any) -> list[Any]:
    """The entries of a column."""
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
    """The texts of each row, a text or a list; what the arguments tell is refused with them."""
    checked = []
    for row, value in enumerate(column):
        place = where(row)
        entries = None if isinstance(value, str) else entries_of(value)
        texts = tuple(_text(place, text) for text in ([value] if entries is None else entries))
        if if_empty and not texts:
            raise ValueError(f"{place} is an empty list; {if_empty}")
        if if_blank and any(map(is_blank, texts)):
            raise ValueError(f"{place} holds a blank {if_blank}")
        checked.append(texts)
    return checked


def _text(place: str, value: Any) -> str:
    """``value`` as a plain string; unpaired surrogates become U+FFFD, a text that shows nothing becomes ""."""
    if not isinstance(value, str):
        raise TypeError(f"{place} must be a string, got {brief(value)}; convert it or leave the row out")
    text = whole(str(value))  # halves are from cut emoji in JSON; tokenizers, files and Arrow tables refuse them
    return "" if is_blank(text) else text
