"""Rows in the format that a file's name asks for; :mod:`mars_score.data.readers` reads them as they were."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from mars_score.data.readers import delimiter_of, stream_rows
from mars_score.data.validation import whole

_AT_ONCE = 4096  # rows per row group of a Parquet file


def convert(rows: Path, out: str) -> Path:
    """A file beside ``rows`` in the format of ``out``: Parquet, CSV, TSV, else JSONL; compressed if it is .gz.

    Args:
        rows: JSONL.
        out: names the format.

    Returns:
        The file: ``rows`` itself if nothing has to be done.

    Raises:
        ValueError: Parquet cannot hold the rows: a column has values of several types.
    """
    name = out.lower()
    made = rows.with_name("converted")
    if name.endswith(".parquet"):
        _write_parquet(rows, made, out)
    elif delimiter := delimiter_of(name):
        with _opened(made, name) as file:
            _write_cells(rows, file, delimiter)
    elif name.endswith(".gz"):
        with rows.open("rb") as source, _opened(made, name) as file:
            shutil.copyfileobj(source, file)
    else:
        return rows
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made


@contextmanager
def _opened(path: Path, name: str) -> Iterator[BinaryIO | gzip.GzipFile]:
    """A new file, compressed if its name says so; equal rows give equal bytes."""
    with path.open("wb") as file:
        if name.endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
                yield compressed
        else:
            yield file


def _write_cells(rows: Path, file: BinaryIO | gzip.GzipFile, delimiter: str) -> None:
    """A header and one record per row; values that are no strings are written as JSON, None as an empty cell."""
    columns = list(dict.fromkeys(name for row in stream_rows(rows) for name in row))
    lines = _Lines(file)
    # Ended by CRLF (RFC 4180), so that a carriage return within a cell is quoted, too.
    writer = csv.writer(lines, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(columns)
    for row in stream_rows(rows):
        writer.writerow([_cell(row.get(name)) for name in columns])


class _Lines:
    """A text file for the csv module; halves of characters, which UTF-8 cannot hold, become U+FFFD."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(whole(line).encode())


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_parquet(rows: Path, made: Path, out: str) -> None:
    import pyarrow
    from pyarrow import parquet

    def tables() -> Iterator[Any]:
        read = map(_without_halves, stream_rows(rows))
        while some := list(islice(read, _AT_ONCE)):
            names = dict.fromkeys(name for row in some for name in row)
            yield pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in some])

    try:
        schema = pyarrow.schema([])
        for table in tables():
            schema = pyarrow.unify_schemas([schema, table.schema], promote_options="permissive")
        with parquet.ParquetWriter(made, schema) as writer:
            for table in tables():
                missing = [name for name in schema.names if name not in table.schema.names]
                for name in missing:
                    table = table.append_column(name, pyarrow.nulls(len(table), schema.field(name).type))
                writer.write_table(table.select(schema.names).cast(schema))
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{out}: Parquet cannot hold these rows ({reason}); write .jsonl instead") from None


def _without_halves(value: Any) -> Any:
    """``value`` with halves of characters in its texts as U+FFFD."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): _without_halves(one) for name, one in value.items()}
    return [_without_halves(one) for one in value] if isinstance(value, list) else value
