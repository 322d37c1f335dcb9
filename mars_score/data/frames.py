"""Columns of tables and of lists of rows: pandas, polars, pyarrow, datasets, dicts of columns, lists of dicts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from mars_score.data.cells import CellKinds
from mars_score.data.values import entries_of, get_field, is_table
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
        TypeError: an unknown key of ``names``, or a row that is no dict.
        ValueError: a missing column, or one of which some cells hold lists or objects as texts, and others texts.
    """
    names = names or {}
    for name in names:
        if name not in NAMES:
            raise unknown_name("column", name, NAMES)
    if isinstance(data, Sequence):
        data = _columns_of_rows(data)
    columns = (
        list(data) if isinstance(data, Mapping) else list(getattr(data, "column_names", None) or data.columns)
    )
    called = {name: name for name in NAMES} | dict.fromkeys(_OPTIONAL) | {**names}
    if not use_context:
        called["context"] = None
    predictions, references, contexts, samples, tasks = (
        _column(data, columns, name, called[name]) for name in NAMES
    )
    return predictions, references, contexts, samples, tasks


def _column(data: Any, columns: Sequence[Any], name: str, called: str | None) -> list[Any] | None:
    """Return a column's values; the plural of a usual name is taken, too, and lists written as texts are lists."""
    if called is None:
        return None
    usual = (called, f"{called}s") if called == name else (called,)
    matching = [column for column in columns if column in usual]
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
        raise TypeError(f"column {matching[0]!r} must hold one entry per row; {remedy}")
    if name == "task" or not all(value is None or isinstance(value, str) for value in values):
        return values
    where = f"column {matching[0]!r}[{{}}]".format
    return CellKinds().parse(values, name, where, "pass the columns one by one, as lists of texts")


def _nested_values(data: Any, columns: Sequence[Any], called: str) -> list[Any] | None:
    """Return the values of ``doc.question``, which are in the dicts of a column ``doc``; None: there are none."""
    for head in columns:
        if not (isinstance(head, str) and called.startswith(f"{head}.")):
            continue
        rows = entries_of(data[head]) or []
        values = [get_field({head: row}, called, _MISSING) for row in rows]
        if rows and values.count(_MISSING) < len(values):
            missing = next((row for row, value in enumerate(values) if value is _MISSING), None)
            if missing is not None:
                raise ValueError(f"row {missing} has no {called!r}, which others have; add it or leave it out")
            return values
    return None


def _columns_of_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return the columns of a list of dicts: those that all dicts have."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a dict like the first, got {type(row).__name__} ({row!r:.60})")
    columns = {}
    for name in rows[0]:
        without = next((number for number, row in enumerate(rows) if name not in row), None)
        if without is None:
            columns[name] = [row[name] for row in rows]
        elif name in (*NAMES, *(f"{usual}s" for usual in NAMES)):
            raise ValueError(f"row {without} has no {name!r}, which the first has; add it or leave the row out")
    return columns
