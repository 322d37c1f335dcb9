"""Single values: entries of a column, texts that can be written, values as JSON holds them."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

_INVISIBLE = {"Cf", "Cc", "Zs", "Zl", "Zp"}  # categories of Unicode: zero-width characters, controls, spaces


def entries_of(value: Any) -> list[Any] | None:
    """Return the entries of an ordered iterable as Python objects; None for strings, sets, tables and all else."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)) or is_table(value):
        return None
    if getattr(value, "ndim", 1) == 0:  # It is a NumPy scalar.
        return None
    if hasattr(value, "to_pylist"):  # Iterating over it gives scalars of pyarrow.
        return list(value.to_pylist())
    is_iterable = isinstance(value, Iterable) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))
    return list(value) if is_iterable else None


def get_field(row: Mapping[Any, Any], name: Any, default: Any = None) -> Any:
    """Return a value of a row; ``doc.question`` is in its object ``doc``, ``resps.0`` in its list ``resps``."""
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
    """Return a list of lists that hold one text each, as evaluation harnesses write them, as a list of texts."""
    if not isinstance(value, (list, tuple)) or not value:
        return value
    if all(isinstance(one, (list, tuple)) and len(one) == 1 and isinstance(one[0], str) for one in value):
        return [one[0] for one in value]
    return value


def is_table(value: Any) -> bool:
    """Tell whether iterating gives names of columns (pandas, polars) or whole rows (datasets)."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: it is empty, or all whitespace and zero-width characters."""
    text = text.strip()
    return not text or (not text.isascii() and all(unicodedata.category(sign) in _INVISIBLE for sign in text))


def whole(text: str) -> str:
    """Replace unpaired surrogates, which UTF-8 cannot hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def brief(value: Any) -> str:
    """Return the type of a value and the start of its representation, for an error."""
    try:
        return f"{type(value).__name__} ({value!r:.60})"
    except RecursionError:
        return f"{type(value).__name__} (nested too deeply to be shown)"


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: NaN and infinities as None, decimals as floats, dates in ISO 8601.

    Raises:
        TypeError: JSON cannot hold it.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__}")


def one_line(text: str, length: int | None = None) -> str:
    """Remove line breaks and control characters, and cut the text to ``length`` characters with an ellipsis."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if length is None or len(line) <= length else line[: length - 1] + "…"
