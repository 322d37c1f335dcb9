"""A run over a file: checked in a first pass, scored chunk by chunk, written in place when it is complete.

What models compute is in the store as soon as it is known. So a run that was stopped goes on when it is started
again: what it had done is looked up.
"""

from __future__ import annotations

import heapq
import json
import os
import statistics
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.cache import digest, store_folder
from mars_score.data.files import Columns, RowFile, read_parts
from mars_score.data.validation import Row
from mars_score.data.writers import Writable
from mars_score.errors import NOT_TOLD, Notices, warn
from mars_score.infilling.augmenter import prepare_rows
from mars_score.metrics.idf import Idf
from mars_score.models.signature import Signature, make_signature
from mars_score.models.tagger import WordAnalyser
from mars_score.progress import Progress
from mars_score.scorer import MarsScorer
from mars_score.scoring.result import RowScore
from mars_score.scoring.rows import decode
from mars_score.settings.stages import MaskingSettings
from mars_score.stats.labels import ContextLabels
from mars_score.stats.resampling import mean_interval
from mars_score.workers import Task, Work, in_processes

if TYPE_CHECKING:
    from mars_score.metrics.explanation import Explanation

ADDED = {"score": ("mars",), "augment": ("augmented_references", "augmentations", "samples")}  # columns by task
SHOWN = 3  # lowest, and highest, rows in the summary
_AT_ONCE = 512  # rows of the first pass that are read together


class Part(NamedTuple):
    """Some rows in sequence."""

    file: RowFile  # the rows as read, those with several candidates once for each
    # What each score depends on: candidate, prepared references and context; blank candidates where the input has
    # none.
    rows: Sequence[Row]


class Input:
    """A file of rows and how to read it."""

    def __init__(self, path: str, columns: Columns, masking: MaskingSettings) -> None:
        self.path, self.columns, self._masking = path, columns, masking
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError(
                f"{path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        self._state = self._read_state()

    def parts(self, size: int) -> Iterator[Part]:
        """All rows from the first, ``size`` of the file's at a time; a file that has changed is a ValueError."""
        try:
            for file in read_parts(self.path, size):
                self._check_state()
                yield self._checked(file)
        except (ValueError, TypeError, OSError):
            self._check_state()  # the change is to blame
            raise
        self._check_state()

    def _checked(self, file: RowFile) -> Part:
        if self.columns.prediction is not None:
            file = file.one_value_each(self.columns.prediction)
        return Part(file, prepare_rows(self.columns.rows(file), self._masking))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


class Shown(NamedTuple):
    """A row of the summary: its score, its number in the file from 0, and its texts."""

    score: float
    number: int
    row: Row


@dataclass
class Tally:
    """The summary of the rows so far."""

    explained: int = 0  # rows of the lowest scores to keep, for explanations
    scores: array[float] = field(default_factory=lambda: array("d"))  # of all rows
    # The rows with the lowest scores, by rising score, then by number.
    lowest: list[Shown] = field(default_factory=list)
    highest: list[Shown] = field(default_factory=list)  # ``SHOWN`` rows of the highest scores, likewise
    notices: Notices = field(default_factory=Notices)  # of blank and shortened texts
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _contexts: array[int] = field(default_factory=lambda: array("q"))  # their labels, by row

    def add(self, part: Part, scored: Sequence[RowScore]) -> None:
        """The next rows."""
        scores = [row.score for row in scored]
        shown = list(map(Shown, scores, part.file.numbers, part.rows))
        self.lowest = heapq.nsmallest(max(2 * SHOWN, self.explained), [*self.lowest, *shown])
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *shown])[::-1]
        for number, row in zip(part.file.numbers, scored, strict=True):
            self.notices.add(number, row.notices)
        self.scores.extend(scores)
        self._contexts.extend(self._labels.of([row.context for row in part.rows]))

    @property
    def mean(self) -> float:
        """The mean score."""
        return statistics.mean(self.scores)

    @property
    def interval(self) -> list[float] | None:
        """The 95 % interval of the mean, by resampling contexts; None with fewer than ten contexts."""
        return mean_interval(self.scores, self._contexts).ends

    @property
    def shown(self) -> list[Shown]:
        """Rows to show, by rising score: all if they are few, else the first and the last."""
        count = len(self.scores)
        return self.lowest[:count] if count <= 2 * SHOWN else self.lowest[:SHOWN] + self.highest


