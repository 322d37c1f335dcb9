"""A run over a file: rows are checked in a first pass, then scored chunk by chunk, and written when all are done.

Model outputs are cached as soon as they are known, so that a stopped run continues when it is started again.
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
from mars_score.data.forms import Readings
from mars_score.data.frames import CellKinds
from mars_score.data.reading import read_chunks
from mars_score.data.writing import Writable
from mars_score.errors import Notice, Notices
from mars_score.findings import LABELS, Finding, findings_of
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
    from mars_score.settings import Settings

Action = Literal["score", "augment"]
# Columns of the output.
ADDED = {
    "score": ("mars", "aspects", "contradicted", "supported", "unsupported", "mars_signature"),
    "augment": ("augmented_references", "augmentations"),
}
RESULTS = "results.jsonl"  # in the run's folder
SHOWN = 3  # number of lowest rows in the summary, and of highest ones; twice as many of each finding
_CHECKED_TOGETHER = 512  # rows of a chunk of the first pass


class Chunk(NamedTuple):
    """Some rows of a file in sequence.

    Attributes:
        file: the rows as in the file, but with one candidate each.
        rows: the same rows, checked; examples if they have no candidates.
    """

    file: RecordFile
    rows: Sequence[Any]


@dataclass(frozen=True)
class RowAction:
    """The work on each row of a run, which can be sent to other processes.

    Attributes:
        name: "score" to score the rows, "augment" to augment their references.
        arguments: of the scorer.
        idf: counted over the whole file, or None if the scorer counts or needs none.
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


def _notices(result: Mapping[str, Any]) -> list[Notice]:
    return [Notice[name] for name in result["notices"]]


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

    def _chunk(self, file: RecordFile, readings: Readings) -> Chunk:
        if self._present is None:
            self._present = self.columns.found_in(file)
        file = self._present.parse_cells(file, self._kinds)
        if self._present.prediction is None:
            return Chunk(file, self._present.examples(file, task=self._task, readings=readings))
        file = file.one_value_each(self._present.prediction)
        return Chunk(file, self._present.rows(file, task=self._task, readings=readings))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


class ScoredRow(NamedTuple):
    """A row of the summary: its score, number in the file from 0, texts, and what was found in its sentences."""

    score: float
    number: int
    row: Row
    findings: tuple[Finding, ...] = ()

    @property
    def label(self) -> str:
        """Return what was found first, one of :data:`mars_score.findings.LABELS`."""
        return self.findings[0].label if self.findings else ""


def _place(scored: ScoredRow) -> tuple[float, int, str]:
    return scored.score, scored.number, scored.row.candidate


@dataclass
class Listed:
    """The rows with one label, of which the summary keeps the lowest and the highest.

    Attributes:
        count: of all of them.
        lowest: those with the lowest scores, by rising score, then by number.
        highest: the ``SHOWN`` rows with the highest scores, in the same order.
    """

    count: int = 0
    lowest: list[ScoredRow] = field(default_factory=list)
    highest: list[ScoredRow] = field(default_factory=list)

    def add(self, rows: Sequence[ScoredRow]) -> None:
        """Add the next rows."""
        self.count += len(rows)
        self.lowest = heapq.nsmallest(2 * SHOWN, [*self.lowest, *rows], key=_place)
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *rows], key=_place)[::-1]


