"""Writers of rows: a file has the format of its name, and stands beside its target until it is complete."""

import csv
import errno
import gzip
import json
import os
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.data.readers import delimiter_of, stream_rows
from mars_score.data.reading import RowFile, row_line
from mars_score.data.values import whole

STDOUT = "-"  # as a name of an output
_ROW_GROUP_SIZE = 4096  # rows of Parquet files
_ROW_GROUP_BYTES = 2**26  # of the same rows as JSON
_LARGEST_WHOLE = 2**53  # every integer up to it is a float, too
_NOT_IN_TSV = "\t\n\r"
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
RUN_PREFIX = ".mars-run-"


@contextmanager
def run_folder(out: str | None) -> Iterator[Path]:
    """Make a folder for what a run computes, beside its output if that is a file; it is removed at the end."""
    parent = None
    if out is not None and not is_stream(out):
        target = Path(os.path.realpath(out))
        if target.is_dir():
            raise IsADirectoryError(f"{out}: Is a directory")
        parent = target.parent
        if not parent.is_dir():
            raise FileNotFoundError(f"{out}: the folder {parent} does not exist; make it first")
    with temporary_folder(RUN_PREFIX, parent) as folder:
        yield folder


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder for this process, removed at the end; also remove those of processes that were killed.

    Args:
        prefix: of its name, which also names machine and process.
        parent: where it is made; None: the system's folder of temporary files.
    """
    parent = Path(parent or tempfile.gettempdir())
    machine = f"{prefix}{zlib.crc32(socket.gethostname().encode()):08x}-"
    for left in parent.glob(f"{machine}*"):
        process = left.name.removeprefix(machine).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{machine}{os.getpid()}-", dir=parent) as folder:
        yield Path(folder)


def _is_alive(process: int) -> bool:
    """Tell whether a process of this machine is alive, or belongs to somebody else."""
    if os.name != "posix":  # There a signal of 0 ends the process.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error of a full disk name the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def is_stream(out: str) -> bool:
    """Tell whether an output is no file that can be replaced: standard output, /dev/stdout, a pipe."""
    path = Path(os.path.abspath(out))
    device = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    return out == STDOUT or device or (path.exists() and not path.is_file() and not path.is_dir())


def write(rows: Iterable[dict[str, Any]], folder: Path, out: str) -> None:
    """Write rows as lines of JSON, convert them to the format of ``out``, and move the file there.

    Raises:
        OSError: the output, which it names, cannot be written.
    """
    lines = (row_line(row).encode() for row in rows)
    try:
        if out == STDOUT:
            sys.stdout.buffer.writelines(lines)
            sys.stdout.buffer.flush()
        elif is_stream(out):
            with open(out, "ab") as sink:
                sink.writelines(lines)
        else:
            complete = folder / "rows.jsonl"
            with complete.open("wb") as file:
                file.writelines(lines)
            complete = convert(complete, out)
            with complete.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(complete, os.path.realpath(out))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, out) from None


def convert(rows: Path, out: str) -> Path:
    """Return a file with these rows (JSONL) in the format of ``out``: Parquet, CSV, TSV, JSONL, perhaps .gz."""
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


def _write_cells(rows: Path, path: Path, delimiter: str, opened: Any) -> None:
    """Write a header and one record per row; values that are no strings as JSON, None as an empty cell."""
    columns = list(dict.fromkeys(name for row in stream_rows(rows) for name in row))
    if delimiter == "\t":  # In TSV quotes are letters.
        with opened(path, "wt", encoding="utf-8", newline="") as file:
            file.write("\t".join(map(whole, columns)) + "\n")
            for row in stream_rows(rows):
                file.write("\t".join(whole(_cell(row.get(name))) for name in columns) + "\n")
        return
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        # Ended by CRLF (RFC 4180), so that a carriage return within a cell is quoted, too.
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(map(whole, columns))
        for row in stream_rows(rows):
            writer.writerow(whole(_cell(row.get(name))) for name in columns)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_parquet(rows: Path, path: Path, out: str) -> None:
    import pyarrow
    from pyarrow import parquet

    def row_groups() -> Iterator[list[Any]]:
        whole_rows = map(_without_halves, stream_rows(rows))
        group, size = [], 0
        for row in whole_rows:
            group.append(row)
            size += len(json.dumps(row))
            if len(group) == _ROW_GROUP_SIZE or size > _ROW_GROUP_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group

    schema = pyarrow.schema([])
    for group in row_groups():
        schema = _extended(schema, group, out)
    with parquet.ParquetWriter(path, schema) as writer:
        for group in row_groups():
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))


def _extended(schema: Any, rows: Sequence[dict[str, Any]], out: str) -> Any:
    """Return a schema that also holds these rows, which JSON has held."""
    import pyarrow

    try:
        names = dict.fromkeys(name for row in rows for name in row)
        table = pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows])
        if any(str(kind) == "uint64" for field in table.schema for kind in _types_within(field.type)):
            raise OverflowError("an integer of 64 bits or more")
        return pyarrow.unify_schemas([schema, table.schema], promote_options="permissive")
    except (pyarrow.ArrowException, OverflowError) as error:
        reason = (
            "an integer of 64 bits or more" if isinstance(error, OverflowError) else str(error).splitlines()[0]
        )
        raise ValueError(f"{out}: Parquet cannot hold these rows ({reason}); write .jsonl instead") from None


def _types_within(kind: Any) -> Iterator[Any]:
    """Yield a type of Arrow that JSON's values have, and the types of its fields or entries."""
    from pyarrow import types

    yield kind
    inner = [field.type for field in kind] if types.is_struct(kind) else []
    for one in [kind.value_type] if types.is_list(kind) else inner:
        yield from _types_within(one)


