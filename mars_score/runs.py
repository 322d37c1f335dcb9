"""Run over a file in three passes: check all rows, compute their results, and read both together.

Model outputs are cached at once, so that a stopped run continues when it is started again.
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
from mars_score.data.columns import Columns, RawRows
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
ADDED = {  # columns of the output, besides those of the input
    "score": ("mars", "aspects", "contradicted", "supported", "unsupported", "mars_signature"),
    "augment": ("augmented_references", "augmentations"),
}
RESULTS = "results.jsonl"  # in the run's folder
_CHECKED_TOGETHER = 512  # rows of a chunk in the first pass


class Chunk(NamedTuple):
    """Some rows of a file in sequence."""

    file: RawRows  # the unchecked rows, with one candidate each
    rows: Sequence[Any]  # the checked rows, or examples if they have no candidates


@dataclass(frozen=True)
class RowAction:
    """The work on each row of a run. It can be pickled for other processes."""

    name: Action  # "score" to score the rows, "augment" to augment their references
    arguments: Mapping[str, Any]  # of the scorer
    idf: Idf | None = None  # counted over the whole file. None if the scorer does not need it.

    def __call__(self, scorer: MarsScorer, rows: Sequence[Any]) -> list[bytes]:
        """Return a line of JSON for each row, with its score or augmented references and its notices."""
        results: list[tuple[dict[str, object], Iterable[Notice]]]
        if self.name == "score":
            results = [(score.to_dict(), score.notices) for score in scorer.row_scores(rows, self.idf)]
        else:
            results = list(map(_augment_result, scorer.augment_rows(rows, self.idf)))
        return [
            json.dumps({**values, "notices": sorted(notice.name for notice in notices)}).encode()
            for values, notices in results
        ]

    def start(self, device: str | None) -> Callable[[Sequence[Any]], list[bytes]]:
        """Make a scorer, and return the function from rows to lines.

        The scorer is on ``device`` unless its arguments name another.
        """
        named = self.arguments.get("device")
        return partial(self, MarsScorer(**{**self.arguments, "device": device if named is None else named}))


def _augment_result(references: Sequence[AugmentedReference]) -> tuple[dict[str, object], Iterable[Notice]]:
    values = {
        "augmented_references": list(dict.fromkeys(text for reference in references for text in reference.texts)),
        "augmentations": [reference.to_dict() for reference in references],
    }
    return values, frozenset().union(*(reference.notices for reference in references))


class InputFile:
    """A file of rows that is read several times and must not change in between.

    Rows without a task in the file have the task ``task``.

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
        """Yield all rows of the file, ``size`` at a time. Count in ``readings`` how they are read.

        Raises:
            TypeError, ValueError: a row cannot be used (its line is named), or the file has changed.
        """
        readings = readings or Readings()
        try:
            for file in read_chunks(self.path, size):
                self._check_state()
                if self._present is None:
                    self._present = self.columns.found_in(file)
                yield Chunk(*self._present.checked(file, self._kinds, task=self._task, readings=readings))
        except (ValueError, TypeError, OSError):
            self._check_state()  # A change of the file explains any other error.
            raise
        self._check_state()

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


@dataclass(frozen=True)
class ResultRow:
    """A row of a file with its result."""

    number: int  # the number of lines before it in the file
    raw: Mapping[str, object]  # the unchecked row, with one candidate
    row: Any  # the checked row, or an example if the file has no candidates
    result: Mapping[str, Any]  # the computed values, ready for JSON

    @property
    def notices(self) -> frozenset[Notice]:
        """Return what was special about the row."""
        return frozenset(Notice[name] for name in self.result["notices"])

    @cached_property
    def score(self) -> RowScore:
        """Return the score, if the action is "score"."""
        return RowScore.from_dict(self.result, self.notices)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings in the candidate's sentences, if the action is "score"."""
        return findings_of(self.row, self.score)


class Reader(Protocol):
    """An object that receives the rows of a run one by one, in order."""

    def add(self, row: ResultRow) -> None:
        """Add the next row."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run."""

    path: str  # of the input file
    columns: Columns  # of the input file
    arguments: Mapping[str, Any]  # of the scorer
    out: str | None = None  # path of the output, or None
    chunk_size: int = 256  # rows computed together
    workers: int = 1  # processes


@dataclass
class Contents:
    """Properties of all rows of a file."""

    # how contexts and candidates were read that are more than texts
    readings: Readings = field(default_factory=Readings)
    rows: int = 0  # number of candidates
    reference_counts: set[int] = field(default_factory=set)  # the distinct numbers of references per row
    tasks: set[str] = field(default_factory=set)  # the distinct tasks
    has_samples: bool = False  # whether any row has samples

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
    """Check all rows and whether the output can hold them, and count IDF. No model is loaded.

    ``folder`` is for the results. ``see`` is called with each chunk of rows.

    Raises:
        TypeError, ValueError: an argument of :class:`MarsScorer` is wrong, its settings do not fit the action or
            the columns, or a row cannot be used (its line is named).
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
    """A file whose rows have been checked, made by :func:`check_file`."""

    file: InputFile
    contents: Contents  # properties of its rows
    scorer: MarsScorer  # computes the results in this process
    action: RowAction  # the work on each row
    results: Path  # the file for the results
    chunk_size: int  # rows computed together

    @property
    def signature(self) -> Signature:
        """Return the signature of the scores. Revisions of models may be unknown until these are used."""
        return make_signature(
            self.scorer.settings,
            self.contents.reference_counts,
            has_samples=self.contents.has_samples,
            tasks=self.contents.tasks,
            device=self.scorer.runtime.device,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in the chunks that are computed together."""
        return self.file.chunks(self.chunk_size)

    def compute(self, workers: int = 1) -> Results:
        """Compute the results of all rows, in this process or in several worker processes."""
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
    """The results of all rows of a file, made by :meth:`CheckedFile.compute`."""

    checked: CheckedFile
    signature: Signature  # of the scores

    def read(self, readers: Iterable[Reader]) -> None:
        """Pass each row to all readers. Rows are not kept."""
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
        """Explain the scores of the given rows."""
        checked = [row.row for row in rows]
        return self.checked.scorer.explain_rows(checked, self.checked.action.idf) if rows else ()


class OutputFile:
    """Writes the rows of a run with the columns that it adds to the file ``out``."""

    def __init__(self, results: Results, out: str, folder: Path) -> None:
        self._action, self._signature = results.checked.action.name, str(results.signature)
        self._out, self._rows = out, LineFile(folder / "rows.jsonl", out)

    def add(self, row: ResultRow) -> None:
        """Write the next row."""
        values = row.result
        if self._action == "score":
            values = {**values, "mars": values["score"], "mars_signature": self._signature}
        self._rows.add(row_line({**row.raw, **{name: values[name] for name in ADDED[self._action]}}))

    def finish(self) -> None:
        """Replace the output, which may be the input, by the complete rows.

        Raises:
            OSError: the output cannot be written. Its path is named.
        """
        write(self._rows, self._out)
