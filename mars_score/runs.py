"""A run over a file: checked in a first pass, scored chunk by chunk, written to its target when it is complete.

Model outputs are in the cache as soon as they are known, so that a run that was stopped goes on when it is started
again.
"""

from __future__ import annotations

import heapq
import json
import os
import statistics
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from mars_score.atomic import naming
from mars_score.cache import digest, store_folder
from mars_score.data.columns import Columns, RecordFile
from mars_score.data.frames import CellKinds
from mars_score.data.reading import read_chunks
from mars_score.data.writing import Writable
from mars_score.errors import Notice, Notices
from mars_score.metrics.paper import Idf, PaperConfig
from mars_score.models.tagger import Tagger
from mars_score.progress import Progress
from mars_score.rows import AugmentedReference, Example, Row, RowScore
from mars_score.scorer import MarsScorer
from mars_score.signature import Signature, make_signature
from mars_score.stats.resampling import ContextLabels, mean_interval
from mars_score.workers import in_processes

if TYPE_CHECKING:
    from mars_score.explanation import Explanation

Action = Literal["score", "augment"]
# Columns of the output.
ADDED = {"score": ("mars", "aspects"), "augment": ("augmented_references", "augmentations")}
RESULTS = "results.jsonl"  # in the run's folder
SHOWN = 3  # lowest, and highest, rows in the summary
_CHECKED_TOGETHER = 512  # rows of the first pass


class Chunk(NamedTuple):
    """Some rows of a file in sequence.

    Attributes:
        file: the rows as they stand there, those with several candidates once for each.
        rows: the same rows, checked; examples where they are to be augmented.
    """

    file: RecordFile
    rows: Sequence[Any]


@dataclass(frozen=True)
class RowAction:
    """What is to be done with rows; it can be sent to other processes.

    Attributes:
        name: score them, or augment their references.
        arguments: of the scorer.
        idf: counted over a whole file; None: the scorer counts, or needs none.
    """

    name: Action
    arguments: Mapping[str, Any]
    idf: Idf | None = None

    def __call__(self, scorer: MarsScorer, rows: Sequence[Any]) -> list[bytes]:
        """Return a line of JSON for each row: its score or its augmented references, and its notices."""
        if self.name == "score":
            results = [_score_result(score) for score in scorer.row_scores(rows, self.idf)]
        else:
            results = [_augment_result(references) for references in scorer.augment_rows(rows, self.idf)]
        return [json.dumps(result).encode() for result in results]

    def start(self, device: str | None) -> Callable[[Sequence[Any]], list[bytes]]:
        """Return what computes the lines of some rows, with a scorer on a device of its own if none is named."""
        arguments = {**self.arguments}
        if device is not None and arguments.get("device") is None:
            arguments["device"] = device
        return partial(self, MarsScorer(**arguments))


def _score_result(score: RowScore) -> dict[str, Any]:
    return {**score.to_dict(), "notices": sorted(notice.name for notice in score.notices)}


def _augment_result(references: Sequence[AugmentedReference]) -> dict[str, Any]:
    notices: frozenset[Notice] = frozenset().union(*(reference.notices for reference in references))
    return {
        "augmented_references": list(dict.fromkeys(text for reference in references for text in reference.texts)),
        "augmentations": [reference.to_dict() for reference in references],
        "notices": sorted(notice.name for notice in notices),
    }


def _notices(result: Mapping[str, Any]) -> list[Notice]:
    return [Notice[name] for name in result["notices"]]


