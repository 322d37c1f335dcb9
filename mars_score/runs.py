"""A run over a file in three passes: rows are checked, computed, and read with their results.

Model outputs are cached as soon as they are known, so that a stopped run continues when it is started again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from mars_score.atomic import naming
from mars_score.cache import store_folder
from mars_score.data.columns import Columns, Records
from mars_score.data.forms import Readings
from mars_score.data.frames import CellKinds
from mars_score.data.reading import read_chunks
from mars_score.data.writing import LineFile, Writable, row_line, write
from mars_score.errors import Notice
from mars_score.explanation import Explanation
from mars_score.findings import Finding, findings_of
from mars_score.metrics.paper import Idf
from mars_score.progress import Progress
from mars_score.rows import AugmentedReference, Example, Row, RowScore
from mars_score.scorer import MarsScorer
from mars_score.signature import Signature, make_signature
from mars_score.workers import in_processes

Action = Literal["score", "augment"]
# Columns of the output.
ADDED = {
    "score": ("mars", "aspects", "contradicted", "supported", "unsupported", "mars_signature"),
    "augment": ("augmented_references", "augmentations"),
}
RESULTS = "results.jsonl"  # in the run's folder
_CHECKED_TOGETHER = 512  # rows of a chunk of the first pass


class Chunk(NamedTuple):
    """Some rows of a file in sequence.

    Attributes:
        file: the rows as in the file, but with one candidate each.
        rows: the same rows, checked; examples if they have no candidates.
    """

    file: Records
    rows: Sequence[Any]


@dataclass(frozen=True)
class RowAction:
    """The work on each row of a run, which can be sent to other processes.

    Attributes:
        name: "score" to score the rows, "augment" to augment their references.
        arguments: of the scorer.
        idf: counted over the whole file; None if the scorer needs none of it.
    """

    name: Action
    arguments: Mapping[str, Any]
    idf: Idf | None = None

    def __call__(self, scorer: MarsScorer, rows: Sequence[Any]) -> list[bytes]:
        """Return a line of JSON for each row: its score or its augmented references, and its notices."""
        results: list[tuple[dict[str, Any], Iterable[Notice]]]
        if self.name == "score":
            results = [(score.to_dict(), score.notices) for score in scorer.row_scores(rows, self.idf)]
        else:
            results = list(map(_augment_result, scorer.augment_rows(rows, self.idf)))
        return [
            json.dumps({**values, "notices": sorted(notice.name for notice in notices)}).encode()
            for values, notices in results
        ]

    def start(self, device: str | None) -> Callable[[Sequence[Any]], list[bytes]]:
        """Return the function from rows to lines, with a scorer on ``device`` unless its arguments name one."""
        arguments = {**self.arguments}
        if device is not None and arguments.get("device") is None:
            arguments["device"] = device
        return partial(self, MarsScorer(**arguments))


def _augment_result(references: Sequence[AugmentedReference]) -> tuple[dict[str, Any], Iterable[Notice]]:
    values = {
        "augmented_references": list(dict.fromkeys(text for reference in references for text in reference.texts)),
        "augmentations": [reference.to_dict() for reference in references],
    }
    return values, frozenset().union(*(reference.notices for reference in references))


class InputFile:
    """A file of rows that is read several times and must not change in between.

    Args:
        path: of the file.
        columns: of the file.
        task: of rows that have none in the file.

    Raises:
        ValueError: the file can be read only once.
    """

    def __init__(self, path: str, columns: Columns, task: str | None) -> None:
        self.path, self.columns, self._task = path, columns, task
        self._present: Columns | None = None  # the columns under the names that they have in the file
        self._kinds = CellKinds()
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError(
                f"{path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        self._state = self._read_state()

    def chunks(self, size: int, readings: Readings | None = None) -> Iterator[Chunk]:
        """Yield all rows from the first on, ``size`` of the file's at a time; count how they are read.

        Raises:
            TypeError, ValueError: a row cannot be used (its line is named), or the file has changed.
        """
        try:
            for file in read_chunks(self.path, size):
                self._check_state()
                yield self._chunk(file, readings or Readings())
        except (ValueError, TypeError, OSError):
            self._check_state()  # If the file has changed, that is to blame.
            raise
        self._check_state()

    def _chunk(self, file: Records, readings: Readings) -> Chunk:
        if self._present is None:
            self._present = self.columns.found_in(file)
        return Chunk(*self._present.checked(file, self._kinds, task=self._task, readings=readings))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


@dataclass(frozen=True)
class ResultRow:
    """A row of a file with its result.

    Attributes:
        number: of the lines before it in the file.
        record: the row as in the file, but with one candidate.
        row: the same, checked; an example if the file has no candidates.
        result: what was computed for it, as plain data.
    """

    number: int
    record: Mapping[str, Any]
    row: Any
    result: Mapping[str, Any]

    @property
    def notices(self) -> frozenset[Notice]:
        """Return what was special about the row."""
        return frozenset(Notice[name] for name in self.result["notices"])

    @cached_property
    def score(self) -> RowScore:
        """Return the score of a row that was scored."""
        return RowScore.from_dict(self.result, self.notices)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Return what was found in the sentences of a row that was scored."""
        return findings_of(self.row, self.score)


