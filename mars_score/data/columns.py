"""Find the columns of a file or a table by their names, and make checked rows of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from mars_score.data.checking import check_examples, check_rows
from mars_score.data.forms import Readings, find_question, is_chat, split_chats, usual_titles, with_question
from mars_score.data.frames import (
    CellKinds,
    entries_of,
    get_field,
    head_of,
    in_memory,
    is_missing,
    is_table,
    splits_of,
    unnested,
    value_of_cell,
    with_field,
)
from mars_score.errors import ColumnError, Place, brief
from mars_score.options import unknown_name
from mars_score.rows import Example, Row
from mars_score.text import is_blank

NAMES = ("prediction", "reference", "context", "samples", "task")  # what columns hold
_DEFAULT = NAMES[:3]  # used even if the user does not name them
_SINGULARS = ("prediction", "reference", "context", "sample", "task", "group", "system", "id")
_MISSING = object()


@dataclass(frozen=True)
class RawRows:
    """The unchecked rows of a file or a table in memory, or some of them in sequence."""

    path: str  # names the file in errors; "" for a table
    rows: Sequence[dict[str, Any]]  # a dict for each row
    # The number of lines before each row, such as 1 for the first row of a CSV file; rows in a table.
    numbers: Sequence[int]
    in_cells: bool = False  # whether a text may be a serialised list or object: in CSV, TSV and tables
    is_unquoted: bool = False  # whether quotes as in CSV were removed from a TSV file

    @property
    def titles(self) -> list[str]:
        """Return the names of the columns of the first row."""
        return list(self.rows[0])

    def values(self, title: str) -> list[Any]:
        """Return the values of a column, with None for rows that lack it."""
        return [row.get(title) for row in self.rows]

    def one_value_each(self, name: str) -> RawRows:
        """Split each row with a list in a column into one row per entry. All get the same number.

        Raises:
            ValueError: a list is empty.
        """
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for index, (row, number) in enumerate(zip(self.rows, self.numbers, strict=True)):
            value = unnested(get_field(row, name))
            entries = None if isinstance(value, str) or is_chat(value) else entries_of(value)
            if entries == []:
                raise ValueError(f"{self.cell(name, index)} is an empty list; fill it or leave the row out")
            split = [row] if entries is None else [with_field(row, name, entry) for entry in entries]
            rows += split
            numbers += [number] * len(split)
        return RawRows(self.path, rows, numbers, self.in_cells)

    def has(self, name: str) -> bool:
        """Tell whether any row has a column, named as for :meth:`column`."""
        return any(get_field(row, name, _MISSING) is not _MISSING for row in self.rows)

    def lacks(self, name: str) -> bool:
        """Tell whether the first row lacks a column, named as for :meth:`column`."""
        return get_field(self.rows[0], name, _MISSING) is _MISSING

    def column(self, name: str, holds: str) -> list[Any]:
        """Return the values of a column, one per row. ``doc.question`` is a field of the objects in ``doc``.

        Raises:
            ColumnError: a row has no such column. The error says what it should hold (``holds``).
        """
        values = [get_field(row, name, _MISSING) for row in self.rows]
        for index, value in enumerate(values):
            if value is _MISSING:
                raise _missing(self.line(index), {holds: name}, self.rows[index])
        return values

    def labels(self, name: str, holds: str) -> list[str]:
        """Return a column of labels, all strings or all integers, as strings; see :meth:`column`.

        Raises:
            ValueError: a row has no such column, a label is blank, or it has another type than the first.
        """
        values = self.column(name, holds)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{self.cell(name, row)} must be a string or an integer, got {value!r:.60}")
            if isinstance(value, str) and is_blank(value):
                raise ValueError(f"{self.cell(name, row)} is blank; give every row a label")
            if isinstance(value, str) != isinstance(values[0], str):
                kind, first = ("a string", "an integer") if isinstance(value, str) else ("an integer", "a string")
                fault = f"{self.cell(name, row)} holds {kind}, but {self.cell(name, 0)} {first}"
                raise ValueError(f"{fault}; write all labels of a column alike")
        return [str(value) for value in values]

    def line(self, row: int) -> str:
        """Return file and line of a row, or its number in a table."""
        number = self.numbers[row]
        return f"{self.path}:{number + 1}" if self.path else f"row {number}"

    def cell(self, name: str, row: int) -> str:
        """Return line and column of a value."""
        return f"{self.line(row)}: column {name!r}"


@dataclass(frozen=True, kw_only=True)
class PlaceInFile(Place):
    """Names a row by its line and column."""

    file: RawRows

    def of(self, column: str, row: int) -> str:
        """Return the name of a row, which is counted from 0."""
        return self.file.cell(self.names.get(column, column), row)


class MemoryTable:
    """A table in memory, whose columns are read only when they are needed.

    Args:
        data: a pandas or polars frame, a pyarrow table, a data set of ``datasets``, or a dict of columns.

    Raises:
        ValueError: the data are several tables.
    """

    def __init__(self, data: Any) -> None:
        if splits := splits_of(data):
            fault = f"this {type(data).__name__} has several tables: {', '.join(map(repr, splits))}"
            raise ValueError(f"{fault}; pass one of them, such as data[{splits[0]!r}]")
        self._data = data
        self.titles = list(
            data if isinstance(data, Mapping) else getattr(data, "column_names", None) or data.columns
        )

    def values(self, title: str) -> list[Any]:
        """Return the values of a column.

        Raises:
            TypeError: the column is not a list.
        """
        values = entries_of(self._data[title])
        if values is None:
            fault = f"column {title!r} must be a list with one entry per row, got {brief(self._data[title])}"
            raise TypeError(f"{fault}; for a single row pass a list of one")
        return values

    def has(self, name: str) -> bool:
        """Tell whether there is a column, named as for :meth:`RawRows.column`."""
        return head_of(self.titles, name) is not None

    def lacks(self, name: str) -> bool:
        """Tell whether a column is missing."""
        return not self.has(name)

    def line(self, row: int) -> str:
        """Return the number of a row."""
        return f"row {row}"

    def rows(self, titles: Iterable[str]) -> RawRows:
        """Return the rows with only these columns.

        Raises:
            ValueError: there are no rows, or columns share a name or differ in length.
        """
        titles = list(titles)
        check_titles([title for title in self.titles if title in titles])
        columns = {title: self.values(title) for title in titles}
        lengths = {title: len(values) for title, values in columns.items()}
        if len(set(lengths.values())) > 1:
            sizes = ", ".join(f"{title!r} has {length}" for title, length in lengths.items())
            raise ValueError(f"all columns need one entry for each row, but {sizes}; add or remove entries")
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return _table_rows(rows)


def read_table(data: object, first: int = 0) -> RawRows | MemoryTable:
    """Return the rows of a table or of an iterable of dicts.

    Args:
        data: as for :class:`MemoryTable`, or dicts, one per row.
        first: number of the first dict in errors.

    Raises:
        TypeError: the data are not a table, or a row is not a dict.
        ValueError: the data are several tables, or there are no rows.
    """
    data = in_memory(data)
    if isinstance(data, Mapping) or is_table(data):
        return MemoryTable(data)
    rows = entries_of(data)
    if rows is None:
        raise TypeError(f"a table must be a frame, a dict of columns or a list of dicts, got {brief(data)}")
    for number, row in enumerate(rows, first):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} must be a dict with a value for each column, got {brief(row)}")
    return _table_rows([dict(row) for row in rows], first)


def _table_rows(rows: Sequence[dict[str, Any]], first: int = 0) -> RawRows:
    if not rows:
        raise ValueError("there is nothing to score: the table has no rows")
    return RawRows("", rows, range(first, first + len(rows)), in_cells=True)


def check_titles(titles: Sequence[str], where: str = "") -> None:
    """Raise ValueError if columns share a name, since a dict would keep only the last of them."""
    if len(set(titles)) < len(titles):
        raise ValueError(f"{where}several columns have one name, in {', '.join(map(repr, titles))}")


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a file or a table. None stands for a column that is not used."""

    reference: str | None  # one or more per row; None to score candidates by their contexts
    context: str | None
    prediction: str | None = None  # candidates
    samples: str | None = None  # texts that other systems wrote for the same context
    task: str | None = None  # see :data:`mars_score.rows.TASKS`
    unnamed: frozenset[str] = frozenset()  # which of these have default names, as the user gave none

    @classmethod
    def named(cls, names: Mapping[str, str | None]) -> Columns:
        """Return columns with the names that the user gave by what they hold, and default names for the others.

        The name None stands for a column that is not used. Samples and tasks have no default names.

        Raises:
            TypeError: an unknown key.
        """
        for name in names:
            if name not in NAMES:
                raise unknown_name("column", name, NAMES)
        unnamed = frozenset(name for name in _DEFAULT if name not in names)
        return cls(**{**{name: name for name in unnamed}, **names}, unnamed=unnamed)

    @property
    def names(self) -> dict[str, str]:
        """Return the names of the columns that are used, by what they hold."""
        return {holds: name for holds in NAMES if (name := getattr(self, holds))}

    def rows(self, file: RawRows, *, task: str | None = None, readings: Readings | None = None) -> list[Row]:
        """Check the columns of a file with candidates, and return its rows.

        Args:
            file: a file, or some rows of it.
            task: the task of rows without one in the file. If None, the type of the context implies it.
            readings: counts what was read.

        Raises:
            TypeError, ValueError: a column is missing, or a value cannot be used. The line is named.
        """
        return check_rows(**self._values(file, task, readings or Readings()), task=task)

    def examples(
        self, file: RawRows, *, task: str | None = None, readings: Readings | None = None
    ) -> list[Example]:
        """Check the columns of a file without candidates, as :meth:`rows` does."""
        return check_examples(**self._values(file, task, readings or Readings()), task=task)

    def checked(
        self, file: RawRows, kinds: CellKinds, *, task: str | None, readings: Readings
    ) -> tuple[RawRows, list[Any]]:
        """Return the rows of a file, or of a part of it, with one candidate each: unchecked and checked.

        :meth:`found_in` found these columns in the file. ``kinds`` are those of cells in earlier rows. Other
        arguments and errors are as for :meth:`rows`.
        """
        file = self.parse_cells(file, kinds)
        if self.prediction is None:
            return file, self.examples(file, task=task, readings=readings)
        file = file.one_value_each(self.prediction)
        return file, self.rows(file, task=task, readings=readings)

    def _values(self, file: RawRows, task: str | None, readings: Readings) -> dict[str, Any]:
        """Return the arguments of :func:`check_rows`."""
        file = self.parse_cells(file)
        present = self.found_in(file)
        present.check_present(file)
        values: dict[str, Any] = {"references": None, "contexts": None}
        titles: dict[str, str] = {}
        for holds, name in present.names.items():
            argument = f"{holds.removesuffix('s')}s"
            values[argument], titles[argument] = file.column(name, holds), name
        place = PlaceInFile(file=file, names=titles)
        for holds in ("context", "prediction"):
            name = present.names.get(holds, holds)
            if name.removesuffix("s") != holds:
                readings.columns[holds] = name
        if values["contexts"] is not None:
            title = present._question_title(file)
            questions = repeat(None) if title is None else file.values(title)
            values["contexts"] = [
                value if (kind or task) == "dialogue" else with_question(present.context, value, question)
                for value, question, kind in zip(
                    values["contexts"], questions, values.get("tasks") or repeat(None), strict=False
                )
            ]
        if any(map(is_chat, values.get("predictions", ()))):
            values["predictions"], before = split_chats(values["predictions"], place, readings)
            if present.prediction == present.context:
                values["contexts"] = before
        return {**values, "use_context": self.context is not None, "place": place, "readings": readings}

    def _question_title(self, source: RawRows | MemoryTable) -> str | None:
        """Return the column of questions, unless it is used for something else."""
        used = [name.partition(".")[0] for holds, name in self.names.items() if holds != "context"]
        return find_question(source.titles, used)

    def found_in(self, source: RawRows | MemoryTable) -> Columns:
        """Return the columns with the names that they have in a file or a table.

        A default name may be in the plural. If contexts or candidates have no column of a default name, usual
        names are tried: see :func:`usual_titles`.

        Raises:
            ColumnError: several columns could be meant, and the user named none.
        """
        found = {
            holds: find_title(source, name, holds, is_named=holds not in self.unnamed)
            for holds, name in self.names.items()
        }
        names = {holds: title for holds, title in found.items() if title is not None}
        unknown = [
            holds for holds in ("context", "prediction") if holds in self.unnamed and found.get(holds, "") is None
        ]
        names |= _usual_names(unknown, source)
        return replace(self, **names, unnamed=self.unnamed - names.keys())

    def check_present(self, source: RawRows | MemoryTable) -> None:
        """Raise a ColumnError that names all columns missing from a table or the first row of a file."""
        missing = {holds: name for holds, name in self.names.items() if source.lacks(name)}
        if missing:
            raise _missing(source.line(0), missing, source.titles)

    def read(self, source: RawRows | MemoryTable) -> RawRows:
        """Return the rows of a table with only the columns that are used, as :meth:`found_in` found them."""
        if isinstance(source, RawRows):
            return source
        self.check_present(source)
        heads = [head_of(source.titles, name) for name in self.names.values()]
        used = dict.fromkeys([*heads, self._question_title(source)])
        return source.rows(title for title in used if title is not None)

    def parse_cells(self, file: RawRows, kinds: CellKinds | None = None) -> RawRows:
        """Parse cells that hold serialised lists and objects. ``kinds`` are those of cells in earlier rows.

        Raises:
            ValueError: some cells of a column hold lists or objects, and others texts. Both lines are named.
        """
        if not file.in_cells:
            return file
        kinds, rows = kinds or CellKinds(), list(file.rows)
        if file.is_unquoted:
            kinds.tell_of_quotes(file.path)
        names = self.found_in(file).names
        place = PlaceInFile(file=file, names=names)
        remedy = "write the rows as JSON lines, where types are said"
        if not file.path:
            remedy = "pass the columns one by one, as lists of texts"
        for holds, name in names.items():
            values = [get_field(row, name) for row in rows]
            if holds == "task" or not all(isinstance(value, str) or is_missing(value) for value in values):
                continue
            parsed = kinds.parse(values, holds, place, remedy)
            rows = [
                row if value is text else with_field(row, name, value)
                for row, text, value in zip(rows, values, parsed, strict=True)
            ]
        return RawRows(file.path, rows, file.numbers)


