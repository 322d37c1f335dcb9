"""Read rows from JSONL, JSON lists, CSV, TSV (also compressed), Parquet, and data sets saved by ``datasets``.

Errors name file, line and column. Python's own modules read JSON and CSV, because pyarrow and pandas do not tell
the line on which a row begins. A row has at most :data:`LONGEST_LINE` bytes. Its size is checked before decoding.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from mars_score.data.columns import RawRows, check_titles
from mars_score.errors import warn

LONGEST_LINE = 2**24  # bytes of a row; in memory its values take many times as many
LONGEST_LIST = 2**26  # bytes of a JSON list, which is decoded whole; empty objects take 25 times as many in memory
LARGEST_FILE = 2**29  # bytes in memory of a file that is read whole
_LARGEST_CHUNK = 2**26  # bytes in memory of a chunk, without its last row
_BYTES_PER_ROW = 128  # in memory, without the row's values
_PARQUET_BATCH = 64  # rows that are decoded together
_JSON = (".json", ".jsonl", ".ndjson")
# The beginning of a JSON list, all of an empty one, and the comma or bracket after an entry.
_LIST_BEGIN = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*(?:\][ \t\n\r]*)?")
_ENTRY_END = re.compile(r"[ \t\n\r]*[,\]][ \t\n\r]*")
# First bytes of bzip2, xz, Zstandard and 7-Zip; of zip (and Excel) and old Excel; of Parquet, Arrow and SQLite; of
# UTF-16 in both byte orders.
_NOT_TEXT = (
    *(b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"),
    *(b"PAR1", b"ARROW1", b"SQLite format 3", b"\xff\xfe", b"\xfe\xff"),
)
_QUOTES = 'put a cell with a separator or a quote between quotes ("), and write a quote in it twice ("")'
_TABS = "a cell has no tab or line break, and quotes are ordinary characters; write such texts as .csv"
# A cell as a CSV writer writes it with tabs, and its tab, in bytes.
_TABBED_CELL = re.compile(rb'("(?:[^"]++|"")*+"|[^"\t\r\n]*+)\t')

_Bytes = io.BufferedReader | gzip.GzipFile


class RawRow(NamedTuple):
    """A row of a file before it is checked."""

    number: int  # the number of lines before it, or of rows if the format has no lines (Parquet, saved data sets)
    values: dict[str, Any]  # the values by column
    in_cells: bool = False  # whether the row is from a CSV or TSV file, so that all values are texts
    is_unquoted: bool = False  # whether it is from a TSV file with quotes as in CSV, which were removed


# Files


def read_rows(path: str | os.PathLike[str]) -> RawRows:
    """Read a whole file; see :func:`iter_rows`.

    Raises:
        ValueError: the file cannot be read, or is too large for memory.
    """
    rows, size = [], 0
    for row in iter_rows(path):
        rows.append(row)
        size += _bytes_of(row.values) + _BYTES_PER_ROW
        if size > LARGEST_FILE:
            fault = f"over {LARGEST_FILE:,} bytes of rows, which this command holds in memory"
            raise ValueError(f"{os.fspath(path)}:{row.number + 1}: {fault}; give it a part of the file")
    return _raw_rows(path, rows)


def read_chunks(path: str | os.PathLike[str], size: int) -> Iterator[RawRows]:
    """Yield ``size`` rows of a file at a time, or fewer large ones; see :func:`iter_rows`."""
    chunk: list[RawRow] = []
    chunk_bytes = 0
    for row in iter_rows(path):
        chunk.append(row)
        chunk_bytes += _bytes_of(row.values)
        if len(chunk) == size or chunk_bytes > _LARGEST_CHUNK:
            yield _raw_rows(path, chunk)
            chunk, chunk_bytes = [], 0
    if chunk:
        yield _raw_rows(path, chunk)


def _raw_rows(path: str | os.PathLike[str], rows: Sequence[RawRow]) -> RawRows:
    first, numbers = rows[0], [row.number for row in rows]
    return RawRows(os.fspath(path), [row.values for row in rows], numbers, first.in_cells, first.is_unquoted)


def _bytes_of(value: object) -> int:
    """Estimate the bytes that a value takes in memory."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sys.getsizeof(value) + sum(map(_bytes_of, parts))


