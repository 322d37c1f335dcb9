"""Read tables and values of Python, NumPy, pandas, polars, Arrow and datasets, fields of rows, and cells."""

import ast
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

from mars_score.errors import Place, brief, warn

_LONGEST_LITERAL = 2**20  # characters of a cell that is parsed


# Tables


def in_memory(data: Any) -> Any:
    """Return ``data``. Collect a lazy table, and read a stream of rows into a list."""
    if is_table(data) and hasattr(data, "collect"):  # polars.LazyFrame
        return data.collect()
    if is_table(data) and not hasattr(data, "__len__"):  # datasets.IterableDataset
        return list(data)
    return data


def is_table(value: object) -> bool:
    """Tell whether a value is a table, which yields column names (pandas, polars) or whole rows (datasets)."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def splits_of(value: Any) -> list[Any]:
    """Return the names of the tables in a dict of tables, such as a DatasetDict; [] for anything else."""
    is_dict = isinstance(value, Mapping) and len(value) > 0 and all(map(is_table, value.values()))
    return list(value) if is_dict else []


def is_missing(value: object) -> bool:
    """Tell whether a value is missing: None, NaN, NaT, pandas' NA, or a null of Arrow."""
    if hasattr(value, "as_py"):  # a scalar of Arrow
        value = value.as_py()
    if value is None or type(value).__name__ == "NAType":
        return True
    if hasattr(value, "__len__") and getattr(value, "ndim", None) != 0:  # a text, a list, an array, ...
        return False
    return bool(value != value)  # true of NaN and NaT alone


def plain_value(value: Any, name: str) -> object:
    """Convert a value of Python, NumPy, pandas, polars or Arrow to what JSON can hold.

    Arrays become lists, dates texts, and missing values None. Missing fields of a dict are left out.

    Raises:
        TypeError: the value is of another type. It is named by its path, which begins with ``name``.
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


def entries_of(value: Any) -> list[Any] | None:
    """Return the entries of an ordered iterable as Python objects; None for strings, sets, tables and others."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)) or is_table(value):
        return None
    if getattr(value, "ndim", 1) == 0:  # a NumPy scalar
        return None
    if hasattr(value, "to_pylist"):  # Iteration would give scalars of pyarrow.
        return list(value.to_pylist())
    is_iterable = isinstance(value, Iterable) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))
    return list(value) if is_iterable else None


# Fields of a row


def get_field(row: Mapping[str, object], name: str, default: object = None) -> Any:
    """Return a value of a row: ``doc.question`` of its object ``doc``, or ``resps.0`` of its list ``resps``."""
    if name in row:
        return row[name]
    head, rest = _split_name(row, name)
    value = row.get(head)
    if isinstance(value, (list, tuple)):
        value = _by_index(value)
    return get_field(value, rest, default) if isinstance(value, Mapping) else default


def with_field(row: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    """Return a copy of a row with another value in an existing field, named as for :func:`get_field`."""
    if name in row:
        return {**row, name: value}
    head, rest = _split_name(row, name)
    fields = row[head]
    if isinstance(fields, (list, tuple)):
        return {**row, head: list(with_field(_by_index(fields), rest, value).values())}
    return {**row, head: with_field(fields, rest, value)}


def head_of(titles: Iterable[str], name: str) -> str | None:
    """Return the column that holds a field, named as for :func:`get_field`, or None."""
    row = dict.fromkeys(titles)
    return name if name in row else _split_name(row, name)[0]


def _split_name(row: Mapping[str, object], name: str) -> tuple[Any, str]:
    """Split a name at the first dot that follows a column of the row, or return (None, "")."""
    parts = name.split(".")
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        if head in row:
            return head, ".".join(parts[count:])
    return None, ""


def _by_index(values: Sequence[object]) -> dict[str, object]:
    return {str(index): value for index, value in enumerate(values)}


def unnested(value: object) -> object:
    """Flatten a list of lists of one text each, as evaluation harnesses write. Return other values unchanged."""
    if not isinstance(value, (list, tuple)) or not value:
        return value
    if all(isinstance(texts, (list, tuple)) and len(texts) == 1 and isinstance(texts[0], str) for texts in value):
        return [texts[0] for texts in value]
    return value


# Cells


def value_of_cell(text: str, column: str) -> object:
    """Parse a cell that holds a list or an object, serialised as JSON or by Python; return other texts unchanged.

    A cell of the column "context" may hold an object, or a list of texts or objects. Cells of other columns may
    hold a list of texts or messages.
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
    """Parses cells that hold serialised lists or objects. All cells of a column must be alike."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, str]] = {}  # by column: its kind, and where its first cell is
        self._told_of_quotes = False

    def tell_of_quotes(self, path: str) -> None:
        """Warn once that the quotes around cells of a TSV file are removed."""
        if not self._told_of_quotes:
            warn(f"{path} has cells between quotes, as a CSV writer wrote it, and is read like CSV with tabs")
        self._told_of_quotes = True

    def parse(self, values: Sequence[object], column: str, place: Place, remedy: str) -> list[object]:
        """Parse the next cells of a column. Warn if its first cell is a list or an object.

        ``place`` names a cell in errors, and ``remedy`` says how the user can keep the cells as texts.

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
                    warn(f"{where} and the others of its column hold lists or objects, and are parsed")
            first_kind, first = self._kinds[column]
            if kind != first_kind:
                fault = f"{where} holds {kind}, but {first} {first_kind}"
                raise ValueError(f"{fault}; write all cells of a column alike, or {remedy}")
        return parsed
