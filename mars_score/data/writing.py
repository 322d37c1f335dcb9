"""Write rows in the format that a file's name tells. A complete file replaces the target."""

import csv
import gzip
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, BinaryIO

from mars_score.atomic import check_replaceable, keep_mode, naming, temporary_folder
from mars_score.data.columns import RawRows
from mars_score.data.reading import delimiter_of, dialect_of
from mars_score.text import without_surrogates

STDOUT = "-"  # the name of standard output
RUN_PREFIX = ".mars-run-"
_LINES_TOGETHER = 2**20  # bytes of lines that are written together
_ROW_GROUP_SIZE = 4096  # rows of a row group of Parquet files, at most
_ROW_GROUP_BYTES = 2**26  # bytes of a row group as JSON, at most
_COMPRESSED = (".bz2", ".xz", ".zst", ".zip", ".7z", ".parquet.gz")
_NOT_WRITTEN = (
    *(".xlsx", ".xls", ".xlsm", ".ods", ".feather", ".arrow", ".ipc", ".avro", ".orc", ".pkl", ".pickle", ".npy"),
    *(".npz", ".h5", ".sqlite", ".sqlite3", ".db", ".html", ".xml", ".yaml", ".yml", ".md", ".tex", *_COMPRESSED),
)


def plain(value: object) -> Any:
    """Convert a value to what JSON can hold: NaN and infinities to None, decimals to floats, dates to ISO 8601.

    Raises:
        TypeError: JSON cannot hold the value.
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


def row_line(row: Mapping[str, object]) -> str:
    """Write a row as one line of JSON, with characters escaped that UTF-8 cannot encode.

    Raises:
        TypeError: JSON cannot hold a value. Its column is named.
    """
    values = {}
    for name, value in row.items():
        try:
            values[name] = plain(value)
        except (TypeError, RecursionError) as error:
            fault = "a value that is nested too deeply" if isinstance(error, RecursionError) else error
            raise TypeError(f"column {name!r} cannot be written as JSON: {fault}; leave it out") from None
    line = json.dumps(values, ensure_ascii=False)
    return (line if without_surrogates(line) == line else json.dumps(values)) + "\n"


@contextmanager
def run_folder(out: str | None) -> Iterator[Path]:
    """Make a temporary folder for the results of a run, beside its output file if it has one.

    Raises:
        OSError: the output is a folder or read-only, or its folder is missing or read-only.
        ValueError: rows are not written in the format of its name.
    """
    parent = None
    if out is not None and not is_stream(out):
        _check_format(out)
        target = Path(os.path.realpath(out))
        if target.is_dir():
            raise IsADirectoryError(f"{out}: Is a directory")
        check_replaceable(out)
        parent = target.parent
        if not parent.is_dir():
            raise FileNotFoundError(f"{out}: the folder {parent} does not exist; make it first")
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder(RUN_PREFIX, parent))
        except OSError as error:
            if parent is None:
                raise
            reason = f"{error.strerror}: the folder {parent} cannot be written; name another, or allow writing"
            raise OSError(error.errno, reason, out) from None
        yield folder


def _check_format(out: str) -> None:
    """Raise ValueError if rows are not written in the format of a file's name."""
    ending = next((ending for ending in _NOT_WRITTEN if out.lower().endswith(ending)), None)
    if ending:
        stem = out[: -len(ending)]
        fault = f"{out}: rows are not written as {ending}, but as .jsonl, .csv, .tsv or .parquet"
        other = f"{stem}.jsonl.gz" if ending in _COMPRESSED else f"{stem}.csv, which spreadsheets open"
        raise ValueError(f"{fault}; type {other}")


def is_stream(out: str) -> bool:
    """Tell whether an output is not a file that can be replaced, but standard output, a device or a pipe."""
    path = Path(os.path.abspath(out))
    device = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    return out == STDOUT or device or (path.exists() and not path.is_file() and not path.is_dir())


