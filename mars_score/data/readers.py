"""Readers of files of any length, row by row: JSONL, CSV, TSV (also compressed), Parquet, and saved data sets.

Nothing is held in memory before its size is known: a line, a record, an entry of a list and a row of a Parquet
file have at most :data:`LONGEST_LINE` bytes.
"""

import codecs
import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

LONGEST_LINE = 2**24  # bytes; what is longer is no row, and its parts would take many times as much memory
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # UTF-8 files of some programs begin with it
_BATCH_SIZE = 64  # rows of a Parquet file that are decoded together
_BLOCK = 2**16  # bytes of a JSON list that are decoded together
_JSON = (".json", ".jsonl", ".ndjson")
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_CUT = 12  # characters: a fault so near to the end of what was read so far may be that of a cut token
_MORE_LINES = "a JSON object that spans several lines; write each object on one line, or all of them as a list"
# What files of other formats begin with.
_FOREIGN = {
    b"\x1f\x8b": (
        "compressed by gzip",
        "let its name end with .gz, or decompress it first: gunzip -c FILE | mars ... -",
    ),
    b"BZh": ("compressed by bzip2", "decompress it (bunzip2), or compress it by gzip"),
    b"\xfd7zXZ\0": ("compressed by xz", "decompress it (unxz), or compress it by gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed by Zstandard", "decompress it (unzstd), or compress it by gzip"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it"),
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV"),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save the sheet as CSV"),
    b"PAR1": ("Parquet", "give it as a file whose name ends with .parquet"),
    b"ARROW1": ("Arrow", "write .parquet or .jsonl"),
    b"SQLite format 3": ("an SQLite database", "export the table as CSV"),
    b"\xff\xfe": ("UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16", "save it as UTF-8"),
}
_MAGIC = max(map(len, _FOREIGN))


class FileRow(NamedTuple):
    """A row of a file: the number of lines before it (its line in errors, less one), and its values.

    Where a format has no lines (Parquet, saved data sets) rows are counted. ``in_cells``: whether the values are
    cells of a CSV or TSV file, all of them texts.
    """

    number: int
    values: dict[str, Any]
    in_cells: bool = False


