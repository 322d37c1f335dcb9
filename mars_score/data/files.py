"""Files of rows: read whole or in chunks, their columns checked, every fault named by line and column."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mars_score.data.readers import stream_rows
from mars_score.data.validation import check_candidates, check_rows
from mars_score.data.values import plain
from mars_score.rows import Row


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, or some of them in sequence.

    Attributes:
        path: names the file in errors.
        rows: a dict for each row.
        numbers: of each row in the file, from 0; line 1 is number 0.
    """

    path: str
    rows: Sequence[dict[str, Any]]
    numbers: Sequence[int]

    def one_value_each(self, name: str) -> RowFile:
        """Split each row that holds a list in a column into one row for each entry, with the same number.

        Raises:
            ValueError: a list is empty.
        """
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for index, (row, number) in enumerate(zip(self.rows, self.numbers, strict=True)):
            value = row.get(name)
            if value == []:
                raise ValueError(f"{self.where(name)(index)} is an empty list; fill it or leave the row out")
            entries = [{**row, name: entry} for entry in value] if isinstance(value, list) else [row]
            rows += entries
            numbers += [number] * len(entries)
        return RowFile(self.path, rows, numbers)

    def column(self, name: str, *, remedy: str) -> list[Any]:
        """Return the values of a column, one for each row.

        Raises:
            ValueError: a row has no such column; ends with ``remedy``.
        """
        for index, row in enumerate(self.rows):
            if name not in row:
                names = ", ".join(map(repr, row)) or "none"
                raise ValueError(f"{self.where(name)(index)} is missing (columns here: {names}); {remedy}")
        return [row[name] for row in self.rows]

    def labels(self, name: str, *, remedy: str) -> list[str]:
        """Return a column of labels, strings or integers, as strings; args and errors as for :meth:`column`."""
        values = self.column(name, remedy=remedy)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{self.where(name)(row)} must be a string or an integer, got {value!r:.60}")
        return [str(value) for value in values]

    def where(self, column: str) -> Callable[[int], str]:
        """Return what names a row of a column in errors, for the checks of :mod:`mars_score.data.validation`."""
        return lambda row: f"{self.path}:{self.numbers[row] + 1}: column {column!r}"


def read_rows(path: str | os.PathLike[str]) -> RowFile:
    """Read a whole file; formats and errors as for :func:`mars_score.data.readers.stream_rows`."""
    rows = tuple(stream_rows(path))
    return RowFile(os.fspath(path), rows, range(len(rows)))


def read_chunks(path: str | os.PathLike[str], size: int) -> Iterator[RowFile]:
    """Read a file ``size`` rows at a time; formats and errors as for :func:`read_rows`."""
    rows, start = stream_rows(path), 0
    while chunk := tuple(islice(rows, size)):
        yield RowFile(os.fspath(path), chunk, range(start, start + len(chunk)))
        start += len(chunk)


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

    def _check_names(self, file: RowFile) -> None:
        """Raise ValueError where several columns are missing, which one message names together."""
        missing = {field: name for field, name in vars(self).items() if name and name not in file.rows[0]}
        if len(missing) > 1:
            names, here = (", ".join(map(repr, names)) for names in (missing.values(), file.rows[0]))
            options = ", ".join(f"--{field}-column" for field in missing)
            fault = f"columns {names} are missing (columns here: {here or 'none'})"
            raise ValueError(f"{file.path}:{file.numbers[0] + 1}: {fault}; name them with {options}")
