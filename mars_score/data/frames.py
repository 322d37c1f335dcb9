"""Columns of tables and of lists of rows: pandas, polars, pyarrow, datasets, dicts of columns, lists of dicts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from mars_score.data.cells import CellKinds
from mars_score.data.values import brief, entries_of, get_field, is_table
from mars_score.options import unknown_name

_OPTIONAL = ("samples", "task")  # taken only from columns that are named
NAMES = ("prediction", "reference", "context", *_OPTIONAL)
_MISSING = object()
_Columns = tuple[Any, Any, Any, Any, Any]


def in_memory(data: Any) -> Any:
    """Return ``data``; a stream of rows, or a table that is yet to be computed, as a table or a list of rows."""
    if isinstance(data, Iterator):
        first = list(islice(data, 1))
        return [*first, *data] if first and isinstance(first[0], Mapping) else chain(first, data)
    if is_table(data) and hasattr(data, "collect"):  # polars.LazyFrame
        return data.collect()
    if is_table(data) and not hasattr(data, "__len__"):  # datasets.IterableDataset
        return list(data)
    return data


def is_tabular(data: Any) -> bool:
    """Tell whether ``data`` is a table or a list of dicts, and not a column of texts."""
    if isinstance(data, Mapping) or is_table(data):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], Mapping)


def columns_of(data: Any, names: Mapping[str, str | None] | None = None, *, use_context: bool = True) -> _Columns:
    """Return predictions, references, contexts, samples and tasks of a table; None for a column that it has not.

    Args:
        data: a pandas or polars frame, a pyarrow table, a data set of ``datasets``, a dict of columns, or a list
            of dicts, one per row.
        names: what columns are called if not ``prediction``, ``reference`` and ``context`` (or in the plural),
            such as ``{"reference": "answer"}``; ``"doc.answer"`` is in the dicts of a column ``doc``. A name of
            None: there are none. Samples and tasks are taken only from columns that are named here: ``{"samples":
            "others", "task": "kind"}``.
        use_context: False: without contexts.

    Raises:
        TypeError: an unknown key of ``names``, a row that is no dict, or a column that is no list.
        ValueError: a missing column, also in a single row, or one of which some cells hold lists or objects as
            texts, and others texts.
    """
    names = names or {}
    for name in names:
        if name not in NAMES:
            raise unknown_name("column", name, NAMES)
    called = {name: name for name in NAMES} | dict.fromkeys(_OPTIONAL) | {**names}
    if not use_context:
        called["context"] = None
    if isinstance(data, Sequence):
        columns = _names_in(data)
    else:
        columns = list(data if isinstance(data, Mapping) else getattr(data, "column_names", None) or data.columns)
    exact = {name for name, title in names.items() if title in columns}
    titles = {
        name: (title, f"{title}s") if title == name and name not in exact else (title,)
        for name, title in called.items()
        if title is not None
    }
    if isinstance(data, Sequence):
        data = _columns_of_rows(data, titles.values())
        columns = list(data)
    predictions, references, contexts, samples, tasks = (
        _column(data, columns, name, titles.get(name, ())) for name in NAMES
    )
    return predictions, references, contexts, samples, tasks


def _column(data: Any, columns: Sequence[Any], name: str, titles: Sequence[str]) -> list[Any] | None:
    """Return the values of the only column with one of these titles; lists that are written as texts are lists."""
    if not titles:
        return None
    called = titles[0]
    matching = [column for column in columns if column in titles]
    remedy = f"say which column holds the {name.removesuffix('s')}s: columns={{{name!r}: ...}}"
    remedy += " (None: score without references)" * (name == "reference")
    if not matching and (values := _nested_values(data, columns, called)) is not None:
        return values
    if len(matching) != 1:
        fault = f"several columns could be {called!r}" if matching else f"there is no column {called!r}"
        shown = ", ".join(map(repr, columns)) or "none"
        raise ValueError(f"{fault} (columns here: {shown}); {remedy}")
    values = entries_of(data[matching[0]])
    if values is None:
        fault = f"must be a list with one entry per row, got {brief(data[matching[0]])}"
        raise TypeError(f"column {matching[0]!r} {fault}; for a single row pass a list of one")
    if name == "task" or not all(value is None or isinstance(value, str) for value in values):
        return values
    where = f"column {matching[0]!r}[{{}}]".format
    return CellKinds().parse(values, name, where, "pass the columns one by one, as lists of texts")


def _nested_values(data: Any, columns: Sequence[Any], called: str) -> list[Any] | None:
    """Return the values of ``doc.question``, which are in the dicts of a column ``doc``; None: there are none."""
    for head in columns:
        if not (isinstance(head, str) and called.startswith(f"{head}.")):
            continue
        rows = [{head: row} for row in entries_of(data[head]) or []]
        _check_rows_have(rows, (called,))
        values = [get_field(row, called, _MISSING) for row in rows]
        if values and values[0] is not _MISSING:
            return values
    return None


def _names_in(rows: Sequence[Any]) -> list[Any]:
    """Return the names of the columns that any row has; TypeError: a row is no dict."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a dict like the first, got {type(row).__name__} ({row!r:.60})")
    return list(dict.fromkeys(chain.from_iterable(rows)))


def _columns_of_rows(rows: Sequence[Any], wanted: Iterable[Sequence[str]]) -> dict[Any, list[Any]]:
    """Return the columns that all rows have; ValueError: a ``wanted`` one, by its titles, is in some rows only."""
    for titles in wanted:
        _check_rows_have(rows, titles)
    return {name: [row[name] for row in rows] for name in rows[0] if all(name in row for row in rows)}


def _check_rows_have(rows: Sequence[Mapping[Any, Any]], titles: Sequence[str]) -> None:
    """Raise ValueError where only some rows have a column, which may have any one of these titles."""
    lacking = {
        title: [number for number, row in enumerate(rows) if get_field(row, title, _MISSING) is _MISSING]
        for title in titles
    }
    if all(lacking.values()):
        for title, numbers in lacking.items():
            if len(numbers) < len(rows):
                fault = f"row {numbers[0]} has no {title!r}, which others have"
                raise ValueError(f"{fault}; add it or leave the row out")