def stream_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, whose name says its format.

    ``*.parquet``: Parquet. A folder: a data set that ``datasets`` saved (``save_to_disk``). ``*.gz``: as what
    follows, compressed. ``*.csv``: a header with the names of the columns, then one record per row; all cells are
    texts. ``*.tsv``: the same, but a cell is what stands between tabs, and quotes are letters. ``*.json``,
    ``*.jsonl``: one JSON object per line, in UTF-8, or a JSON list of objects. Any other name: JSON if the first
    line begins with a brace or a bracket, else CSV or TSV.

    Raises:
        ValueError: something is no row, named with file and line; or there are no rows.
    """
    return (row.values for row in file_rows(path))


def file_rows(path: str | os.PathLike[str]) -> Iterator[FileRow]:
    """Yield the rows of a file with their numbers; formats and errors as for :func:`stream_rows`."""
    name = os.fspath(path)
    rows: Iterator[FileRow]
    remedy = "give one that has some"
    if os.path.isdir(path):
        rows = map(FileRow, count(), _saved_rows(name))
    elif name.lower().endswith(".parquet"):
        rows = map(FileRow, count(), _parquet_rows(name))
    else:
        rows = _text_rows(name)
        what = "a header, and a row on each line after it" if delimiter_of(name) else "one JSON object per line"
        remedy = f"write {what}"
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{name}: the file holds no rows; {remedy}")
    yield first
    yield from rows


def delimiter_of(name: str) -> str | None:
    """Return what separates the cells of a file, by its name; None: it is no CSV or TSV file."""
    name = name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t" if name.endswith(".tsv") else None


def _text_rows(name: str) -> Iterator[FileRow]:
    with _opened(name) as file:
        delimiter = _delimiter_in(file, name)
        if file.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
            file.read(len(_BYTE_ORDER_MARK))
        if delimiter:
            yield from _cell_rows(file, name, delimiter)
        else:
            rows = _list_rows if file.peek(64).lstrip().startswith(b"[") else _line_rows
            yield from rows(file, name)


def _delimiter_in(file: Any, name: str) -> str | None:
    """Return what separates the cells of an opened file, by its name or else its first line; None: it is JSON."""
    start = file.peek(_MAGIC)
    for magic, (found, remedy) in _FOREIGN.items():
        if start.startswith(magic):
            raise ValueError(f"{name}: the file is {found}, which is not read here; {remedy}")
    delimiter = delimiter_of(name)
    if delimiter is None and not name.lower().removesuffix(".gz").endswith(_JSON):
        delimiter = _delimiter_of_header(start.removeprefix(_BYTE_ORDER_MARK), name)
    return delimiter


def _delimiter_of_header(start: bytes, name: str) -> str | None:
    """Return what separates the cells of a file, by its first line; None: it holds JSON, or nothing."""
    header = start.lstrip().partition(b"\n")[0]
    if not header or header[:1] in b"{[":
        return None
    delimiter = max("\t,;", key=lambda sign: header.count(sign.encode()))
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


# JSON


def _line_rows(file: Any, name: str) -> Iterator[FileRow]:
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
        yield FileRow(number - 1, _checked_row(_parse(line, where), where))


def _checked_row(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: not a JSON object but {type(row).__name__}; write one object per line")
    return row


def _parse(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw.decode(), object_pairs_hook=_object_of)
    except UnicodeDecodeError:
        fault = "not UTF-8; convert the file"
    except json.JSONDecodeError as error:
        if raw.lstrip().startswith(b"{") and error.pos >= len(raw.decode().rstrip()):
            fault = _MORE_LINES
        else:
            fault = f"not JSON: {error.msg} (character {error.colno})"
    except (ValueError, RecursionError) as error:
        fault = _other_fault(error)
    raise ValueError(f"{where}: {fault}")


def _other_fault(error: Exception) -> str:
    """Name a fault that is none of the syntax, such as an integer of thousands of digits."""
    return f"not JSON: {'nested too deeply' if isinstance(error, RecursionError) else error}"


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object, in which no key may stand twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r:.60} stands twice in one object; rename or remove one")
    return found


class _ListReader:
    """Reads the entries of a JSON list one by one, and counts lines."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name
        self._text, self._position, self._ended = "", 0, False
        self._lines = self._counted = 0  # before this position of the text that is held
        self._column = 0  # of the first character that is held
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._decoder = json.JSONDecoder(object_pairs_hook=_object_of)

    @property
    def line(self) -> int:
        """Return the number of lines before the position."""
        self._lines += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._lines

    def next_sign(self) -> str:
        """Return the next character that is not white space, without passing it; "" at the end."""
        while True:
            space = _JSON_SPACE.match(self._text, self._position)
            self._position = space.end() if space else self._position
            if self._position < len(self._text) or not self._read(_BLOCK):
                return self._text[self._position : self._position + 1]

    def skip(self, signs: str) -> str:
        """Pass the next character, which must be one of ``signs``, and return it."""
        sign = self.next_sign()
        if not sign or sign not in signs:
            self._fail(f"Expecting {' or '.join(map(repr, signs))}", self._position)
        self._position += 1
        return sign

    def value(self) -> Any:
        """Decode the value at the position."""
        self.next_sign()
        while True:
            try:
                value, self._position = self._decoder.raw_decode(self._text, self._position)
                return value
            except json.JSONDecodeError as error:
                size = len(self._text) - self._position
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _CUT
                if not cut or not self._read(max(_BLOCK, size)):
                    self._fail(error.msg, error.pos)
                if size > LONGEST_LINE:
                    self._fault(f"an entry of over {LONGEST_LINE:,} bytes; write one object per line")
            except (ValueError, RecursionError) as error:
                self._fault(_other_fault(error))

    def _read(self, size: int) -> bool:
        """Read more; False at the end of the file."""
        if self._ended:
            return False
        raw = self._file.read(size)
        self._ended = not raw
        try:
            more = self._decode(raw, self._ended)
        except UnicodeDecodeError:
            raise ValueError(f"{self._name}: not UTF-8; convert the file") from None
        self._lines = self.line
        self._column = self._column_of(self._position)
        self._text = self._text[self._position :] + more
        self._position = self._counted = 0
        return True

    def _fail(self, fault: str, position: int) -> None:
        self._position = position
        self._fault(f"not JSON: {fault} (character {self._column_of(position) + 1})")

    def _column_of(self, position: int) -> int:
        """Return the number of characters before a position in its line."""
        line_break = self._text.rfind("\n", 0, position)
        return position + self._column if line_break < 0 else position - line_break - 1

    def _fault(self, fault: str) -> None:
        raise ValueError(f"{self._name}:{self.line + 1}: {fault}")


