"""Files of rows: read with the place of every fault, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from mars_score.data.readers import stream_rows
from mars_score.data.validation import (
    Row,
    check_candidates,
    check_contexts,
    check_reference_free,
    check_references,
    check_samples,
)
from mars_score.data.values import plain

Checked = TypeVar("Checked")


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, or a part of them in sequence: one dict per row."""

    path: str  # names the file in errors
    rows: Sequence[dict[str, Any]]  # the rows
    numbers: Sequence[int]  # of each row its number in the file, from 0; line 1 is number 0

    def one_value_each(self, name: str) -> RowFile:
        """Rows that hold a list in a column as several rows with the same number; an empty list is an error."""
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for index, (row, number) in enumerate(zip(self.rows, self.numbers, strict=True)):
            value = row.get(name)
            if value == []:
                raise ValueError(f"{self.place(name)(index)} is an empty list; fill it or leave the row out")
            entries = [{**row, name: entry} for entry in value] if isinstance(value, list) else [row]
            rows += entries
            numbers += [number] * len(entries)
        return RowFile(self.path, rows, numbers)

    def column(self, name: str, *, remedy: str) -> list[Any]:
        """The values of a column, one per row; a row without it raises ValueError with ``remedy``."""
        for index, row in enumerate(self.rows):
            if name not in row:
                names = ", ".join(map(repr, row)) or "none"
                raise ValueError(f"{self.place(name)(index)} is missing (columns here: {names}); {remedy}")
        return [row[name] for row in self.rows]

    def checked(self, check: Callable[..., list[Checked]], name: str, remedy: str) -> list[Checked]:
        """What a check of :mod:`mars_score.data.validation` makes of a column; errors name line and column."""
        return check(self.column(name, remedy=remedy), where=self.place(name))

    def labels(self, name: str, *, remedy: str) -> list[str]:
        """A column of labels, strings or integers, as strings."""
        values = self.column(name, remedy=remedy)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{self.place(name)(row)} must be a string or an integer, got {value!r:.60}")
        return [str(value) for value in values]

    def place(self, column: str) -> Callable[[int], str]:
        """What names a row of a column in an error, for the checks of :mod:`mars_score.data.validation`."""
        return lambda row: f"{self.path}:{self.numbers[row] + 1}: column {column!r}"


def read_rows(path: str | os.PathLike[str]) -> RowFile:
    """Read a whole file; formats and errors as for :func:`mars_score.data.readers.stream_rows`."""
    rows = tuple(stream_rows(path))
    return RowFile(os.fspath(path), rows, range(len(rows)))


def read_parts(path: str | os.PathLike[str], size: int) -> Iterator[RowFile]:
    """Read a file ``size`` rows at a time; formats and errors as for :func:`read_rows`."""
    rows, start = stream_rows(path), 0
    while part := tuple(islice(rows, size)):
        yield RowFile(os.fspath(path), part, range(start, start + len(part)))
        start += len(part)


def row_line(row: dict[str, Any]) -> str:
    """``row`` as one line of JSON; what UTF-8 cannot hold is escaped, what JSON cannot hold raises TypeError."""
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


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside ``path`` for a new file or folder, which takes its place when the block ends without an error.

    A folder that is already there stays: another process was faster.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield beside
        if not (beside.is_dir() and target.is_dir()):
            os.replace(beside, target)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8 that is there whole, or as it was before."""
    with replaced(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


@dataclass(frozen=True)
class Columns:
    """What a file's columns are called."""

    reference: str | None  # one or more references per row; None: without references
    context: str | None  # the context; None: without contexts
    prediction: str | None = None  # the candidate; None: there are none
    samples: str | None = None  # None: there are none

    def rows(self, file: RowFile, *, required: bool = False) -> list[Row]:
        """The rows, checked; blank texts and no references or samples where there is no column.

        ``required``: the command cannot do without references or contexts, so that no error says how.
        """
        missing = {field: name for field, name in vars(self).items() if name and name not in file.rows[0]}
        if len(missing) > 1:
            names, here = (", ".join(map(repr, names)) for names in (missing.values(), file.rows[0]))
            options = ", ".join(f"--{field}-column" for field in missing)
            fault = f"columns {names} are missing (columns here: {here or 'none'})"
            raise ValueError(f"{file.path}:{file.numbers[0] + 1}: {fault}; name them with {options}")

        def column(field: str, check: Callable[..., list[Any]], empty: Any, otherwise: str = "") -> list[Any]:
            name = getattr(self, field)
            if name is None:
                return [empty] * len(file.rows)
            remedy = f"add it or name another with --{field}-column"
            return file.checked(check, name, remedy if required else f"{remedy}{otherwise}")

        check = check_reference_free if self.reference is None else check_contexts
        contexts = column("context", check, "", ", or pass --no-use-context")
        otherwise = ", or pass --no-references to score all rows without" if self.prediction else ""
        references = column("reference", check_references, (), otherwise)
        candidates = map(str.strip, column("prediction", check_candidates, ""))
        return list(map(Row, candidates, references, contexts, column("samples", check_samples, ())))
