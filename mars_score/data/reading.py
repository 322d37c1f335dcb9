"""Files of rows: read whole or in chunks, their columns checked, every fault named by line and column."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mars_score.data.cells import CellKinds
from mars_score.data.readers import FileRow, file_rows
from mars_score.data.validation import check_candidates, check_rows
from mars_score.data.values import get_field, is_blank, plain, unnested, with_field
from mars_score.rows import Row

LARGEST_FILE = 2**29  # bytes in memory of a file that is read whole
_LARGEST_CHUNK = 2**26  # bytes of rows that are worked on together; less than one row more
_BYTES_PER_ROW = 128  # in memory, besides its values
_MISSING = object()


class DefaultName(str):
    """The name of a column where nobody gave one."""


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, or some of them in sequence.

    Attributes:
        path: names the file in errors.
        rows: a dict for each row.
        numbers: of each row the number of lines before it, so that line 1 is number 0; a CSV file's first row is
            on line 2.
        in_cells: whether all values are texts, as in CSV and TSV files.
    """

    path: str
    rows: Sequence[dict[str, Any]]
    numbers: Sequence[int]
    in_cells: bool = False

    def one_value_each(self, name: str) -> RowFile:
        """Split each row that holds a list in a column into one row for each entry, with the same number.

        Raises:
            ValueError: a list is empty.
        """
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for index, (row, number) in enumerate(zip(self.rows, self.numbers, strict=True)):
            value = unnested(get_field(row, name))
            if value == []:
                raise ValueError(f"{self.where(name)(index)} is an empty list; fill it or leave the row out")
            entries = [with_field(row, name, entry) for entry in value] if isinstance(value, list) else [row]
            rows += entries
            numbers += [number] * len(entries)
        return RowFile(self.path, rows, numbers, self.in_cells)

    def has(self, name: str) -> bool:
        """Tell whether any row has a column; names as for :meth:`column`."""
        return any(get_field(row, name, _MISSING) is not _MISSING for row in self.rows)

    def column(self, name: str, *, remedy: str) -> list[Any]:
        """Return the values of a column, one for each row; ``doc.question`` is in the objects of a column ``doc``.

        Raises:
            ValueError: a row has no such column; ends with ``remedy``.
        """
        values = [get_field(row, name, _MISSING) for row in self.rows]
        for index, (row, value) in enumerate(zip(self.rows, values, strict=True)):
            if value is _MISSING:
                names = ", ".join(map(repr, row)) or "none"
                raise ValueError(f"{self.where(name)(index)} is missing (columns here: {names}); {remedy}")
        return values

    def labels(self, name: str, *, remedy: str) -> list[str]:
        """Return a column of labels, all strings or all integers, as strings; args as for :meth:`column`.

        Raises:
            ValueError: as for :meth:`column`; or a label is blank, or of another type than the first.
        """
        values, where = self.column(name, remedy=remedy), self.where(name)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{where(row)} must be a string or an integer, got {value!r:.60}")
            if isinstance(value, str) and is_blank(value):
                raise ValueError(f"{where(row)} is blank; give every row a label")
            if isinstance(value, str) != isinstance(values[0], str):
                kind, first = ("a string", "an integer") if isinstance(value, str) else ("an integer", "a string")
                fault = f"{where(row)} holds {kind}, but {where(0)} {first}"
                raise ValueError(f"{fault}; write all labels of a column alike")
        return [str(value) for value in values]

    def line(self, row: int) -> str:
        """Return file and line of a row."""
        return f"{self.path}:{self.numbers[row] + 1}"

    def where(self, column: str) -> Callable[[int], str]:
        """Return what names a row of a column in errors, for the checks of :mod:`mars_score.data.validation`."""
        return lambda row: f"{self.line(row)}: column {column!r}"


def read_rows(path: str | os.PathLike[str]) -> RowFile:
    """Read a whole file; formats and errors as for :func:`mars_score.data.readers.stream_rows`.

    Raises:
        ValueError: also where it is too large to be held in memory.
    """
    rows, size = [], 0
    for row in file_rows(path):
        rows.append(row)
        size += _bytes_of(row.values) + _BYTES_PER_ROW
        if size > LARGEST_FILE:
            fault = f"over {LARGEST_FILE:,} bytes of rows, which this command holds in memory"
            raise ValueError(f"{os.fspath(path)}:{row.number + 1}: {fault}; give it a part of the file")
    return _row_file(path, rows)


def read_chunks(path: str | os.PathLike[str], size: int) -> Iterator[RowFile]:
    """Read a file ``size`` rows at a time, or fewer large ones; formats and errors as for :func:`read_rows`."""
    chunk: list[FileRow] = []
    held = 0
    for row in file_rows(path):
        chunk.append(row)
        held += _bytes_of(row.values)
        if len(chunk) == size or held > _LARGEST_CHUNK:
            yield _row_file(path, chunk)
            chunk, held = [], 0
    if chunk:
        yield _row_file(path, chunk)


def _row_file(path: str | os.PathLike[str], rows: Sequence[FileRow]) -> RowFile:
    numbers, values = [row.number for row in rows], [row.values for row in rows]
    return RowFile(os.fspath(path), values, numbers, rows[0].in_cells)