def _list_rows(file: Any, name: str) -> Iterator[FileRow]:
    """Yield the objects of a JSON list, one by one."""
    entries = _ListReader(file, name)
    entries.skip("[")
    if entries.next_sign() == "]":
        entries.skip("]")
    else:
        sign = ","
        while sign == ",":
            entries.next_sign()
            line = entries.line
            yield FileRow(line, _checked_row(entries.value(), f"{name}:{line + 1}"))
            sign = entries.skip(",]")
    if entries.next_sign():
        raise ValueError(f"{name}:{entries.line + 1}: not JSON: more text after the end of the list; remove it")


# CSV and TSV


class _Lines:
    """The lines of a file, counted; those since the last :meth:`begin` are kept, for errors."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = io.TextIOWrapper(file, "utf-8", newline=""), name
        self.begun: list[str] = []
        self.count = self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._file.readline(LONGEST_LINE + 1)
        except UnicodeDecodeError:
            raise ValueError(f"{self._name}: not UTF-8 (near line {self.count + 1}); convert the file") from None
        if not line:
            raise StopIteration
        self.count += 1
        self._size += len(line)
        self.begun.append(line)
        if self._size > LONGEST_LINE:
            raise ValueError(f"{self.where}: a row of over {LONGEST_LINE:,} characters{self._unbalanced()}")
        return line

    def begin(self) -> None:
        """Begin a row."""
        self.begun, self._size = [], 0

    @property
    def first(self) -> int:
        """Return the number of lines before the row."""
        return self.count - len(self.begun)

    @property
    def where(self) -> str:
        """Return the name of the row's first line."""
        return f"{self._name}:{self.first + 1}"

    def _unbalanced(self) -> str:
        return "; is a quote missing?" if len(self.begun) > 1 else "; shorten it or leave it out"

    def opening(self, delimiter: str) -> int:
        """Return the line, from 1, on which the last quoted cell of the row opens."""
        quoted, before, opened = False, delimiter, self.first + 1
        for number, line in enumerate(self.begun, self.first + 1):
            for sign in line:
                if sign == '"' and not quoted and before in (delimiter, "\n", "\r"):
                    quoted, opened = True, number
                elif sign == '"' and (quoted or before == "closed"):  # The second of two is a quote of the cell.
                    quoted = not quoted
                    sign = "" if quoted else "closed"
                before = sign
        return opened


