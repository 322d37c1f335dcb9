"""Rows in the format that a file's name asks for; :mod:`mars_score.data.readers` reads it."""

import csv
import gzip
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mars_score.data.files import RowFile, row_line
from mars_score.data.readers import delimiter_of, stream_rows
from mars_score.data.values import whole

_AT_ONCE = 4096  # rows per row group of a Parquet file


def convert(rows: Path, out: str) -> Path:
    """``rows`` (JSONL) or a file beside it in the format of ``out``: Parquet, CSV, TSV, JSONL, perhaps .gz."""
    name = out.lower()
    converted = rows.with_name("converted")
    if name.endswith(".parquet"):
        _write_parquet(rows, converted, out)
    elif delimiter := delimiter_of(name):
        _write_cells(rows, converted, delimiter, gzip.open if name.endswith(".gz") else open)
    elif name.endswith(".gz"):
        with rows.open("rb") as source, gzip.open(converted, "wb") as file:
            shutil.copyfileobj(source, file)
    else:
        return rows
    with converted.open("rb") as written:
        os.fsync(written.fileno())
    return converted


def _write_cells(rows: Path, path: Path, delimiter: str, opened: Any) -> None:
    """A header and one record per row; values that are no strings are written as JSON, None as an empty cell."""
    columns = list(dict.fromkeys(name for row in stream_rows(rows) for name in row))
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        # Ended by CRLF (RFC 4180), so that a carriage return within a cell is quoted, too.
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(map(whole, columns))
        for row in stream_rows(rows):
            values = ("" if row.get(name) is None else row[name] for name in columns)
            texts = (
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values
            )
            writer.writerow(map(whole, texts))


def _write_parquet(rows: Path, path: Path, out: str) -> None:
    import pyarrow
    from pyarrow import parquet

    def parts() -> Iterator[list[Any]]:
        whole_rows = map(_without_halves, stream_rows(rows))
        while part := list(islice(whole_rows, _AT_ONCE)):
            yield part

    schema = pyarrow.schema([])
    for part in parts():
        schema = _unified(schema, part, out)
    with parquet.ParquetWriter(path, schema) as writer:
        for part in parts():
            writer.write_table(pyarrow.Table.from_pylist(part, schema=schema))


def _unified(schema: Any, rows: Sequence[dict[str, Any]], out: str) -> Any:
    """A schema that also holds these rows, which JSON has held."""
    import pyarrow

    try:
        names = dict.fromkeys(name for row in rows for name in row)
        table = pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows])
        return pyarrow.unify_schemas([schema, table.schema], promote_options="permissive")
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{out}: Parquet cannot hold these rows ({reason}); write .jsonl instead") from None


class Writable:
    """Tells before anything is computed whether rows can be written in the format of a file's name."""

    def __init__(self, out: str, added: Sequence[str]) -> None:
        self._out, self._added = out, added  # columns that the output has besides those of the rows
        self._schema: Any = None
        if out.lower().endswith(".parquet"):
            import pyarrow

            self._schema = pyarrow.schema([])

    def check(self, file: RowFile) -> None:
        """Look at the next rows; TypeError or ValueError: they cannot be written."""
        lines = []
        for row, number in zip(file.rows, file.numbers, strict=True):
            for name in self._added:
                if name in row:
                    raise ValueError(
                        f"{file.path}: the output has a column {name!r} of its own; rename that of the input"
                    )
            try:
                lines.append(row_line(row))
            except TypeError as error:
                raise TypeError(f"{file.path}:{number + 1}: {error}") from None
        if self._schema is not None:
            rows = [_without_halves(json.loads(line)) for line in lines]
            self._schema = _unified(self._schema, rows, self._out)


def _without_halves(value: Any) -> Any:
    """``value`` with unpaired surrogates in its texts as U+FFFD."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): _without_halves(entry) for name, entry in value.items()}
    return [_without_halves(entry) for entry in value] if isinstance(value, list) else value