class InputFile:
    """A file of rows that is read several times, and must not change meanwhile.

    Args:
        path: of the file.
        columns: their names.
        task: of rows whose column says none.

    Raises:
        ValueError: the file can be read only once.
    """

    def __init__(self, path: str, columns: Columns, task: str | None) -> None:
        self.path, self.columns, self._task = path, columns, task
        self._found: Columns | None = None  # the columns as the file names them
        self._kinds = CellKinds()
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError(
                f"{path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        self._state = self._read_state()

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all rows from the first on, ``size`` of the file's at a time.

        Raises:
            TypeError, ValueError: a row cannot be used, named with its line; or the file has changed.
        """
        try:
            for file in read_chunks(self.path, size):
                self._check_state()
                yield self._chunk(file)
        except (ValueError, TypeError, OSError):
            self._check_state()  # Then the change is to blame.
            raise
        self._check_state()

    def _chunk(self, file: RecordFile) -> Chunk:
        if self._found is None:
            self._found = self.columns.found_in(file)
        file = self._found.parse_cells(file, self._kinds)
        if self._found.prediction is None:
            return Chunk(file, self._found.examples(file, task=self._task))
        file = file.one_value_each(self._found.prediction)
        return Chunk(file, self._found.rows(file, task=self._task))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


class ScoredRow(NamedTuple):
    """A row of the summary: its score, its number in the file from 0, and its texts."""

    score: float
    number: int
    row: Row


def _place(scored: ScoredRow) -> tuple[float, int, str]:
    return scored.score, scored.number, scored.row.candidate


@dataclass
class Summary:
    """The summary of the rows so far.

    Attributes:
        explained: rows of the lowest scores to keep, for explanations.
        scores: of all rows.
        lowest: the rows with the lowest scores, by rising score, then by number.
        highest: ``SHOWN`` rows with the highest scores, likewise.
        notices: of blank and shortened texts.
    """

    explained: int = 0
    scores: array[float] = field(default_factory=lambda: array("d"))
    lowest: list[ScoredRow] = field(default_factory=list)
    highest: list[ScoredRow] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _contexts: array[int] = field(default_factory=lambda: array("q"))  # their labels, by row

    def add(self, chunk: Chunk, scored: Sequence[RowScore]) -> None:
        """Add the next rows."""
        scores = [row.score for row in scored]
        rows = list(map(ScoredRow, scores, chunk.file.numbers, chunk.rows))
        self.lowest = heapq.nsmallest(max(2 * SHOWN, self.explained), [*self.lowest, *rows], key=_place)
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *rows], key=_place)[::-1]
        for number, row in zip(chunk.file.numbers, scored, strict=True):
            self.notices.add(number, row.notices)
        self.scores.extend(scores)
        self._contexts.extend(self._labels.of([row.context for row in chunk.rows]))

    @property
    def mean(self) -> float:
        """Return the mean score."""
        return statistics.mean(self.scores)

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of the mean, by resampling contexts; None with fewer than ten contexts."""
        return mean_interval(self.scores, self._contexts).ends

    @property
    def shown(self) -> list[ScoredRow]:
        """Return rows to show, by rising score: all if they are few, else the first and the last."""
        count = len(self.scores)
        return self.lowest[:count] if count <= 2 * SHOWN else self.lowest[:SHOWN] + self.highest


class Run:
    """A run over a file: first :meth:`check`, then :meth:`compute`, then any of the others.

    Args:
        path: of the file.
        columns: their names.
        action: what is done with the rows.
        arguments: of the scorer.
        folder: for what the run computes.
        chunk_size: rows scored together.
        progress: called as ``progress(stage, done, total)``.

    Raises:
        TypeError, ValueError: as of :class:`MarsScorer`; or rows with these columns cannot be scored (augmented)
            with these settings.
    """

    def __init__(
        self,
        path: str,
        columns: Columns,
        action: Action,
        arguments: Mapping[str, Any],
        folder: Path,
        chunk_size: int,
        progress: Progress | None = None,
    ) -> None:
        arguments = dict(arguments)
        if store_folder(arguments.get("store")) is None:
            arguments["store"] = str(folder / "store")  # What chunks have in common is computed once.
        self._scorer = MarsScorer(**arguments, progress=progress)
        settings = self._scorer.settings
        self._scorer.check_inputs(has_references=bool(columns.reference), has_samples=bool(columns.samples))
        if action == "augment":
            settings.check_masks()
        self._action = RowAction(action, arguments)
        self._input = InputFile(path, columns, settings.task)
        self._chunk_size = chunk_size
        self._results = folder / RESULTS
        self._report = self._scorer.runtime.report
        self._idf: Idf | None = None  # of the file's references, or of the corpus
        self._rows = 0  # number of candidates
        self._reference_counts: set[int] = set()  # different numbers of references of a row
        self._tasks: set[str] = set()
        self._has_samples = False

    def check(self, out: str | None) -> None:
        """Check all rows, and that ``out`` can hold them, before any model is loaded, and count IDF."""
        settings = self._scorer.settings
        counter = _IdfCounter(Tagger(settings.language))
        writable = None if out is None else Writable(out, ADDED[self._action.name], self._results.parent)
        for chunk in self._input.chunks(_CHECKED_TOGETHER):
            if writable is not None:
                writable.check(chunk.file)
            if settings.config.counts_idf:
                counter.add(reference for row in chunk.rows for reference in self._references_of(row))
            self._rows += len(chunk.rows)
            self._reference_counts.update(len(row.references) for row in chunk.rows)
            self._tasks.update(row.task for row in chunk.rows)
            self._has_samples |= any(row.samples for row in chunk.rows)
            self._report("read", self._rows, 0)
        if writable is not None:
            writable.finish()
        self._report("read", self._rows, self._rows)
        if settings.config.masks:
            counter.add(cast(PaperConfig, settings.config).idf_corpus or ())
            self._idf = counter.idf

    def _references_of(self, row: Row | Example) -> Sequence[str]:
        """Return the references of a row as they are masked."""
        if isinstance(row, Row):
            return self._scorer.prepare(row)[0].references
        return self._scorer.prepare_example(row).references

    @property
    def signature(self) -> Signature:
        """Return all that the scores depend on besides the texts."""
        return make_signature(
            self._scorer.settings,
            self._reference_counts,
            has_samples=self._has_samples,
            tasks=self._tasks,
            device=self._scorer.runtime.device,
        )

    def compute(self, workers: int = 1) -> None:
        """Compute the results of all rows, in this process or in several."""
        action = RowAction(self._action.name, self._action.arguments, self._idf)
        chunks = (chunk.rows for chunk in self._input.chunks(self._chunk_size))
        self._report(action.name, 0, self._rows)
        if workers > 1:
            results = in_processes(action.start, chunks, workers)
        else:
            results = chain.from_iterable(action(self._scorer, rows) for rows in chunks)
        with naming(self._results), self._results.open("wb") as file:
            for done, result in enumerate(results, 1):
                file.write(result + b"\n")
                self._report(action.name, done, self._rows)

    def scores(self) -> Iterator[tuple[Chunk, list[RowScore]]]:
        """Yield the rows, some at a time, with their scores."""
        for chunk, results in self._computed():
            yield chunk, [RowScore.from_dict(result, _notices(result)) for result in results]

    def output(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as they are to be written, with the columns that the run adds."""
        for chunk, results in self._computed():
            for row, result in zip(chunk.file.rows, results, strict=True):
                values = {**result, "mars": result["score"]} if self._action.name == "score" else result
                yield {**row, **{name: values[name] for name in ADDED[self._action.name]}}

    def summary(self, explained: int = 0) -> Summary:
        """Summarise the scores, with the ``explained`` lowest rows."""
        summary = Summary(explained)
        for chunk, scored in self.scores():
            summary.add(chunk, scored)
        return summary

    def notices(self) -> Notices:
        """Count the rows that were treated in a special way."""
        notices = Notices()
        for chunk, results in self._computed():
            for number, result in zip(chunk.file.numbers, results, strict=True):
                notices.add(number, _notices(result))
        return notices

    def explain(self, rows: Sequence[Row]) -> tuple[Explanation, ...]:
        """Explain the scores of some rows."""
        return self._scorer.explain_rows(rows, self._idf) if rows else ()

    def _computed(self) -> Iterator[tuple[Chunk, list[dict[str, Any]]]]:
        """Yield the rows, some at a time, with what was computed for them."""
        with self._results.open("rb") as file:
            for chunk in self._input.chunks(self._chunk_size):
                yield chunk, [json.loads(line) for line in islice(file, len(chunk.rows))]


class _IdfCounter:
    """Counts IDF over texts that come in parts."""

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger
        self._known: set[bytes] = set()  # digests of the texts
        self._frequencies: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        new = {key: text for text in texts if (key := digest(text)) not in self._known}
        self._known.update(new)
        for words in self._tagger.lower_words(new.values()).values():
            self._frequencies.update(set(words))

    @property
    def idf(self) -> Idf:
        return Idf(len(self._known), self._frequencies)
