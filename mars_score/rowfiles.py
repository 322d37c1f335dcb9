"""Files with one JSON object a line: read with the place of every fault, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, one dict a line: row 0 is line 1."""

    path: str
    rows: tuple[dict[str, Any], ...]

    def column(self, name: str, *, remedy: str) -> list[Any]:
        """The values of a column, one a row.

        Raises:
            ValueError: a row lacks the column; names file, line and column, and adds ``remedy``.
        """
        for index, row in enumerate(self.rows):
            if name not in row:
                found = ", ".join(map(repr, row)) or "none"
                raise ValueError(f"{self.place(name)(index)} is missing (columns here: {found}); {remedy}")
        return [row[name] for row in self.rows]

    def labels(self, name: str, *, remedy: str) -> list[str]:
        """A column of labels, strings or integers, as strings.

        Raises:
            ValueError: a row lacks the column, or holds something else there; names file, line and column.
        """
        values = self.column(name, remedy=remedy)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{self.place(name)(row)} must be a string or an integer, got {value!r:.60}")
        return [str(value) for value in values]

    def place(self, column: str) -> Callable[[int], str]:
        """What names a row of a column in an error, for the checks of :mod:`mars_score.rows`."""
        return lambda row: f"{self.path}:{row + 1}: column {column!r}"


def read_rows(path: str | os.PathLike[str]) -> RowFile:
    """Read a file of JSON objects, one a line, in UTF-8. Blank lines are allowed at its end only.

    Raises:
        OSError: the file cannot be read.
        ValueError: no rows, or a line that is not a JSON object in UTF-8; names file, line and position.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:  # split at \n alone: texts may hold other line separators
        lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ValueError(f"{name}: the file holds no rows; write one JSON object a line")
    return RowFile(name, tuple(_parse(f"{name}:{number}", line) for number, line in enumerate(lines, 1)))


def write_row(file: TextIO, row: dict[str, Any]) -> None:
    """Write ``row`` as one line of JSON; characters that UTF-8 cannot hold (cut emoji) are escaped."""
    line = json.dumps(row, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(row)
    file.write(line + "\n")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A file to write in UTF-8 that takes the place of ``path`` when the block ends, and is removed if it fails.

    Raises:
        OSError: the folder is missing or cannot be written; raised at once, before the block.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/stdout, a pipe; a folder raises here
        with open(target, "w", encoding="utf-8") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: the folder {target.parent} does not exist; make it first")
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _parse(place: str, raw: bytes) -> dict[str, Any]:
    try:
        row = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}:{error.start + 1}: not UTF-8; convert the file") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{place}:1: not JSON that can be read: nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place}:1: not a JSON object but {type(row).__name__}; write one object a line")
    return row
