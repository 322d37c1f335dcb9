"""Checks of what users pass in: each fault names the input, the row and the remedy.

Columns may be lists, tuples, numpy arrays, pandas series, pyarrow arrays or columns of a dataset; what comes
out is plain lists, tuples and strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = tuple[str, tuple[str, ...], str]  # candidate, references, context
Where = Callable[[int], str]  # names a row in an error: 3 -> "predictions[3]"


def check_candidates(predictions: Any, *, where: Where | None = None) -> list[str]:
    """The candidates, one string a row.

    Args:
        predictions: one string a row; blank ones are allowed.
        where: names a row in an error; by default ``predictions[3]``.

    Raises:
        TypeError: not a list, or a row that is not a string.
    """
    where = where or "predictions[{}]".format
    return [_text(where(row), value) for row, value in enumerate(_column("predictions", predictions))]


def check_references(references: Any, *, where: Where | None = None) -> list[tuple[str, ...]]:
    """The references, one or more strings a row.

    Args:
        references: a string or a list of strings a row; rows may be mixed.
        where: names a row in an error; by default ``references[3]``.

    Raises:
        TypeError: not a list, or a row that holds anything but strings.
        ValueError: a row without references, or with a blank one.
    """
    where = where or "references[{}]".format
    checked = []
    for row, value in enumerate(_column("references", references)):
        texts = value if _is_list(value) else [value]
        if len(texts) == 0:
            raise ValueError(f"{where(row)} is an empty list; give at least one reference or leave the row out")
        checked.append(tuple(_text(where(row), text) for text in _plain(texts)))
        if not all(text.strip() for text in checked[-1]):
            raise ValueError(f"{where(row)} holds a blank reference; fill it or leave it out")
    return checked


def check_contexts(contexts: Any, rows: int, *, use_context: bool, where: Where | None = None) -> list[str]:
    """The contexts, one string a row (a list of strings is joined with spaces).

    Args:
        contexts: a string or a list of strings a row; None only without ``use_context``.
        rows: how many rows the other inputs have.
        use_context: False returns empty contexts; what is given is checked all the same.
        where: names a row in an error; by default ``contexts[3]``.

    Raises:
        ValueError: contexts are omitted although ``use_context`` is True.
        TypeError: not a list, or a row that is neither a string nor a list of strings.
    """
    where = where or "contexts[{}]".format
    if contexts is None:
        if use_context:
            raise ValueError("contexts are missing: pass one string per row, or set use_context=False")
        return [""] * rows
    checked = []
    for row, value in enumerate(_column("contexts", contexts)):
        parts = _plain(value) if _is_list(value) else [value]
        checked.append(" ".join(_text(where(row), part) for part in parts))
    return checked if use_context else [""] * len(checked)


def check_lengths(**columns: Sequence[Any]) -> None:
    """Raise ValueError unless all columns have the same number of rows."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"all inputs need one entry for each row, but {found}; add or remove entries")


def _is_list(value: Any) -> bool:
    """Whether ``value`` is an ordered collection of values: a list, an array, a series, a dataset's column."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)) or hasattr(value, "columns"):
        return False  # iterating over a table or a mapping gives the names of its columns
    if getattr(value, "ndim", 1) == 0:  # a numpy scalar
        return False
    return isinstance(value, Sequence) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))


def _plain(values: Any) -> Iterable[Any]:
    """The values as Python objects (pyarrow iterates over scalars of its own)."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values  # type: ignore[no-any-return]


def _column(name: str, value: Any) -> Iterable[Any]:
    if value is None:
        raise TypeError(f"{name} are missing: pass a list with one entry per row")
    if not _is_list(value):
        raise TypeError(
            f"{name} must be a list with one entry per row, got {type(value).__name__}; "
            f"for a single row pass a list of one"
        )
    return _plain(value)


def _text(where: str, value: Any) -> str:
    """``value`` as a plain string; halves of characters (lone surrogates) become U+FFFD."""
    if not isinstance(value, str):
        raise TypeError(
            f"{where} must be a string, got {type(value).__name__} ({_shown(value)}); "
            f"convert it or leave the row out"
        )
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # cut emoji in JSON do this; no tokenizer, file or Arrow table takes them
        return whole(text)
    return text


def _shown(value: Any) -> str:
    """The beginning of what ``value`` looks like."""
    try:
        return f"{value!r:.60}"
    except RecursionError:
        return "nested too deeply to be shown"


def whole(text: str) -> str:
    """``text`` with halves of characters (lone surrogates) as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