class LineFile:
    """A file of lines that is written in parts, and read when it is complete.

    Args:
        path: of the file.
        name: names it in errors; None for its path.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self._path, self._name = path, name or os.fspath(path)
        self._lines: list[bytes] = []  # not yet written
        self._size = 0  # bytes of these lines

    def add(self, line: str) -> None:
        """Write the next line. It must end with its only line break."""
        self._lines.append(line.encode("utf-8", "surrogatepass"))
        self._size += len(self._lines[-1])
        if self._size > _LINES_TOGETHER:
            self._write()

    def complete(self) -> Path:
        """Write the last lines, and return the path."""
        self._write()
        return self._path

    def _write(self) -> None:
        with naming(self._name), self._path.open("ab") as file:
            file.writelines(self._lines)
        self._lines, self._size = [], 0

    def __iter__(self) -> Iterator[str]:
        with self.complete().open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            yield from file


def write(rows: LineFile, out: str) -> None:
    """Convert a complete JSONL file to the format of ``out``, and move it there.

    Raises:
        OSError: the output cannot be written. Its path is named.
    """
    try:
        complete = rows.complete()
        if out == STDOUT:
            _copy(complete, sys.stdout.buffer)
        elif is_stream(out):
            with open(out, "ab") as sink:
                _copy(complete, sink)
        else:
            complete = convert(complete, out)
            with complete.open("rb") as file:
                os.fsync(file.fileno())
            keep_mode(Path(os.path.realpath(out)), complete)
            os.replace(complete, os.path.realpath(out))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, out) from None


def _copy(path: Path, sink: BinaryIO) -> None:
    with path.open("rb") as file:
        shutil.copyfileobj(file, sink)
    sink.flush()


def convert(rows: Path, out: str) -> Path:
    """Convert a JSONL file to the format of ``out`` (Parquet, CSV, TSV, JSONL, perhaps .gz); return the new path.

    Raises:
        ValueError: Parquet cannot hold the rows.
    """
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
    return converted


def _rows_in(path: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a JSONL file, with unpaired surrogates in names and texts as U+FFFD."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield json.loads(without_surrogates(json.dumps(json.loads(line), ensure_ascii=False)))


def _write_cells(rows: Path, path: Path, delimiter: str, opened: Callable[..., IO[Any]]) -> None:
    """Write a header and the rows, with values other than strings and None as JSON.

    TSV cells are quoted as in CSV, because readers of other libraries expect it.
    """
    columns = list(dict.fromkeys(name for row in _rows_in(rows) for name in row))
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, **dialect_of(delimiter, has_quotes=True))
        writer.writerow(columns)
        writer.writerows([_cell(row.get(name)) for name in columns] for row in _rows_in(rows))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_parquet(rows: Path, path: Path, out: str) -> None:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([])
    try:
        for group in _row_groups(rows):
            # Arrow takes its columns from the first row alone.
            names = dict.fromkeys(name for row in group for name in row)
            table = pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in group])
            schema = pyarrow.unify_schemas([schema, table.schema], promote_options="permissive")
        with parquet.ParquetWriter(path, schema) as writer:
            for group in _row_groups(rows):
                writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
    except (pyarrow.ArrowException, OverflowError) as error:
        is_large = isinstance(error, OverflowError)
        reason = "an integer of 64 bits or more" if is_large else str(error).splitlines()[0]
        raise ValueError(f"{out}: Parquet cannot hold these rows ({reason}); write .jsonl instead") from None


def _row_groups(path: Path) -> Iterator[list[dict[str, object]]]:
    group, size = [], 0
    for row in _rows_in(path):
        group.append(row)
        size += len(json.dumps(row))
        if len(group) == _ROW_GROUP_SIZE or size > _ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class Writable:
    """Checks whether rows can be written in the format of a file's name, before anything is computed.

    Args:
        out: the file.
        added: names of columns that the run adds.
        folder: for a trial Parquet file. Only writing one shows whether Parquet can hold the rows.
    """

    def __init__(self, out: str, added: Sequence[str], folder: Path) -> None:
        self._out, self._added = out, added
        self._trial = folder / "trial.jsonl" if out.lower().endswith(".parquet") else None

    def check(self, file: RawRows) -> None:
        """Check the next rows.

        Raises:
            TypeError, ValueError: the rows cannot be written.
        """
        lines = []
        for index, row in enumerate(file.rows):
            for name in self._added:
                if name in row:
                    fault = f"the output has a column {name!r} of its own"
                    raise ValueError(f"{file.path}: {fault}; rename that of the input")
            try:
                lines.append(row_line(row).encode())
            except TypeError as error:
                raise TypeError(f"{file.line(index)}: {error}") from None
        if self._trial:
            with self._trial.open("ab") as sink:
                sink.writelines(lines)

    def finish(self) -> None:
        """Check all rows together, because the types of Parquet columns depend on all of them.

        Raises:
            ValueError: the rows cannot be written.
        """
        if self._trial:
            convert(self._trial, self._out).unlink()
            self._trial.unlink()
