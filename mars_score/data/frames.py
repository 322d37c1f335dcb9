"""Columns of tables and of lists of rows: pandas, polars, pyarrow, datasets, dicts of columns, lists of dicts."""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import chain, islice
from typing import Any, NamedTuple

from mars_score.data.names import find_question, usual_titles
from mars_score.errors import Place, brief, warn
from mars_score.options import unknown_name

_OPTIONAL = ("samples", "task")  # columns that are used only if the user names them
NAMES = ("prediction", "reference", "context", *_OPTIONAL)
_MISSING = object()
_LONGEST_LITERAL = 2**20  # characters of a cell that is parsed


# Tables


class TableColumns(NamedTuple):
    """The columns of a table that count, None for one that is not used, and their titles by what they hold."""

    predictions: Any
    references: Any
    contexts: Any
    samples: Any
    tasks: Any
    titles: Mapping[str, Any]
    questions: Sequence[Any] | None


def in_memory(data: Any) -> Any:
    """Return ``data``, with a stream of rows as a list and a lazy table as a computed one."""
    if isinstance(data, Iterator):
        first = list(islice(data, 1))
        return [*first, *data] if first and isinstance(first[0], Mapping) else chain(first, data)
    if is_table(data) and hasattr(data, "collect"):  # polars.LazyFrame
        return data.collect()
    if is_table(data) and not hasattr(data, "__len__"):  # datasets.IterableDataset
        return list(data)
    return data


def is_table(value: Any) -> bool:
    """Tell whether iterating gives names of columns (pandas, polars) or whole rows (datasets)."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def splits_of(value: Any) -> list[Any]:
    """Return the names of the tables in a dict of tables, such as a DatasetDict; none for anything else."""
    is_dict = isinstance(value, Mapping) and len(value) > 0 and all(map(is_table, value.values()))
    return list(value) if is_dict else []


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for none: None, NaN, NaT, pandas' NA, or a null of Arrow."""
    if hasattr(value, "as_py"):  # a scalar of Arrow
        value = value.as_py()
    if value is None or type(value).__name__ == "NAType":
        return True
    if hasattr(value, "__len__") and getattr(value, "ndim", None) != 0:  # a text, a list, an array, ...
        return False
    return bool(value != value)  # true of NaN and NaT alone


def plain_value(value: Any, name: str) -> Any:
    """Return a value of a record as JSON can hold it: arrays as lists, dates as texts, missing ones as None.

    Missing fields of a record are left out; missing entries of a list stay as None, as their places count.

    Args:
        value: as Python, NumPy, pandas, polars or Arrow give it.
        name: names the value in an error.

    Raises:
        TypeError: the value, named by its path, is something else.
    """
    if hasattr(value, "as_py"):
        value = value.as_py()
    if is_missing(value):
        return None
    if isinstance(value, Mapping):
        parts = {field: plain_value(part, f"{name}.{field}") for field, part in value.items()}
        return {field: part for field, part in parts.items() if part is not None}
    entries = entries_of(value)
    if entries is not None:
        return [plain_value(entry, f"{name}[{number}]") for number, entry in enumerate(entries)]
    if type(value).__module__ == "numpy":
        value = str(value) if type(value).__name__ in ("datetime64", "timedelta64") else value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    if not isinstance(value, (str, bool, int, float)):
        raise TypeError(f"{name} must be a text, a number or a date, got {brief(value)}; convert it")
    return value


def is_tabular(data: Any) -> bool:
    """Tell whether ``data`` is a table or a list of dicts, and not a column of texts."""
    if isinstance(data, Mapping) or is_table(data):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], Mapping)


def columns_of(
    data: Any,
    names: Mapping[str, str | None] | None = None,
    *,
    use_context: bool = True,
    first: int = 0,
    kinds: "CellKinds | None" = None,
) -> TableColumns:
    """Return the columns of a table.

    Without a column of contexts one is taken that is called as passages usually are
    (:mod:`mars_score.data.names`); and without one of these, or of candidates, a chat.

    Args:
        data: a pandas or polars frame, a pyarrow table, a data set of ``datasets``, a dict of columns, or a list
            of dicts, one per row.
        names: the names of columns not called ``prediction``, ``reference`` and ``context`` (or in the plural),
            such as ``{"reference": "answer"}``; ``"doc.answer"`` is in the dicts of a column ``doc``. A column
            named None is not used. Samples and tasks have no default names: ``{"samples": "others", "task":
            "kind"}``.
        use_context: whether the contexts are used.
        first: number of the first row in errors and warnings.
        kinds: of the cells of the rows before these.

    Raises:
        TypeError: an unknown key of ``names``, a row that is no dict, or a column that is no list.
        ValueError: a column is missing in some rows or in all; or some of its cells hold lists or objects written
            as texts, and others texts.
    """
    named = {**(names or {}), **({} if use_context else {"context": None})}
    columns, cells = _names_in(data, first), kinds or CellKinds()
    titles = _titles_of(data, named, columns)

    def column(name: str) -> list[Any] | None:
        title = titles[name]
        if title is None:
            return None
        is_exact = title != name or (name in named and title in columns)
        title, values = _column(data, columns, name, (title,) if is_exact else (title, f"{title}s"), first)
        titles[name] = title
        if name == "task" or not all(isinstance(value, str) or is_missing(value) for value in values):
            return values
        place = Place(first, {name: f"column {title!r}"})
        return cells.parse(values, name, place, "pass the columns one by one, as lists of texts")

    found, question = list(map(column, NAMES)), None
    if titles["context"] is not None:
        question = find_question(columns, [title for name, title in titles.items() if name != "context"])
    return TableColumns._make([*found, titles, None if question is None else _values(data, question)])