def iter_rows(path: str | os.PathLike[str]) -> Iterator[RawRow]:
    """Yield the rows of a file. Its name tells the format.

    - A folder is a data set that ``datasets`` saved (``save_to_disk``). ``*.parquet`` is Parquet.
    - ``*.csv`` has a header with the names of the columns, then the rows. All cells are texts.
    - ``*.tsv`` is the same with tabs between cells. Quotes are ordinary characters, unless a CSV writer wrote the
      file: then quotes enclose whole cells, and quotes within are doubled.
    - ``*.json`` and ``*.jsonl`` have one JSON object per line, in UTF-8, or a JSON list of objects.
    - A file of any other name is JSON if its first line begins with a brace or a bracket, else CSV or TSV.

    The text formats may be compressed (``*.gz``).

    Raises:
        ValueError: the file has no rows or cannot be read. File and line are named.
    """
    name = os.fspath(path)
    rows: Iterator[RawRow]
    remedy = "give one that has some"
    if os.path.isdir(path):
        rows = map(RawRow, count(), _saved_rows(name))
    elif name.lower().endswith(".parquet"):
        rows = map(RawRow, count(), _parquet_rows(name))
    else:
        rows = _text_rows(name)
        is_table = delimiter_of(name)
        remedy = f"write {'a header, and a row on each line after it' if is_table else 'one JSON object per line'}"
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{name}: the file holds no rows; {remedy}")
    yield first
    yield from rows


def delimiter_of(name: str) -> str | None:
    """Return the delimiter of a CSV or TSV file by its name, or None for any other file."""
    name = name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t" if name.endswith(".tsv") else None


def dialect_of(delimiter: str, *, has_quotes: bool) -> dict[str, Any]:
    """Return arguments for module ``csv``. Without ``has_quotes``, quotes are ordinary characters."""
    if not has_quotes:
        return {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None, "lineterminator": "\n"}
    # Lines end with CRLF (RFC 4180), so that a carriage return within a cell is quoted too.
    return {"delimiter": delimiter, "lineterminator": "\r\n"}


def _text_rows(name: str) -> Iterator[RawRow]:
    try:
        with open(name, "rb") as opened:
            is_gzip = name.lower().endswith(".gz") or opened.peek(2).startswith(b"\x1f\x8b")
            file: _Bytes = gzip.GzipFile(fileobj=opened) if is_gzip else opened
            start = file.peek(len(codecs.BOM_UTF8))
            if start.startswith(_NOT_TEXT):
                fault = "not text in UTF-8, but compressed, an Excel workbook, a database or the like"
                remedy = "decompress it, or save it as CSV, JSONL or Parquet with such an end of its name"
                raise ValueError(f"{name}: {fault}; {remedy}")
            if start.startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
                start = start.removeprefix(codecs.BOM_UTF8)
            delimiter = _delimiter_in(start, name)
            if delimiter:
                has_quotes = delimiter != "\t" or (file.seekable() and _is_quoted(file))
                yield from _cell_rows(file, name, delimiter, has_quotes)
            elif start.lstrip(b" \t\r\n").startswith(b"["):
                yield from _list_rows(file, name)
            else:
                yield from _line_rows(file, name)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: not a whole gzip file ({error}); compress it again") from None


def _delimiter_in(start: bytes, name: str) -> str | None:
    """Return the delimiter of a file by its name or else its first line, or None if it is JSON."""
    delimiter = delimiter_of(name)
    header = start.lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    if delimiter and delimiter not in header:
        return _other_delimiter(header, name, delimiter)
    if delimiter or name.lower().removesuffix(".gz").endswith(_JSON) or not header or header[0] in "{[":
        return delimiter
    delimiter = max("\t,;", key=header.count)
    if delimiter not in header:
        raise ValueError(
            f"{name}:1: not JSON, and no header of a CSV or TSV file; write one JSON object per line, or a header "
            "with the names of the columns"
        )
    return delimiter


