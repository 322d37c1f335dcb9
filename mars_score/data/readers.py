"""Rows of a file of any length, one at a time: JSONL, CSV, TSV (also compressed), Parquet, and saved data sets."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

LONGEST_LINE = 2**28  # bytes; a longer line is no row, and would be held in memory
_MARK = b"\xef\xbb\xbf"  # that UTF-8 files of some programs begin with
_AT_ONCE = 256  # rows of a column file that are turned into Python objects together


def stream_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file, told apart by its name.

    ``*.parquet``: Parquet. A folder: a data set that ``datasets`` saved (``save_to_disk``). ``*.gz``: as what
    follows, compressed. ``*.csv``, ``*.tsv``: a header with the names of the columns, then one record per row; a
    cell that is a number, true, false or a list in JSON's form is read as that (but see
    :meth:`mars_score.data.files.RowFile.texts`), an empty one as an empty text. All else: one JSON object
    per line, in UTF-8 (blank lines are allowed at the end only), or a JSON list of objects.

    Raises:
        OSError: the file cannot be read.
        ValueError: no rows, or something that is no row; names file, line and position.
    """
    name = os.fspath(path)
    if os.path.isdir(path):
        rows = _saved_rows(name)
    elif name.lower().endswith(".parquet"):
        rows = _parquet_rows(name)
    elif delimiter := delimiter_of(name):
        rows = _cell_rows(name, delimiter)
    else:
        rows = json_rows(name)
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise ValueError(f"{name}: the file holds no rows; write one JSON object per line")


def delimiter_of(name: str) -> str | None:
    """What separates the cells of a file, by its name; None: it is no CSV or TSV file."""
    name = name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t" if name.endswith(".tsv") else None


def content_digest(path: str | os.PathLike[str]) -> str:
    """A hash of what a file, or all files of a folder, hold.

    Raises:
        OSError: a file cannot be read.
        ValueError: it can be read only once.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(
            f"{os.fspath(path)} can be read only once, and is read several times; save it to a file, or pass it "
            "as standard input (-)"
        )
    digest = hashlib.blake2b(digest_size=16)
    root = Path(path)
    for file in sorted(one for one in root.rglob("*") if one.is_file()) if root.is_dir() else [root]:
        digest.update(file.relative_to(root).as_posix().encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def json_rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file of one JSON object per line, or of a JSON list of objects, whatever its name.

    Errors as for :func:`stream_rows`. A list is held in memory.
    """
    blank = 0  # the number of the first blank line, which only blank lines may follow
    with _opened(name) as file:
        if file.peek(64).removeprefix(_MARK).lstrip().startswith(b"["):  # type: ignore[union-attr]
            yield from _list_rows(file.read(LONGEST_LINE + 1).removeprefix(_MARK), name)
            return
        for number, line in enumerate(_lines(file, name), 1):
            raw = line.removeprefix(_MARK) if number == 1 else line
            if not raw.strip():
                blank = blank or number
                continue
            if blank:
                _line_row(b"", name, blank)
            yield _line_row(raw, name, number)


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO | gzip.GzipFile]:
    """A file to read, uncompressed; faults of the compression are faults of the input."""
    if not name.lower().endswith(".gz"):
        with open(name, "rb") as file:
            yield file
        return
    try:
        with gzip.open(name, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: not a whole gzip file ({error}); compress it again") from None


def _lines(file: BinaryIO | gzip.GzipFile, name: str) -> Iterator[bytes]:
    r"""Split at \n alone: texts may hold other line separators."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{name}:{number}: a line of over {LONGEST_LINE:,} bytes; write one object per line")
        yield line.removesuffix(b"\n")


def _list_rows(raw: bytes, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON list."""
    if len(raw) > LONGEST_LINE:
        raise ValueError(f"{name}: a list of over {LONGEST_LINE:,} bytes; write one object per line")
    for number, row in enumerate(_parse(raw, name), 1):
        if not isinstance(row, dict):
            raise ValueError(f"{name}: entry {number} of the list is no JSON object but {type(row).__name__}")
        yield row


def _line_row(raw: bytes, name: str, line: int) -> dict[str, Any]:
    """The object of a line."""
    row = _parse(raw, name, line)
    if not isinstance(row, dict):
        raise ValueError(f"{name}:{line}:1: not a JSON object but {type(row).__name__}; write one object per line")
    return row


def _parse(raw: bytes, name: str, line: int = 1) -> Any:
    """JSON that begins on a line of a file; a fault is named with its line and column."""
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        fault = "not UTF-8; convert the file"
        place = before.count(b"\n"), error.start - before.rfind(b"\n")
    except json.JSONDecodeError as error:
        fault, place = f"not JSON: {error.msg}", (error.lineno - 1, error.colno)
    except (RecursionError, ValueError) as error:  # ValueError: an integer of thousands of digits
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        fault, place = f"not JSON that can be read: {reason}", (0, 1)
    raise ValueError(f"{name}:{line + place[0]}:{place[1]}: {fault}")


def _cell_rows(name: str, delimiter: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(LONGEST_LINE)  # the limit of 131,072 characters is too low for contexts
    with _opened(name) as file, _readable(name, "CSV or TSV file"):
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        records = csv.reader(text, delimiter=delimiter, strict=True)
        columns = next(records, [])
        _check_names(columns)
        for number, record in enumerate(records, 1):
            if not record:  # a blank line
                continue
            if len(record) != len(columns):
                raise ValueError(f"row {number} has {len(record)} cells, but there are {len(columns)} columns")
            yield {column: _value(cell) for column, cell in zip(columns, record, strict=True)}


def _value(cell: str) -> Any:
    """The value of a cell: JSON's if that would be written just so, else the text."""
    if not cell or not (cell[0] in "-0123456789[{" or cell in ("true", "false")):
        return cell
    try:
        value = json.loads(cell)
        return value if json.dumps(value, ensure_ascii=False) == cell else cell
    except (ValueError, RecursionError):
        return cell


def _check_names(columns: Sequence[str]) -> None:
    """Raise ValueError where a dict would keep only the last of several columns."""
    if len(set(columns)) < len(columns):
        raise ValueError(f"several columns have one name, in {', '.join(map(repr, columns))}")


def _parquet_rows(name: str) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    with open(name, "rb") as opened, _readable(name, "Parquet file"):
        file = parquet.ParquetFile(opened)
        _check_names(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_AT_ONCE):
            yield from batch.to_pylist()


def _saved_rows(name: str) -> Iterator[dict[str, Any]]:
    import datasets

    with _readable(name, "data set"):
        saved = datasets.load_from_disk(name)
    if isinstance(saved, datasets.DatasetDict):
        splits = ", ".join(os.path.join(name, split) for split in saved)
        raise ValueError(f"{name}: a data set with several splits; give one of them: {splits}")
    with _readable(name, "data set"):
        yield from saved


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Faults of what is read in the block are faults of the input, whatever the library calls them.

    Folders that hold something else: KeyError, JSONDecodeError, ...; values that Python cannot hold:
    OverflowError, UnicodeDecodeError, an unknown time zone, ...
    """
    try:
        yield
    except Exception as error:
        raise ValueError(f"{name}: not a {kind} that can be read: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    kind = f"{type(error).__name__}: " if isinstance(error, LookupError) else ""  # whose text is a mere key
    return (f"{kind}{error}" or type(error).__name__).splitlines()[0]