def _titles_of(data: Any, names: Mapping[str, str | None], columns: Sequence[Any]) -> dict[str, Any]:
    """Return the titles of the columns of a table by their names here."""
    for name in names:
        if name not in NAMES:
            raise unknown_name("column", name, NAMES)
    titles = {name: name for name in NAMES} | dict.fromkeys(_OPTIONAL) | {**names}
    unknown = [name for name in ("context", "prediction") if titles[name] == name and name not in names]
    unknown = [name for name in unknown if name not in columns and f"{name}s" not in columns]
    return titles | _usual_titles(unknown, columns, data)


def _usual_titles(unknown: Sequence[str], columns: Sequence[Any], data: Any) -> dict[str, Any]:
    """Return the titles of columns that are called as contexts or candidates are elsewhere."""

    def holds_list(title: Any) -> bool:
        value = next((value for value in _values(data, title) if not is_missing(value) and value != ""), None)
        value = value_of_cell(value, "context") if isinstance(value, str) else value
        return not isinstance(value, str) and entries_of(value) is not None

    return usual_titles(unknown, columns, holds_list, "name one: columns={'context': ...}")


def _values(data: Any, title: Any) -> list[Any]:
    """Return the values of a column of a table, None where a dict of a list lacks it."""
    if isinstance(data, Sequence):
        return [row.get(title) for row in data]
    return entries_of(data[title]) or []


def _names_in(data: Any, first: int) -> list[Any]:
    """Return the names of the columns of a table, or of those that any dict of a list has."""
    if splits := splits_of(data):
        shown = ", ".join(map(repr, splits))
        fault = f"this {type(data).__name__} has several tables: {shown}"
        raise ValueError(f"{fault}; pass one of them, such as data[{splits[0]!r}]")
    if not isinstance(data, Sequence):
        return list(data if isinstance(data, Mapping) else getattr(data, "column_names", None) or data.columns)
    for number, row in enumerate(data, first):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a dict like the first, got {type(row).__name__} ({row!r:.60})")
    return list(dict.fromkeys(chain.from_iterable(data)))


def _column(
    data: Any, columns: Sequence[Any], name: str, titles: Sequence[str], first: int
) -> tuple[str, list[Any]]:
    """Return the title and the values of the only column with one of these titles."""
    matching = _matching(data, columns, titles, first)
    if len(matching) != 1:
        fault = f"several columns could be {titles[0]!r}" if matching else f"there is no column {titles[0]!r}"
        shown = ", ".join(map(repr, columns)) or "none"
        remedy = f"say which column holds the {name.removesuffix('s')}s: columns={{{name!r}: ...}}"
        remedy += " (None: score without references)" * (name == "reference")
        raise ValueError(f"{fault} (columns here: {shown}); {remedy}")
    title, column = matching[0]
    values = entries_of(column)
    if values is None:
        fault = f"must be a list with one entry per row, got {brief(column)}"
        raise TypeError(f"column {title!r} {fault}; for a single row pass a list of one")
    return title, values


def _matching(data: Any, columns: Sequence[Any], titles: Sequence[str], first: int) -> list[tuple[str, Any]]:
    """Return the columns with one of these titles, which may be in the dicts of a column (``doc.question``)."""
    if isinstance(data, Sequence):
        return _matching_in_rows(data, titles, first)
    matching = [(title, data[title]) for title in columns if title in titles]
    for head in columns:
        if not matching and isinstance(head, str) and titles[0].startswith(f"{head}."):
            rows = [{head: fields} for fields in entries_of(data[head]) or []]
            matching = _matching_in_rows(rows, titles[:1], first)
    return matching


def _matching_in_rows(
    rows: Sequence[Mapping[Any, Any]], titles: Sequence[str], first: int
) -> list[tuple[str, Any]]:
    """Return the columns that all rows have; raise ValueError if only some rows have any."""
    columns = {title: [get_field(row, title, _MISSING) for row in rows] for title in titles}
    lacking = {
        title: [number for number, value in enumerate(column, first) if value is _MISSING]
        for title, column in columns.items()
    }
    complete = [(title, column) for title, column in columns.items() if not lacking[title]]
    for title, numbers in lacking.items():
        if not complete and len(numbers) < len(rows):
            fault = f"row {numbers[0]} has no {title!r}, which others have"
            raise ValueError(f"{fault}; add it or leave the row out")
    return complete