def _other_delimiter(header: str, name: str, delimiter: str) -> str:
    """Return the delimiter of a CSV or TSV file whose header lacks the delimiter of its name.

    Raises:
        ValueError: the header has a delimiter that such a file may not have.
    """
    counts = {sign: header.count(sign) for sign in "\t,;|" if sign != delimiter and sign in header}
    if not counts or header[:4].lower() == "sep=":
        return delimiter  # The file has one column, or a line for Excel.
    other = max(counts, key=counts.__getitem__)
    if delimiter == "," and other == ";":
        warn(f"{name} has semicolons between its cells and is read with these")
        return other
    names = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}
    fault = f"the header has no {names[delimiter]}, but {names[other]}"
    endings = {"\t": "name it .tsv", ",": "name it .csv", ";": "name it .csv"}
    remedy = endings.get(other, f"save it with {names[delimiter]}")
    raise ValueError(f"{name}:1: {fault} (columns: {header.strip():.80}); {remedy}, or write .jsonl or .parquet")


# JSON


def _line_rows(file: _Bytes, name: str) -> Iterator[RawRow]:
    r"""Yield one JSON object per line. Lines end with \n alone, because texts may have other line separators."""
    first_blank = 0
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
        where = f"{name}:{number}"
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{where}: a line of over {LONGEST_LINE:,} bytes; write one object per line")
        if not line.strip():
            first_blank = first_blank or number
            continue
        if first_blank:
            raise ValueError(f"{name}:{first_blank}: not JSON: the line is blank; remove it")
        try:
            text = line.decode()
            value = json.loads(text, object_pairs_hook=_object_of)
        except UnicodeDecodeError:
            raise ValueError(f"{where}: not UTF-8; convert the file") from None
        except (ValueError, RecursionError) as error:
            if text.lstrip().startswith("{") and getattr(error, "pos", 0) >= len(text.rstrip()):
                fault = "a JSON object that spans several lines"
                remedy = "write each object on one line, or all of them as a list"
                raise ValueError(f"{where}: {fault}; {remedy}") from None
            if text[getattr(error, "pos", 0) :].strip() == ",":
                remedy = "remove it, or write the objects as a list, between [ and ]"
                raise ValueError(f"{where}: a comma follows the JSON object; {remedy}") from None
            raise ValueError(f"{where}: {_json_fault(error)}") from None
        yield RawRow(number - 1, _checked_object(value, where))


def _list_rows(file: _Bytes, name: str) -> Iterator[RawRow]:
    """Yield the objects of a JSON list, numbered by the lines on which they begin."""
    raw = file.read(LONGEST_LIST + 1)
    if len(raw) > LONGEST_LIST:
        fault = f"a JSON list of over {LONGEST_LIST:,} bytes, which would be held in memory"
        raise ValueError(f"{name}: {fault}; write one object per line: jq -c '.[]' FILE > FILE.jsonl")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}:{line}: not UTF-8; convert the file") from None
    decode = json.JSONDecoder(object_pairs_hook=_object_of).raw_decode
    separator = _LIST_BEGIN.match(text)
    number = begin = 0
    while separator and "]" not in separator[0]:
        number, begin = number + text.count("\n", begin, separator.end()), separator.end()
        try:
            value, end = decode(text, begin)
            separator = _ENTRY_END.match(text, end)
            if separator is None:
                raise json.JSONDecodeError("Expecting ',' or ']'", text, end)
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", number + 1)
            raise ValueError(f"{name}:{line}: {_json_fault(error)}") from None
        yield RawRow(number, _checked_object(value, f"{name}:{number + 1}"))
    if separator and separator.end() < len(text):
        line = text.count("\n", 0, separator.end()) + 1
        raise ValueError(f"{name}:{line}: not JSON: more text after the end of the list; remove it")


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a dict of the pairs of a JSON object. A repeated key is a ValueError."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated!r:.60} is repeated in one object; rename or remove one")
    return fields


def _checked_object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: not a JSON object but {type(value).__name__}; write one object per line")
    return value