class Reader(Protocol):
    """What takes the rows of a run one by one, in their order."""

    def add(self, row: ResultRow) -> None:
        """Take the next row."""


@dataclass(frozen=True)
class RunOptions:
    """What is asked of a run.

    Attributes:
        path: of the file.
        columns: of the file.
        arguments: of the scorer.
        out: the output, or None for none.
        chunk_size: number of rows computed together.
        workers: number of processes.
    """

    path: str
    columns: Columns
    arguments: Mapping[str, Any]
    out: str | None = None
    chunk_size: int = 256
    workers: int = 1


@dataclass
class Contents:
    """What the rows of a file are like.

    Attributes:
        readings: how contexts and candidates were read that are more than texts.
        rows: number of candidates.
        reference_counts: different numbers of references of a row.
        tasks: of the rows.
        has_samples: whether any row has samples.
    """

    readings: Readings = field(default_factory=Readings)
    rows: int = 0
    reference_counts: set[int] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    has_samples: bool = False

    def add(self, rows: Sequence[Row | Example]) -> None:
        """Add the next rows."""
        self.rows += len(rows)
        self.reference_counts.update(len(row.references) for row in rows)
        self.tasks.update(row.task for row in rows)
        self.has_samples |= any(row.samples for row in rows)


def check_file(
    action: Action,
    options: RunOptions,
    folder: Path,
    progress: Progress | None = None,
    see: Callable[[Chunk], None] | None = None,
) -> CheckedFile:
    """Check all rows, and that the output can hold them, before any model is loaded; also count IDF.

    Args:
        action: whether to score the rows or to augment their references.
        options: of the run.
        folder: for the results.
        progress: called as ``progress(stage, done, total)``.
        see: called with the rows, some at a time.

    Raises:
        TypeError, ValueError: an argument of :class:`MarsScorer` is wrong, its settings do not go with the action
            or the columns, or a row cannot be used (its line is named).
    """
    arguments = dict(options.arguments)
    if store_folder(arguments.get("store")) is None:
        arguments["store"] = str(folder / "store")  # Model outputs that chunks share are computed once.
    scorer = MarsScorer(**arguments, progress=progress)
    columns = options.columns
    scorer.check_inputs(has_references=bool(columns.reference), has_samples=bool(columns.samples))
    if action == "augment":
        scorer.variant.check_masks()
    file, contents = InputFile(options.path, columns, scorer.settings.task), Contents()
    writable = None if options.out is None else Writable(options.out, ADDED[action], folder)
    counter = scorer.variant.idf_counter()
    for chunk in file.chunks(_CHECKED_TOGETHER, contents.readings):
        if writable is not None:
            writable.check(chunk.file)
        if see is not None:
            see(chunk)
        if counter is not None:
            counter.add(chunk.rows)
        contents.add(chunk.rows)
        scorer.runtime.report("read", contents.rows, 0)
    if writable is not None:
        writable.finish()
    scorer.runtime.report("read", contents.rows, contents.rows)
    row_action = RowAction(action, arguments, None if counter is None else counter.idf)
    return CheckedFile(file, contents, scorer, row_action, folder / RESULTS, options.chunk_size)