def _cell_rows(file: Any, name: str, delimiter: str) -> Iterator[FileRow]:
    lines = _Lines(file, name)
    records = _tab_records(lines) if delimiter == "\t" else _csv_records(lines, name, delimiter)
    columns = next(records, [])
    _check_names(columns, f"{name}:1: ")
    lines.begin()
    first_blank = 0
    for record in records:
        if record:
            if first_blank:
                remedy = "remove it" + ('; a blank cell is ""' if delimiter != "\t" else "")
                raise ValueError(f"{name}:{first_blank}: the line is blank; {remedy}")
            if len(record) != len(columns):
                fault = f"has {len(record)} cells, but there are {len(columns)} columns"
                more = f" (it ends on line {lines.count})" if len(lines.begun) > 1 else ""
                raise ValueError(f"{lines.where}: the row {fault}{more}; {_REMEDIES.get(delimiter, _QUOTES)}")
            yield FileRow(lines.first, dict(zip(columns, record, strict=True)), in_cells=True)
        elif len(columns) == 1:  # The line is blank, which may mean a blank cell where there is only one.
            first_blank = first_blank or lines.count
        lines.begin()


_QUOTES = 'put a cell with a separator or a quote between quotes ("), and write a quote in it twice ("")'
_REMEDIES = {"\t": "a cell holds no tab and no line break, and quotes are letters; write such texts as .csv"}


def _tab_records(lines: _Lines) -> Iterator[list[str]]:
    for line in lines:
        line = line.rstrip("\r\n")
        yield line.split("\t") if line else []


def _csv_records(lines: _Lines, name: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_LINE)  # The usual limit of 131,072 characters is too low for contexts.
    records = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        try:
            record = next(records, None)
        except csv.Error as error:
            if lines.begun and '"' in "".join(lines.begun):
                where = f"{name}:{lines.opening(delimiter)}"
                fault = f"the quote that opens a cell on this line is not closed as it should be ({error})"
                raise ValueError(f"{where}: {fault}; {_QUOTES}") from None
            raise ValueError(f"{name}:{lines.count}: not CSV: {error}") from None
        if record is None:
            return
        yield record


def _check_names(columns: Sequence[str], where: str = "") -> None:
    """Raise ValueError where a dict would keep only the last of several columns."""
    if len(set(columns)) < len(columns):
        raise ValueError(f"{where}several columns have one name, in {', '.join(map(repr, columns))}")


# Parquet and saved data sets


def _parquet_rows(name: str) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    with open(name, "rb") as opened, _readable(name, "Parquet file"):
        file = parquet.ParquetFile(opened)
        leaves = [file.metadata.schema.column(index) for index in range(file.metadata.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING"]
        _check_groups(file, [index for index, leaf in enumerate(leaves) if leaf.max_repetition_level])
        # A text that is repeated is held once.
        file = parquet.ParquetFile(opened, read_dictionary=texts)
        _check_names(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_BATCH_SIZE):
            for index in range(batch.num_rows):
                row = batch.slice(index, 1)
                size = sum(_bytes_of(column) for column in row.columns)
                if size > LONGEST_LINE:
                    raise ValueError(f"a row of over {LONGEST_LINE:,} bytes; leave it out")
                yield row.to_pylist()[0]


def _check_groups(file: Any, lists: Sequence[int]) -> None:
    """Raise ValueError for values that fill memory before a single row can be looked at.

    Args:
        file: a ``ParquetFile``.
        lists: indices of the columns that hold several values a row.
    """
    if lists:
        # This raises for damaged metadata of a column, on which the look at it below would end the process.
        file.scan_contents(list(lists))
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        values = max((group.column(index).num_values for index in lists), default=0)
        if max(values * 8, group.total_byte_size) > LONGEST_LINE * max(1, group.num_rows):
            raise ValueError(f"rows of over {LONGEST_LINE:,} bytes")


def _bytes_of(array: Any) -> int:
    """Return about how many bytes the values of an Arrow array take as Python objects."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_dictionary(kind):
        values, counts = array.indices.drop_null().value_counts().flatten()
        lengths = compute.binary_length(array.dictionary.take(values))
        return int(compute.sum(compute.multiply(lengths, counts)).as_py() or 0)
    if types.is_struct(kind):
        return sum(map(_bytes_of, array.flatten()))
    if types.is_list(kind) or types.is_large_list(kind):
        return 8 * len(array) + _bytes_of(array.flatten())
    return max(8 * len(array), int(array.nbytes))


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