def _json_fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} (character {error.colno})"
    # Other errors are a repeated key and an integer of thousands of digits.
    return f"not JSON: {'nested too deeply' if isinstance(error, RecursionError) else error}"


# CSV and TSV


class _Lines:
    """The lines of a text file.

    Attributes:
        count: number of lines read.
        before_row: number of lines before the current row.
    """

    def __init__(self, file: _Bytes, name: str) -> None:
        self._file, self._name = io.TextIOWrapper(file, "utf-8", newline=""), name
        self.count = self.before_row = self._row_size = 0

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._file.readline(LONGEST_LINE + 1):
                self.count += 1
                self._row_size += len(line)
                if self._row_size > LONGEST_LINE:
                    remedy = "is a quote missing?" if self.count > self.before_row + 1 else "shorten it"
                    raise ValueError(f"{self.where}: a row of over {LONGEST_LINE:,} characters; {remedy}")
                yield line
        except UnicodeDecodeError:
            raise ValueError(f"{self._name}: not UTF-8 (near line {self.count + 1}); convert the file") from None

    def begin_row(self) -> None:
        self.before_row, self._row_size = self.count, 0

    @property
    def where(self) -> str:
        """Return the file and the line on which the current row begins."""
        return f"{self._name}:{self.before_row + 1}"


def _looks_quoted(cell: str) -> bool:
    """Tell whether a CSV writer probably put the quotes around a cell of a TSV file.

    If so, all quotes within are doubled, and the cell holds a quote, a list, an object or nothing.
    """
    text = cell[1:-1]
    rest = text.replace('""', "")
    is_closed = len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in rest
    return is_closed and (rest != text or not text or text.lstrip().startswith(("[", "{")))


def _is_quoted(file: _Bytes) -> bool:
    """Tell whether a CSV writer wrote a file with tabs. The file position does not change.

    Such a file has quotes around whole cells only, and quotes within are doubled. Texts such as "So it is." have
    quotes around them too, so one more sign is needed: a header in quotes, a cell that :func:`_looks_quoted`, or a
    row that has the right number of cells only if quotes enclose tabs or line breaks.
    """
    begin, columns, has_sign = file.tell(), 0, False
    for lines in _quoted_rows(file):
        row = b"".join(lines).rstrip(b"\r\n")
        if columns and b'"' not in row:
            continue
        cells = _TABBED_CELL.findall(row + b"\t")
        if b"\t".join(cells) != row:
            has_sign = False
            break
        if not columns:
            columns, has_sign = len(cells), all(cell.startswith(b'"') for cell in cells)
        has_sign |= any(_looks_quoted(cell.decode("utf-8", "replace")) for cell in cells)
        has_sign |= len(cells) == columns and any(line.count(b"\t") != columns - 1 for line in lines)
    file.seek(begin)
    return has_sign


def _quoted_rows(file: _Bytes) -> Iterator[list[bytes]]:
    """Yield the lines of each row. It ends when all quotes are closed, or at :data:`LONGEST_LINE` bytes."""
    lines, size, quotes = list[bytes](), 0, 0
    for line in iter(lambda: file.readline(LONGEST_LINE + 1), b""):
        lines.append(line)
        size, quotes = size + len(line), quotes + line.count(b'"')
        if quotes % 2 == 0 or size > LONGEST_LINE:
            yield lines
            lines, size, quotes = [], 0, 0
    if lines:
        yield lines