def find_title(source: RawRows | MemoryTable, name: str, holds: str, *, is_named: bool) -> str | None:
    """Return the name of a column in a file or a table, or None if there is no such column.

    Default names are also found in the singular or plural. Columns of the first row come before others.

    Args:
        source: the file or the table.
        name: as the user gave it, or a default name.
        holds: what the column holds.
        is_named: whether the user gave the name.

    Raises:
        ColumnError: singular and plural are there, and the user named neither.
    """
    single = name.removesuffix("s")
    names = (name, single if name != single else f"{single}s") if single in _SINGULARS else (name,)
    found = [title for title in names if title in source.titles] or [title for title in names if source.has(title)]
    if len(found) > 1 and not is_named:
        fault = f"columns {found[0]!r} and {found[1]!r} could both hold the {holds.removesuffix('s')}s"
        raise ColumnError(f"{source.line(0)}: {fault}; rename one, or name it", [holds])
    return found[0] if found else None


def _usual_names(unknown: Sequence[str], source: RawRows | MemoryTable) -> dict[str, str]:
    """Find columns of contexts and candidates by their usual names; errors name the line."""

    def holds_list(title: str) -> bool:
        value = next((value for value in source.values(title) if not is_missing(value) and value != ""), None)
        value = value_of_cell(value, "context") if isinstance(value, str) else value
        return not isinstance(value, str) and entries_of(value) is not None

    try:
        return usual_titles(unknown, source.titles, holds_list)
    except ColumnError as error:
        raise ColumnError(f"{source.line(0)}: {error}", error.holds) from None


def _missing(where: str, names: Mapping[str, str], titles: Iterable[str]) -> ColumnError:
    """Make the error for missing columns, whose names are given by what they should hold."""
    lacking, present = (", ".join(map(repr, columns)) for columns in (names.values(), titles))
    are, remedy = ("column", "is"), "add it or name another"
    if len(names) > 1:
        are, remedy = ("columns", "are"), "name them"
    fault = f"{are[0]} {lacking} {are[1]} missing (columns here: {present or 'none'})"
    return ColumnError(f"{where}: {fault}; {remedy}", list(names))