def entries_of(value: Any) -> list[Any] | None:
    """Return the entries of an ordered iterable as Python objects; None for strings, sets, tables and others."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)) or is_table(value):
        return None
    if getattr(value, "ndim", 1) == 0:  # It is a NumPy scalar.
        return None
    if hasattr(value, "to_pylist"):  # Iterating over it gives scalars of pyarrow.
        return list(value.to_pylist())
    is_iterable = isinstance(value, Iterable) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))
    return list(value) if is_iterable else None


# Fields of a row


def get_field(row: Mapping[Any, Any], name: Any, default: Any = None) -> Any:
    """Return a value of a row, such as ``doc.question`` in its object ``doc`` or ``resps.0`` in its list."""
    if name in row:
        return row[name]
    head, rest = _split_name(row, name)
    value = row.get(head)
    if isinstance(value, (list, tuple)):
        value = _by_index(value)
    return get_field(value, rest, default) if isinstance(value, Mapping) else default


def with_field(row: Mapping[Any, Any], name: Any, value: Any) -> dict[Any, Any]:
    """Return a copy of a row with another value of a field that it has, named as for :func:`get_field`."""
    if name in row:
        return {**row, name: value}
    head, rest = _split_name(row, name)
    fields = row[head]
    if isinstance(fields, (list, tuple)):
        return {**row, head: list(with_field(_by_index(fields), rest, value).values())}
    return {**row, head: with_field(fields, rest, value)}


def _split_name(row: Mapping[Any, Any], name: Any) -> tuple[Any, str]:
    """Split a name at the first point before which the row has a column; the column is None if there is none."""
    parts = name.split(".") if isinstance(name, str) else ()
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        if head in row:
            return head, ".".join(parts[count:])
    return None, ""


def _by_index(values: Sequence[Any]) -> dict[str, Any]:
    return {str(index): value for index, value in enumerate(values)}


def unnested(value: Any) -> Any:
    """Flatten a list of lists of one text each, as evaluation harnesses write it; leave other values alone."""
    if not isinstance(value, (list, tuple)) or not value:
        return value
    if all(isinstance(texts, (list, tuple)) and len(texts) == 1 and isinstance(texts[0], str) for texts in value):
        return [texts[0] for texts in value]
    return value


# Cells


def value_of_cell(text: str, column: str) -> Any:
    """Return the list or object that a cell holds in the notation of JSON or Python, or else its text.

    A cell of column "context" may hold a list of texts or objects, or an object; others one of texts or messages.
    """
    start = text.strip()[:1]
    if start not in ("[", "{") or len(text) > _LONGEST_LITERAL or (start == "{" and column != "context"):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        is_object = isinstance(value, dict) and all(isinstance(key, str) for key in value)
        kinds = (str, dict) if column == "context" else (str,)
        is_list = isinstance(value, list) and any(all(isinstance(part, kind) for part in value) for kind in kinds)
        is_list |= isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value)
        if value and (is_object or is_list):
            return value
    return text


class CellKinds:
    """Parses cells that hold lists or objects written as texts; a column holds either these or texts."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, str]] = {}  # by column: its kind, and where its first cell is
        self._told_of_quotes = False

    def tell_of_quotes(self, path: str) -> None:
        """Warn, once, that cells of a TSV file are taken without their quotes."""
        if not self._told_of_quotes:
            warn(f"{path} has cells between quotes, as a CSV writer wrote it, and is read like CSV with tabs")
        self._told_of_quotes = True

    def parse(self, values: Sequence[Any], column: str, place: Place, remedy: str) -> list[Any]:
        """Return the values of the next cells of a column, and warn if its first cell is a list or an object.

        Args:
            values: the cells, of which only texts that are not blank are parsed.
            column: "prediction", "reference", "context" or "samples".
            place: names a cell in errors.
            remedy: how to have the cells taken as texts.

        Raises:
            ValueError: some cells hold lists or objects, and others texts.
        """
        parsed = list(values)
        for row, text in enumerate(values):
            if not isinstance(text, str) or not text.strip():
                continue
            parsed[row] = value_of_cell(text, column)
            kind = "a text" if parsed[row] is text else "a list or an object"
            where = place.of(column, row)
            if column not in self._kinds:
                self._kinds[column] = kind, where
                if kind != "a text":
                    warn(f"{where} and the others of its column hold lists or objects, and are taken as such")
            first_kind, first = self._kinds[column]
            if kind != first_kind:
                fault = f"{where} holds {kind}, but {first} {first_kind}"
                raise ValueError(f"{fault}; write all cells of a column alike, or {remedy}")
        return parsed