def _bytes_of(value: Any) -> int:
    """Return about how many bytes a value takes in memory."""
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(map(_bytes_of, value.values()))
    if isinstance(value, list):
        return sys.getsizeof(value) + sum(map(_bytes_of, value))
    return sys.getsizeof(value)


def row_line(row: dict[str, Any]) -> str:
    """Write a row as one line of JSON; what UTF-8 cannot hold is escaped.

    Raises:
        TypeError: JSON cannot hold a value.
    """
    values = {}
    for name, value in row.items():
        try:
            values[name] = plain(value)
        except (TypeError, RecursionError) as error:
            fault = "a value that is nested too deeply" if isinstance(error, RecursionError) else error
            raise TypeError(f"column {name!r} cannot be written as JSON: {fault}; leave it out") from None
    line = json.dumps(values, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(values)
    return line + "\n"


@dataclass(frozen=True)
class Columns:
    """What the columns of a file are called; None for one that it does not have.

    Attributes:
        reference: one or more references per row; None: candidates are scored by their contexts alone.
        context: the context.
        prediction: the candidate.
        samples: texts that others than the candidate's system wrote for the context.
        task: what the context is, one of :data:`mars_score.rows.TASKS`, or empty.
    """

    reference: str | None
    context: str | None
    prediction: str | None = None
    samples: str | None = None
    task: str | None = None

    def rows(self, file: RowFile, *, task: str | None = None, required: bool = False) -> list[Row]:
        """Check the columns of a file and return its rows, without outer white space.

        Args:
            file: a file, or some rows of it.
            task: of rows whose column says none; None: as the type of the context says.
            required: whether the command needs references and contexts, so that no error says how to do without.

        Raises:
            TypeError, ValueError: a column is missing, or a value cannot be used; named with its line.
        """
        file = self.parse_cells(file)
        found = self.found_in(file)
        if found != self:
            return found.rows(file, task=task, required=required)
        self._check_names(file)
        without = {"context": ", or pass --no-use-context"}
        if self.prediction:
            without["reference"] = ", or pass --no-references to score all rows without"

        def column(field: str) -> list[Any] | None:
            name = getattr(self, field)
            remedy = f"add it or name another with --{field}-column"
            return name and file.column(name, remedy=remedy + ("" if required else without.get(field, "")))

        names = {
            "references": self.reference,
            "contexts": self.context,
            "samples": self.samples,
            "tasks": self.task,
        }
        rows = check_rows(
            column("reference"),
            column("context"),
            column("samples"),
            column("task"),
            use_context=self.context is not None,
            task=task,
            where=lambda checked: file.where(names[checked] or checked),
        )
        if self.prediction is None:
            return rows
        candidates = check_candidates(column("prediction"), where=file.where(self.prediction))
        return [row._replace(candidate=text.strip()) for row, text in zip(rows, candidates, strict=True)]

    def found_in(self, file: RowFile) -> Columns:
        """Return the names with which a file calls these columns: the plural of a usual one is taken, too.

        Raises:
            ValueError: there are columns of both names, and nobody named one.
        """
        found = {}
        for field in ("reference", "context", "prediction"):
            if getattr(self, field) != field:
                continue
            named = [name for name in (field, f"{field}s") if name in file.rows[0]]
            if len(named) > 1 and isinstance(getattr(self, field), DefaultName):
                fault = f"columns {named[0]!r} and {named[1]!r} could both hold the {field}s"
                remedy = f"rename one, or name it with --{field}-column"
                raise ValueError(f"{file.path}:{file.numbers[0] + 1}: {fault}; {remedy}")
            if named:
                found[field] = named[0]
        return replace(self, **found)

    def parse_cells(self, file: RowFile, kinds: CellKinds | None = None) -> RowFile:
        """Return a CSV or TSV file with lists and objects for the cells that hold such; see :class:`CellKinds`.

        Args:
            file: a file, or some rows of it.
            kinds: of the rows before, if it is a part.

        Raises:
            ValueError: some cells of a column hold lists or objects, and others texts; named with their lines.
        """
        if not file.in_cells:
            return file
        kinds, rows = kinds or CellKinds(), [dict(row) for row in file.rows]
        for field, name in vars(self.found_in(file)).items():
            if name in file.rows[0] and field != "task":
                values = [row[name] for row in rows]
                remedy = "write the rows as JSON lines, where types are said"
                parsed = kinds.parse(values, field, file.where(name), remedy)
                for row, value in zip(rows, parsed, strict=True):
                    row[name] = value
        return RowFile(file.path, rows, file.numbers)

    def _check_names(self, file: RowFile) -> None:
        """Raise ValueError where several columns are missing, which one message names together."""
        first = file.rows[0]
        missing = {
            field: name
            for field, name in vars(self).items()
            if name and get_field(first, name, _MISSING) is _MISSING
        }
        if len(missing) > 1:
            names, here = (", ".join(map(repr, names)) for names in (missing.values(), file.rows[0]))
            options = ", ".join(f"--{field}-column" for field in missing)
            fault = f"columns {names} are missing (columns here: {here or 'none'})"
            raise ValueError(f"{file.path}:{file.numbers[0] + 1}: {fault}; name them with {options}")