def _cell_rows(file: _Bytes, name: str, delimiter: str, has_quotes: bool) -> Iterator[RawRow]:
    lines = _Lines(file, name)
    rows = _cells(lines, delimiter, has_quotes)
    columns = next(rows, [])
    line = delimiter.join(columns)
    if line[:4].lower() == "sep=" and len(line) == len("sep=;"):
        fault = f"the line {line!r} is meant for Excel alone"
        expected = {"\t": "tabs", ",": "commas", ";": "semicolons"}[delimiter]
        raise ValueError(f"{name}:1: {fault}; remove it, and write {expected} between cells")
    check_titles(columns, f"{name}:1: ")
    first_blank = 0
    for cells in rows:
        if not cells:
            first_blank = first_blank or lines.count
            continue
        # In a file of one column a blank line may be a blank cell.
        if first_blank and len(columns) == 1:
            or_quotes = '; a blank cell is ""' if has_quotes else ""
            raise ValueError(f"{name}:{first_blank}: the line is blank; remove it{or_quotes}")
        if len(cells) != len(columns):
            fault = f"the row has {len(cells)} cells, but there are {len(columns)} columns"
            end = f" (it ends on line {lines.count})" if lines.count > lines.before_row + 1 else ""
            raise ValueError(f"{lines.where}: {fault}{end}; {_QUOTES if has_quotes else _TABS}")
        values = dict(zip(columns, cells, strict=True))
        for column, cell in () if has_quotes else values.items():
            if '""' in cell[1:-1] and _looks_quoted(cell):
                fault = f"column {column!r} holds a text quoted as in CSV, but others have unquoted texts"
                raise ValueError(f"{lines.where}: {fault}; write all of them alike, or .csv or .jsonl")
        yield RawRow(lines.before_row, values, in_cells=True, is_unquoted=has_quotes and delimiter == "\t")


def _cells(lines: _Lines, delimiter: str, has_quotes: bool) -> Iterator[list[str]]:
    """Yield the cells of each row, [] for a blank line."""
    csv.field_size_limit(LONGEST_LINE)  # The default of 131,072 characters is too low for contexts.
    try:
        for cells in csv.reader(lines, strict=True, **dialect_of(delimiter, has_quotes=has_quotes)):
            yield cells
            lines.begin_row()
    except csv.Error as error:
        fault = f"a quote in this row, read to line {lines.count}, is not closed as it should be ({error})"
        raise ValueError(f"{lines.where}: {fault}; {_QUOTES}") from None


# Parquet and saved data sets


def _parquet_rows(name: str) -> Iterator[dict[str, object]]:
    from pyarrow import parquet

    with open(name, "rb") as opened, _readable(name, "Parquet file"):
        metadata = parquet.ParquetFile(opened).metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        if any(group.total_byte_size > LONGEST_LINE * max(1, group.num_rows) for group in groups):
            raise ValueError(f"rows of over {LONGEST_LINE:,} bytes; leave them out")
        leaves = [metadata.schema.column(index) for index in range(metadata.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING"]
        file = parquet.ParquetFile(opened, read_dictionary=texts)  # Repeated texts are held once.
        check_titles(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
            size = batch.num_rows if _decoded_bytes(batch.to_struct_array()) <= LONGEST_LINE else 1
            for part in (batch.slice(start, size) for start in range(0, batch.num_rows, size)):
                if _decoded_bytes(part.to_struct_array()) > LONGEST_LINE:
                    raise ValueError(f"a row of over {LONGEST_LINE:,} bytes; leave it out")
                yield from part.to_pylist()


def _decoded_bytes(array: Any) -> int:
    """Estimate the bytes that the values of an Arrow array take as Python objects."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_dictionary(kind):
        values, counts = array.indices.drop_null().value_counts().flatten()
        lengths = compute.binary_length(array.dictionary.take(values))
        return int(compute.sum(compute.multiply(lengths, counts)).as_py() or 0)
    if types.is_struct(kind):
        return sum(map(_decoded_bytes, array.flatten()))
    if types.is_list(kind) or types.is_large_list(kind):
        return 8 * len(array) + _decoded_bytes(array.flatten())
    return max(8 * len(array), int(array.nbytes))


def _saved_rows(name: str) -> Iterator[dict[str, object]]:
    import datasets

    with _readable(name, "data set"):
        saved = datasets.load_from_disk(name)
        if isinstance(saved, datasets.DatasetDict):
            splits = ", ".join(os.path.join(name, split) for split in saved)
            raise ValueError(f"it has several splits; give one of them: {splits}")
        yield from saved


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Turn every exception in the block into a ValueError, because damaged files raise many kinds."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else str(error)
        first_line = (reason or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name}: not a {kind} that can be read: {first_line}") from None