@dataclass
class Summary:
    """The summary of the rows so far.

    Attributes:
        explained: number of lowest rows to keep for explanations.
        scores: of all rows.
        lowest: the rows with the lowest scores, by rising score, then by number.
        by_label: the rows by what was found in them first.
        notices: counted over all rows.
        supported: of the summaries among them.
        unchecked: number of rows of which no contradiction can be told, by the reason.
    """

    explained: int = 0
    scores: array[float] = field(default_factory=lambda: array("d"))
    lowest: list[ScoredRow] = field(default_factory=list)
    by_label: dict[str, Listed] = field(default_factory=lambda: {label: Listed() for label in LABELS})
    notices: Notices = field(default_factory=Notices)
    supported: array[float] = field(default_factory=lambda: array("d"))
    unchecked: Counter[str] = field(default_factory=Counter)
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _contexts: array[int] = field(default_factory=lambda: array("q"))  # their labels, by row

    def add(self, chunk: Chunk, scored: Sequence[RowScore]) -> None:
        """Add the next rows."""
        scores = [row.score for row in scored]
        findings = map(findings_of, chunk.rows, scored)
        rows = list(map(ScoredRow, scores, chunk.file.numbers, chunk.rows, findings))
        self.lowest = heapq.nsmallest(self.explained, [*self.lowest, *rows], key=_place)
        for label, listed in self.by_label.items():
            listed.add([row for row in rows if row.label == label])
        for number, row in zip(chunk.file.numbers, scored, strict=True):
            self.notices.add(number, row.notices)
        self.scores.extend(scores)
        self.supported.extend(row.aspects.supported for row in scored if row.aspects.supported is not None)
        self.unchecked.update(row.unchecked for row in scored if not row.checked)
        self._contexts.extend(self._labels.of([row.prompt for row in chunk.rows]))

    @property
    def mean(self) -> float:
        """Return the mean score."""
        return statistics.mean(self.scores)

    @property
    def faithfulness(self) -> float | None:
        """Return the mean over summaries of the probability that the context says a sentence; None without any."""
        return statistics.mean(self.supported) if self.supported else None

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of the mean by resampling contexts, or None with fewer than ten contexts."""
        return mean_interval(self.scores, self._contexts).ends

    @property
    def shown(self) -> dict[str, list[ScoredRow]]:
        """Return the rows to show, by rising score: by label the lowest, and the highest without findings."""
        others = self.by_label[""]
        few = others.count <= 2 * SHOWN
        shown = {label: listed.lowest for label, listed in self.by_label.items()}
        return shown | {"": others.lowest if few else [*others.lowest[:SHOWN], *others.highest]}


class Run:
    """A run over a file: call :meth:`check`, then :meth:`compute`, then any other method.

    Args:
        path: of the file.
        columns: of the file.
        action: whether to score the rows or to augment their references.
        arguments: of the scorer.
        folder: for the results.
        chunk_size: number of rows scored together.
        progress: called as ``progress(stage, done, total)``.

    Attributes:
        readings: how contexts and candidates were read that are more than texts.

    Raises:
        TypeError, ValueError: an argument of :class:`MarsScorer` is wrong, or its settings do not go with the
            action or the columns.
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
            arguments["store"] = str(folder / "store")  # Model outputs that chunks share are computed once.
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
        self.readings = Readings()  # of the first pass
        self._rows = 0  # number of candidates
        self._reference_counts: set[int] = set()  # different numbers of references of a row
        self._tasks: set[str] = set()
        self._has_samples = False

    def check(self, out: str | None, see: Callable[[Chunk], None] | None = None) -> None:
        """Check all rows, and that ``out`` can hold them, before any model is loaded; also count IDF.

        Args:
            out: the output.
            see: called with the rows, some at a time.
        """
        settings = self._scorer.settings
        counter = _IdfCounter(settings)
        writable = None if out is None else Writable(out, ADDED[self._action.name], self._results.parent)
        for chunk in self._input.chunks(_CHECKED_TOGETHER, self.readings):
            if writable is not None:
                writable.check(chunk.file)
            if see is not None:
                see(chunk)
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
        """Return the cleaned references of a row, which are masked."""
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
        """Yield the rows of the output, with the columns that the run adds."""
        signature = str(self.signature)
        for chunk, results in self._computed():
            for row, result in zip(chunk.file.rows, results, strict=True):
                values = result
                if self._action.name == "score":
                    values = {**result, "mars": result["score"], "mars_signature": signature}
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
        """Yield the rows, some at a time, with their results."""
        with self._results.open("rb") as file:
            for chunk in self._input.chunks(self._chunk_size):
                yield chunk, [json.loads(line) for line in islice(file, len(chunk.rows))]


class _IdfCounter:
    """Counts IDF over texts that come in parts."""

    def __init__(self, settings: Settings) -> None:
        self._tagger = Tagger(settings.language)
        self._lower = settings.config.lower_words
        self._known: set[bytes] = set()  # digests of the texts so far
        self._frequencies: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        new = {key: text for text in texts if (key := digest(text)) not in self._known}
        self._known.update(new)
        for words in self._tagger.words(new.values(), lower=self._lower).values():
            self._frequencies.update(set(words))

    @property
    def idf(self) -> Idf:
        return Idf(len(self._known), self._frequencies)
