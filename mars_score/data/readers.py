"""Readers of files of any length, row by row: JSONL, CSV, TSV (also compressed), Parquet, and saved data sets."""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

LONGEST_LINE = 2**28  # bytes; a longer line is no row, and would be held in memory
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # UTF-8 files of some programs begin with it
_BATCH_SIZE = 256  # rows of a Parquet file that are turned into Python objects together
_JSON = (".json", ".jsonl", ".ndjson")


def stream_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, whose name says its format.

    ``*.parquet``: Parquet. A folder: a data set that ``datasets`` saved (``save_to_disk``). ``*.gz``: as what
    follows, compressed. ``*.csv``, ``*.tsv``: a header with the names of the columns, then one record per row; all
    cells are texts. ``*.json``, ``*.jsonl``: one JSON object per line, in UTF-8, or a JSON list of objects. Any
    other name: JSON if the first line begins with a brace or a bracket, else CSV or TSV.

    Raises:
        ValueError: something is no row, named with file and line; or there are no rows.
    """
    name = os.fspath(path)
    if os.path.isdir(path):
        rows = _saved_rows(name)
    else:
        rows = _parquet_rows(name) if name.lower().endswith(".parquet") else _text_rows(name)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{name}: the file holds no rows; write one JSON object per line")
    yield first
    yield from rows


def delimiter_of(name: str) -> str | None:
    """Return what separates the cells of a file, by its name; None: it is no CSV or TSV file."""
    name = name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t" if name.endswith(".tsv") else None


def _text_rows(name: str) -> Iterator[dict[str, Any]]:
    with _opened(name) as file:
        if file.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
            file.read(len(_BYTE_ORDER_MARK))
        delimiter = delimiter_of(name)
        if delimiter is None and not name.lower().removesuffix(".gz").endswith(_JSON):
            delimiter = _delimiter_of_header(file.peek(1), name)
        if delimiter:
            yield from _cell_rows(file, name, delimiter)
        else:
            rows = _list_rows if file.peek(64).lstrip().startswith(b"[") else _line_rows
            yield from rows(file, name)


def _delimiter_of_header(start: bytes, name: str) -> str | None:
    """Return what separates the cells of a file, by its first line; None: it holds JSON, or nothing."""
    header = start.lstrip().partition(b"\n")[0]
    if not header or header[:1] in b"{[":
        return None
    delimiter = max(",\t;", key=lambda sign: header.count(sign.encode()))
    if delimiter.encode() not in header:
        raise ValueError(
            f"{name}:1: not JSON, and no header of a CSV or TSV file; write one JSON object per line, or a header "
            "with the names of the columns"
        )
    return delimiter


@contextmanager
def _opened(name: str) -> Iterator[Any]:
    """Open a file, uncompressed; faults of the compression are faults of the input."""
    try:
        with gzip.open(name) if name.lower().endswith(".gz") else open(name, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: not a whole gzip file ({error}); compress it again") from None


def _line_rows(file: Any, name: str) -> Iterator[dict[str, Any]]:
    r"""Yield one JSON object per line, split at \n alone: texts may hold other line separators."""
    number = first_blank = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        where = f"{name}:{number}"
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{where}: a line of over {LONGEST_LINE:,} bytes; write one object per line")
        if not line.strip():
            first_blank = first_blank or number
            continue
        if first_blank:
            raise ValueError(f"{name}:{first_blank}: not JSON: the line is blank; remove it")
        yield _checked_row(_parse(line, where), where)


def _list_rows(file: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON list, which is held in memory."""
    raw = file.read(LONGEST_LINE + 1)
    if len(raw) > LONGEST_LINE:
        raise ValueError(f"{name}: a list of over {LONGEST_LINE:,} bytes; write one object per line")
    for number, row in enumerate(_parse(raw, name), 1):
        yield _checked_row(row, f"{name}: entry {number} of the list")


def _checked_row(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: not a JSON object but {type(row).__name__}; write one object per line")
    return row


def _parse(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError:
        fault = "not UTF-8; convert the file"
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        fault = f"not JSON: {error.msg} ({line}character {error.colno})"
    except (ValueError, RecursionError) as error:  # An integer of thousands of digits is a ValueError.
        fault = f"not JSON: {'nested too deeply' if isinstance(error, RecursionError) else error}"
    raise ValueError(f"{where}: {fault}")


def _cell_rows(file: Any, name: str, delimiter: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(LONGEST_LINE)  # The usual limit of 131,072 characters is too low for contexts.
    with _readable(name, "CSV or TSV file"):
        records = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""), delimiter=delimiter, strict=True)
        columns = next(records, [])
        _check_names(columns)
        for record in filter(None, records):  # A blank line gives an empty record.
            if len(record) != len(columns):
                fault = f"has {len(record)} cells, but there are {len(columns)} columns"
                raise ValueError(f"the row that ends on line {records.line_num} {fault}")
            yield dict(zip(columns, record, strict=True))


def _check_names(columns: Sequence[str]) -> None:
    """Raise ValueError where a dict would keep only the last of several columns."""
    if len(set(columns)) < len(columns):
        raise ValueError(f"several columns have one name, in {', '.join(map(repr, columns))}")


def _parquet_rows(name: str) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    with open(name, "rb") as opened, _readable(name, "Parquet file"):
        file = parquet.ParquetFile(opened)
        _check_names(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_BATCH_SIZE):
            yield from batch.to_pylist()


def _saved_rows(name: str) -> Iterator[dict[str, Any]]:
    import datasets

    with _readable(name, "data set"):
        saved = datasets.load_from_disk(name)
        if isinstance(saved, datasets.DatasetDict):
            splits = ", ".join(os.path.join(name, split) for split in saved)
            raise ValueError(f"it has several splits; give one of them: {splits}")
        yield from saved


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Turn every exception in the block into a fault of the input, whatever the library calls it."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else str(error)
        first_line = (reason or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name}: not a {kind} that can be read: {first_line}") from None