def _without_halves(row: dict[str, Any]) -> Any:
    """Return a row, which JSON has held, with unpaired surrogates in its texts as U+FFFD."""
    return json.loads(whole(json.dumps(row, ensure_ascii=False)))


class Writable:
    """Checks before anything is computed whether rows can be written in the format of a file's name.

    Args:
        out: the file.
        added: columns that it has besides those of the rows.
    """

    def __init__(self, out: str, added: Sequence[str]) -> None:
        self._out, self._added = out, added
        self._schema: Any = None
        self._no_fraction: dict[str, str] = {}  # by column: a cell whose integer no float equals
        if out.lower().endswith(".parquet"):
            import pyarrow

            self._schema = pyarrow.schema([])

    def check(self, file: RowFile) -> None:
        """Check the next rows.

        Raises:
            TypeError, ValueError: they cannot be written.
        """
        lines = []
        for row, number in zip(file.rows, file.numbers, strict=True):
            for name in self._added:
                if name in row:
                    raise ValueError(
                        f"{file.path}: the output has a column {name!r} of its own; rename that of the input"
                    )
            if delimiter_of(self._out) == "\t":
                self._check_cells(file, row, number)
            try:
                lines.append(row_line(row))
            except TypeError as error:
                raise TypeError(f"{file.path}:{number + 1}: {error}") from None
        if self._schema is not None:
            rows = [_without_halves(json.loads(line)) for line in lines]
            self._schema = _extended(self._schema, rows, self._out)
            self._find_large_integers(rows, file)

    def finish(self) -> None:
        """Check what only all rows tell.

        Raises:
            ValueError: they cannot be written.
        """
        for field in self._schema or ():
            if str(field.type) == "double" and field.name in self._no_fraction:
                raise ValueError(
                    f"{self._no_fraction[field.name]}: column {field.name!r} holds an integer of over 53 bits and "
                    "in other rows fractions, which Parquet cannot hold together; write .jsonl instead"
                )
            if any(str(kind) == "struct<>" for kind in _types_within(field.type)):
                fault = "which holds an object without fields in all rows"
                remedy = "leave it out, or write .jsonl instead"
                raise ValueError(f"{self._out}: Parquet cannot hold column {field.name!r}, {fault}; {remedy}")

    def _find_large_integers(self, rows: Sequence[dict[str, Any]], file: RowFile) -> None:
        """Remember the first cell of each column with an integer that no float may equal."""
        for row, number in zip(rows, file.numbers, strict=True):
            for name, value in row.items():
                if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
                    self._no_fraction.setdefault(name, f"{file.path}:{number + 1}")

    def _check_cells(self, file: RowFile, row: dict[str, Any], number: int) -> None:
        """Raise ValueError for what TSV cannot hold: tabs and line breaks in names and texts."""
        for name, value in row.items():
            if any(sign in text for text in (name, _cell(value)) for sign in _NOT_IN_TSV):
                fault = "holds a tab or a line break, which TSV cannot hold"
                raise ValueError(
                    f"{file.path}:{number + 1}: column {name!r} {fault}; write .csv or .jsonl instead"
                )