class Run:
    """A run over the file ``path``; ``arguments`` are those of the scorer, ``folder`` is for what it computes."""

    def __init__(
        self,
        path: str,
        columns: Columns,
        task: Task,
        arguments: Mapping[str, Any],
        folder: Path,
        chunk_size: int,
        progress: Progress | None = None,
    ) -> None:
        self._task: Task = task
        self._chunk_size = chunk_size
        self._arguments = dict(arguments)
        if store_folder(arguments.get("store")) is None:
            self._arguments["store"] = str(folder / "store")  # what chunks have in common is computed once
        self._with_references = columns.reference is not None
        self._results = folder / "results.jsonl"
        self._scorer = MarsScorer(**self._arguments, progress=progress)
        self._report = self._scorer.runtime.report
        self.settings = self._scorer.settings_for(columns.reference, columns.samples)
        if self.settings.similarity.likelihood_weight != self._scorer.settings.similarity.likelihood_weight:
            warn(NOT_TOLD)
        self._input = Input(path, columns, self.settings.masking)
        masks = self.settings.masking.max_mask_ratio > 0
        self._analyser = WordAnalyser(self._scorer.runtime.store, self.settings.language) if masks else None
        self._rows = 0  # number of candidates
        self._reference_counts: set[int] = set()  # the different numbers of references of a row
        self._idf: Idf | None = None  # over the different references of the file; None: not needed, or of a corpus

    def read(self, out: str | None) -> None:
        """The first pass: check all rows, and that ``out`` can hold them, before any model is loaded."""
        analyser = self._analyser if self.settings.masking.idf_corpus is None else None
        writable = None if out is None else Writable(out, ADDED[self._task])
        seen: set[bytes] = set()  # different references
        frequencies: Counter[str] = Counter()  # in how many of them a word occurs
        for part in self._input.parts(_AT_ONCE):
            if writable is not None:
                writable.check(part.file)
            self._rows += len(part.rows)
            self._reference_counts.update(len(row.references) for row in part.rows)
            if analyser is not None:
                texts = [reference for row in part.rows for reference in row.references]
                new = {key: text for text in texts if (key := digest(text)) not in seen}
                seen.update(new)
                for analysis in analyser.analyse(new.values()).values():
                    frequencies.update(set(analysis.lower_words))
            self._report("read", self._rows, 0)
        self._report("read", self._rows, self._rows)
        if analyser is not None:
            self._idf = Idf(len(seen), frequencies)

    @property
    def signature(self) -> Signature:
        """All that the scores depend on besides the texts."""
        origin = "given" if self._input.columns.samples else ""
        return make_signature(self.settings, self._reference_counts, origin)

    def do(self, workers: int = 1) -> None:
        """Do the work on all rows, in this process or in several."""
        work = Work(self._task, self._arguments, self._idf, self._with_references)
        chunks = (part.rows for part in self._input.parts(self._chunk_size))
        self._report(self._task, 0, self._rows)
        if workers > 1:
            results = in_processes(work, chunks, workers)
        else:
            results = chain.from_iterable(work.do(self._scorer, rows) for rows in chunks)
        with self._results.open("wb") as file:
            for done, result in enumerate(results, 1):
                file.write(result + b"\n")
                self._report(self._task, done, self._rows)

    def results(self) -> Iterator[tuple[Part, list[Any]]]:
        """The rows, some at a time, with their :class:`RowScore`, or their new columns and notices."""
        read = decode if self._task == "score" else json.loads
        with self._results.open("rb") as file:
            for part in self._input.parts(self._chunk_size):
                yield part, [read(line) for line in islice(file, len(part.rows))]

    def explain(self, rows: Sequence[Row]) -> tuple[Explanation, ...]:
        """Why some rows have their scores."""
        if not rows:
            return ()
        return self._scorer.explain_rows(rows, self._idf, with_references=self._with_references)

    def tally(self, explained: int = 0) -> Tally:
        """The summary of the scores, with the ``explained`` lowest rows."""
        tally = Tally(explained)
        for part, scored in self.results():
            tally.add(part, scored)
        return tally

    def output(self) -> Iterator[dict[str, Any]]:
        """The rows as they are to be written, with what the work adds to them."""
        for part, results in self.results():
            for row, result in zip(part.file.rows, results, strict=True):
                yield {**row, **({"mars": result.score} if self._task == "score" else result[0])}

    def augment_notices(self) -> Notices:
        """Which rows' contexts and references were read in part."""
        notices = Notices()
        for part, results in self.results():
            for number, (_, of_row) in zip(part.file.numbers, results, strict=True):
                notices.add(number, of_row)
        return notices
