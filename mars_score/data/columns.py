"""The columns of a file as a command sees them: their names, their values, and the rows made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mars_score.data.checking import check_examples, check_rows
from mars_score.data.forms import Readings, UsualColumns, is_chat, usual_columns
from mars_score.data.frames import CellKinds, get_field, is_missing, unnested, value_of_cell, with_field
from mars_score.data.names import find_question, usual_titles
from mars_score.errors import Place
from mars_score.rows import Example, Row
from mars_score.text import is_blank

_MISSING = object()


@dataclass(frozen=True)
class RecordFile:
    """The rows of a file, or some of them in sequence.

    Attributes:
        path: names the file in errors.
        rows: a dict for each row.
        numbers: the number of lines before each row; 1 for the first row of a CSV file.
        in_cells: whether the rows are from a CSV or TSV file, so that all values are texts.
        is_unquoted: whether they are from a TSV file with quotes as in CSV, which were taken off.
    """

    path: str
    rows: Sequence[dict[str, Any]]
    numbers: Sequence[int]
    in_cells: bool = False
    is_unquoted: bool = False

    def one_value_each(self, name: str) -> RecordFile:
        """Split each row with a list in a column into one row for each entry, with the same number.

        Raises:
            ValueError: a list is empty.
        """
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for index, (row, number) in enumerate(zip(self.rows, self.numbers, strict=True)):
            value = unnested(get_field(row, name))
            value = [value] if is_chat(value) else value
            if value == []:
                raise ValueError(f"{self.cell(name, index)} is an empty list; fill it or leave the row out")
            is_list = isinstance(value, list)
            entries = [with_field(row, name, entry) for entry in value] if is_list else [row]
            rows += entries
            numbers += [number] * len(entries)
        return RecordFile(self.path, rows, numbers, self.in_cells)

    def has(self, name: str) -> bool:
        """Tell whether any row has a column; names as for :meth:`column`."""
        return any(get_field(row, name, _MISSING) is not _MISSING for row in self.rows)

    def column(self, name: str, *, remedy: str) -> list[Any]:
        """Return the values of a column, one for each row; ``doc.question`` is in the objects of a column ``doc``.

        Raises:
            ValueError: a row has no such column; the message ends with ``remedy``.
        """
        values = [get_field(row, name, _MISSING) for row in self.rows]
        for index, (row, value) in enumerate(zip(self.rows, values, strict=True)):
            if value is _MISSING:
                names = ", ".join(map(repr, row)) or "none"
                raise ValueError(f"{self.cell(name, index)} is missing (columns here: {names}); {remedy}")
        return values

    def labels(self, name: str, *, remedy: str) -> list[str]:
        """Return a column of labels, all strings or all integers, as strings; args as for :meth:`column`.

        Raises:
            ValueError: as for :meth:`column`; or a label is blank, or of another type than the first.
        """
        values = self.column(name, remedy=remedy)
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
        """Return file and line of a row."""
        return f"{self.path}:{self.numbers[row] + 1}"

    def cell(self, name: str, row: int) -> str:
        """Return file, line and column of a value."""
        return f"{self.line(row)}: column {name!r}"


@dataclass(frozen=True, kw_only=True)
class PlaceInFile(Place):
    """Names a row by file, line and column."""

    file: RecordFile

    def of(self, column: str, row: int) -> str:
        """Return the name of a row, which is counted from 0."""
        return self.file.cell(self.names.get(column, column), row)


@dataclass(frozen=True)
class Columns:
    """The names of a file's columns, or None for a column that it does not have.

    Attributes:
        reference: column of references, one or more per row; if None, candidates are scored by their contexts.
        context: column of contexts.
        prediction: column of candidates.
        samples: column of texts by others than the candidate's system, written for the same context.
        task: column of tasks; see :data:`mars_score.rows.TASKS`.
        unnamed: those of the columns above that have their default names because the user named none.
    """

    reference: str | None
    context: str | None
    prediction: str | None = None
    samples: str | None = None
    task: str | None = None
    unnamed: frozenset[str] = frozenset()

    @property
    def names(self) -> dict[str, str]:
        """Return the names of the columns by what they hold, such as "reference"."""
        fields = ("reference", "context", "prediction", "samples", "task")
        return {field: name for field in fields if (name := getattr(self, field))}

    def rows(
        self,
        file: RecordFile,
        *,
        task: str | None = None,
        required: bool = False,
        readings: Readings | None = None,
    ) -> list[Row]:
        """Check the columns of a file, candidates included, and return its rows.

        Args:
            file: a file, or some rows of it.
            task: of rows that have none in the file; if None, it follows from the type of the context.
            required: whether the command needs references and contexts, so that no remedy leaves them out.
            readings: counts what was read.

        Raises:
            TypeError, ValueError: a column is missing, or a value cannot be used; the line is named.
        """
        return check_rows(**self._values(file, task, readings or Readings(), required=required), task=task)

    def examples(
        self,
        file: RecordFile,
        *,
        task: str | None = None,
        required: bool = False,
        readings: Readings | None = None,
    ) -> list[Example]:
        """Check the columns of a file that has no candidates; arguments and errors as for :meth:`rows`."""
        return check_examples(**self._values(file, task, readings or Readings(), required=required), task=task)

    def _values(self, file: RecordFile, task: str | None, readings: Readings, *, required: bool) -> dict[str, Any]:
        """Return the arguments of :func:`check_rows`."""
        file = self.parse_cells(file)
        present = self.found_in(file)
        names = present.names
        _check_present(names, file)
        without = {} if required else {"context": ", or pass --no-use-context"}
        if self.prediction and not required:
            without["reference"] = ", or pass --no-references to score all rows without"
        values: dict[str, Any] = {"references": None, "contexts": None}
        titles: dict[str, str] = {}
        for field, name in names.items():
            argument = f"{field.removesuffix('s')}s"
            remedy = f"add it or name another with --{field}-column{without.get(field, '')}"
            values[argument], titles[argument] = file.column(name, remedy=remedy), name
        place = PlaceInFile(file=file, names=titles)
        for field in ("context", "prediction"):
            if field in names and names[field].removesuffix("s") != field:
                readings.columns[field] = names[field]
        usual = usual_columns(
            UsualColumns(values.get("predictions"), values["contexts"]),
            (present.prediction, present.context),
            readings,
            questions=present._questions(file),
            are_dialogues=[
                (kind or task) == "dialogue" for kind in values.get("tasks") or [None] * len(file.rows)
            ],
            place=place,
        )
        values |= {name: column for name, column in usual._asdict().items() if column is not None}
        return {**values, "use_context": self.context is not None, "place": place, "readings": readings}

    def _questions(self, file: RecordFile) -> list[Any] | None:
        """Return the questions of a file's rows, if it has a column of them that is used for nothing else."""
        used = [name.partition(".")[0] for field, name in self.names.items() if field != "context"]
        title = find_question(file.rows[0], used)
        return None if title is None else [row.get(title) for row in file.rows]

    def found_in(self, file: RecordFile) -> Columns:
        """Return the columns under the names that they have in a file.

        A default name may be in the plural. Without a column of contexts one is taken that is called as passages
        usually are; and without one of these, or of candidates, a chat.

        Raises:
            ValueError: several columns could be meant, and the user named none.
        """
        present, names = file.rows[0], dict[str, Any]()
        for field, name in self.names.items():
            single = name.removesuffix("s")
            if single not in ("reference", "context", "prediction", "candidate", "sample", "task"):
                continue
            other = f"{single}s" if name == single else single
            matching = [title for title in (name, other) if title in present]
            if len(matching) > 1 and field in self.unnamed:
                fault = f"columns {matching[0]!r} and {matching[1]!r} could both hold the {field}s"
                raise ValueError(f"{file.line(0)}: {fault}; rename one, or name it with --{field}-column")
            if matching:
                names[field] = matching[0]
        unknown = [field for field in ("context", "prediction") if self._is_unknown(field, names)]
        names |= _usual_names(unknown, file)
        return replace(self, **names, unnamed=self.unnamed - names.keys())

    def _is_unknown(self, field: str, found: Mapping[str, str]) -> bool:
        """Tell whether a column that counts has a default name, and was not found."""
        return field in self.unnamed and getattr(self, field) is not None and field not in found

    def parse_cells(self, file: RecordFile, kinds: CellKinds | None = None) -> RecordFile:
        """Turn cells of a CSV or TSV file that hold lists and objects into these; see :class:`CellKinds`.

        Args:
            file: a file, or some rows of it.
            kinds: of the rows before these.

        Raises:
            ValueError: some cells of a column hold lists or objects, and others texts; both lines are named.
        """
        if not file.in_cells:
            return file
        kinds, rows = kinds or CellKinds(), [dict(row) for row in file.rows]
        if file.is_unquoted:
            kinds.tell_of_quotes(file.path)
        for field, name in self.found_in(file).names.items():
            if name in rows[0] and field != "task":
                remedy = "write the rows as JSON lines, where types are said"
                values = kinds.parse(
                    [row[name] for row in rows], field, PlaceInFile(file=file, names={field: name}), remedy
                )
                for row, value in zip(rows, values, strict=True):
                    row[name] = value
        return RecordFile(file.path, rows, file.numbers)


def _usual_names(unknown: Sequence[str], file: RecordFile) -> dict[str, str]:
    """Return the names of columns that are called as contexts or candidates are elsewhere."""

    def holds_list(title: str) -> bool:
        values = (row.get(title) for row in file.rows)
        value = next((value for value in values if not is_missing(value) and value != ""), None)
        return isinstance(value_of_cell(value, "context") if isinstance(value, str) else value, list)

    try:
        return usual_titles(unknown, list(file.rows[0]), holds_list, "name one with --context-column")
    except ValueError as error:
        raise ValueError(f"{file.line(0)}: {error}") from None


def _check_present(names: dict[str, str], file: RecordFile) -> None:
    """Raise one ValueError that names all missing columns if the first row lacks several."""
    first = file.rows[0]
    missing = {field: name for field, name in names.items() if get_field(first, name, _MISSING) is _MISSING}
    if len(missing) > 1:
        lacking, present = (", ".join(map(repr, columns)) for columns in (missing.values(), first))
        options = ", ".join(f"--{field}-column" for field in missing)
        fault = f"columns {lacking} are missing (columns here: {present or 'none'})"
        raise ValueError(f"{file.line(0)}: {fault}; name them with {options}")