@dataclass(frozen=True)
class CheckedFile:
    """A file of which all rows can be used; :func:`check_file` makes it.

    Attributes:
        file: the file.
        contents: what its rows are like.
        scorer: computes the results in this process.
        action: the work on each row.
        results: path of the file for the results.
        chunk_size: number of rows computed together.
    """

    file: InputFile
    contents: Contents
    scorer: MarsScorer
    action: RowAction
    results: Path
    chunk_size: int

    @property
    def signature(self) -> Signature:
        """Return all that scores depend on besides the texts; revisions may be unknown until models are used."""
        return make_signature(
            self.scorer.settings,
            self.contents.reference_counts,
            has_samples=self.contents.has_samples,
            tasks=self.contents.tasks,
            device=self.scorer.runtime.device,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, those that are computed together at a time."""
        return self.file.chunks(self.chunk_size)

    def compute(self, workers: int = 1) -> Results:
        """Compute the results of all rows, in this process or in several."""
        chunks, report = (chunk.rows for chunk in self.chunks()), self.scorer.runtime.report
        report(self.action.name, 0, self.contents.rows)
        if workers > 1:
            results = in_processes(self.action.start, chunks, workers)
        else:
            results = chain.from_iterable(self.action(self.scorer, rows) for rows in chunks)
        with naming(self.results), self.results.open("wb") as file:
            for done, result in enumerate(results, 1):
                file.write(result + b"\n")
                report(self.action.name, done, self.contents.rows)
        return Results(self, self.signature)


@dataclass(frozen=True)
class Results:
    """The results of all rows of a file; :meth:`CheckedFile.compute` makes them.

    Attributes:
        checked: the file.
        signature: all that the scores depend on besides the texts.
    """

    checked: CheckedFile
    signature: Signature

    def read(self, readers: Iterable[Reader]) -> None:
        """Give each row to all readers; rows are not kept."""
        readers = list(readers)
        for row in self:
            for reader in readers:
                reader.add(row)

    def __iter__(self) -> Iterator[ResultRow]:
        with self.checked.results.open("rb") as file:
            for chunk in self.checked.chunks():
                results = map(json.loads, islice(file, len(chunk.rows)))
                rows = zip(chunk.file.numbers, chunk.file.rows, chunk.rows, results, strict=True)
                yield from starmap(ResultRow, rows)

    @property
    def readings(self) -> Readings:
        """Return how contexts and candidates were read that are more than texts."""
        return self.checked.contents.readings

    def explain(self, rows: Sequence[ResultRow]) -> tuple[Explanation, ...]:
        """Explain the scores of some rows."""
        checked = [row.row for row in rows]
        return self.checked.scorer.explain_rows(checked, self.checked.action.idf) if rows else ()


class OutputFile:
    """Writes the rows with the columns that a run adds, and puts them in place when all are there.

    Args:
        results: of the run.
        out: the output.
        folder: of the run.
    """

    def __init__(self, results: Results, out: str, folder: Path) -> None:
        self._action, self._signature = results.checked.action.name, str(results.signature)
        self._out, self._rows = out, LineFile(folder / "rows.jsonl", out)

    def add(self, row: ResultRow) -> None:
        """Write the next row."""
        values = row.result
        if self._action == "score":
            values = {**values, "mars": values["score"], "mars_signature": self._signature}
        self._rows.add(row_line({**row.record, **{name: values[name] for name in ADDED[self._action]}}))

    def finish(self) -> None:
        """Put the rows in place; they may replace the input.

        Raises:
            OSError: the output cannot be written; its path is named.
        """
        write(self._rows, self._out)
