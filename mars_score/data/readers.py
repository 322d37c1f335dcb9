"""Rows of a file of any length, one at a time: JSONL, also compressed, Parquet, and saved data sets."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

LONGEST_LINE = 2**28  # bytes; a longer line is no row, and would be held in memory
_AT_ONCE = 256  # rows of a column file that are turned into Python objects together


def stream_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file, told apart by its name.

    ``*.parquet``: Parquet. A folder: a data set that ``datasets`` saved (``save_to_disk``). ``*.gz``: as what
    follows, compressed. All else: one JSON object a line, in UTF-8; blank lines are allowed at the end only.

    Raises:
        OSError: the file cannot be read.
        ValueError: no rows, or something that is no row; names file, line and position.
    """
    name = os.fspath(path)
    if os.path.isdir(path):
        rows = _saved_rows(name)
    elif name.lower().endswith(".parquet"):
        rows = _parquet_rows(name)
    else:
        rows = _json_rows(name)
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise ValueError(f"{name}: the file holds no rows; write one JSON object a line")


def content_digest(path: str | os.PathLike[str]) -> str:
    """A hash of what a file, or all files of a folder, hold.

    Raises:
        OSError: a file cannot be read.
        ValueError: it can be read only once.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)} can be read only once, and is read several times; save it to a file")
    digest = hashlib.blake2b(digest_size=16)
    root = Path(path)
    for file in sorted(one for one in root.rglob("*") if one.is_file()) if root.is_dir() else [root]:
        digest.update(file.relative_to(root).as_posix().encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()


def _json_rows(name: str) -> Iterator[dict[str, Any]]:
    blank = 0  # the number of a blank line, behind which there may be no other
    with _opened(name) as file:
        for number, line in enumerate(_lines(file, name), 1):
            raw = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not raw.strip():
                blank = blank or number
                continue
            if blank:
                _parse(f"{name}:{blank}", b"")
            yield _parse(f"{name}:{number}", raw)


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
            raise ValueError(f"{name}:{number}: a line of over {LONGEST_LINE:,} bytes; write one object a line")
        yield line.removesuffix(b"\n")


def _parse(place: str, raw: bytes) -> dict[str, Any]:
    try:
        row = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}:{error.start + 1}: not UTF-8; convert the file") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{place}:1: not JSON that can be read: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ValueError(f"{place}:1: not JSON that can be read: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place}:1: not a JSON object but {type(row).__name__}; write one object a line")
    return row


def _parquet_rows(name: str) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    with open(name, "rb") as opened, _readable(name, "Parquet file"):
        file = parquet.ParquetFile(opened)
        columns = file.schema_arrow.names
        if len(set(columns)) < len(columns):  # a dict would keep the last one only
            raise ValueError(f"several columns have one name, in {', '.join(map(repr, columns))}")
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
