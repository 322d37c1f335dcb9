"""A run over a file: checked in a first pass, scored chunk by chunk, written in place when it is complete.

What models compute is in the store as soon as it is known. So a run that was stopped goes on when it is started
again: what it had done is looked up.
"""

from __future__ import annotations

import heapq
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.data.files import Columns
from mars_score.data.validation import Row
from mars_score.errors import NOT_TOLD, Notices, warn
from mars_score.models.signature import Signature, make_signature
from mars_score.runs.input import SCORE_COLUMN, Input, Part, Survey, survey
from mars_score.runs.workers import Work, Worker, in_processes
from mars_score.scorer import MarsScorer
from mars_score.scoring.result import mean_of
from mars_score.scoring.rows import ScoredRow, decode, flags_of
from mars_score.stats.labels import ContextLabels
from mars_score.stats.means import mean_interval
from mars_score.store.results import store_folder
from mars_score.store.runtime import Progress

if TYPE_CHECKING:
    from mars_score.scoring.explain.explanation import Explanation


SHOWN = 3  # lowest, and highest, rows in the summary


@dataclass(frozen=True, order=True)
class Shown:
    """A row of the summary: its score, its number in the file from 0, and its texts."""

    score: float
    number: int
    row: Row


@dataclass
class Tally:
    """The summary of the rows so far."""

    explained: int = 0  # rows of the lowest scores to keep, for explanations
    rows: int = 0  # their number
    # The rows with the lowest scores, by rising score, then by number.
    lowest: list[Shown] = field(default_factory=list)
    highest: list[Shown] = field(default_factory=list)  # ``SHOWN`` rows of the highest scores, likewise
    notices: Notices = field(default_factory=Notices)  # of blank and shortened texts
    _total: Fraction = Fraction()
    _labels: ContextLabels = field(default_factory=ContextLabels)
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _contexts: array[int] = field(default_factory=lambda: array("q"))

    def add(self, part: Part, scored: list[ScoredRow]) -> None:
        """The next rows."""
        scores = [row.score.score for row in scored]
        shown = list(map(Shown, scores, part.file.numbers, part.rows))
        self.rows += len(shown)
        self.lowest = heapq.nsmallest(max(2 * SHOWN, self.explained), [*self.lowest, *shown])
        self.highest = heapq.nlargest(SHOWN, [*self.highest, *shown])[::-1]
        self.notices.add(part.file.numbers, flags_of(scored))
        self._total = sum(map(Fraction, scores), self._total)
        self._scores.extend(scores)
        self._contexts.extend(self._labels.of([row.context for row in part.rows]))

    @property
    def mean(self) -> float:
        """The mean score; 0.0 for no rows."""
        return mean_of(self._total, self.rows)

    @property
    def interval(self) -> list[float] | None:
        """The 95 % interval of the mean, by resampling contexts; None with fewer than ten contexts."""
        return mean_interval(self._scores, self._contexts).ends

    @property
    def shown(self) -> list[Shown]:
        """Rows to show, by rising score: all if they are few, else the first and the last."""
        return self.lowest[: self.rows] if self.rows <= 2 * SHOWN else self.lowest[:SHOWN] + self.highest


Result = TypeVar("Result")
AUGMENT_COLUMNS = ("augmented_references", "augmentations", "samples")


class Run:
    """A run; ``chunk_size`` rows are scored together."""

    def __init__(
        self,
        path: str,
        columns: Columns,
        work: Work,
        folder: Path,
        chunk_size: int,
        progress: Progress | None = None,
    ) -> None:
        self._chunk_size = chunk_size
        self._report: Progress = progress or (lambda stage, done, total: None)
        arguments = dict(work.arguments)
        if store_folder(arguments.get("store")) is None:
            arguments["store"] = str(folder / "store")  # what chunks have in common is computed once
        self._work = replace(work, arguments=arguments, with_references=columns.reference is not None)
        self._results = folder / "results.jsonl"
        self.scorer = MarsScorer(**arguments, progress=progress)
        self.settings = self.scorer.settings_for(columns.reference, columns.sample)
        if self.settings.similarity.likelihood_weight != self.scorer.settings.similarity.likelihood_weight:
            warn(NOT_TOLD)
        self._rows = Input(path, columns, self.settings.masking)
        masks = self.settings.masking.max_mask_ratio > 0
        self._analyser = WordAnalyser(self.scorer.runtime.store, self.settings.language) if masks else None
        self.survey = Survey()

    def read(self, out: str | None) -> None:
        """The first pass: check all rows, and that ``out`` can hold them, before any model is loaded."""
        analyser = self._analyser if self.settings.masking.idf_corpus is None else None
        added = [SCORE_COLUMN] if self._work.task == "score" else AUGMENT_COLUMNS
        self.survey = survey(self._rows, out=out, added=added, analyser=analyser, report=self._report)
        self._work = replace(self._work, idf=self.survey.idf)

    @property
    def signature(self) -> Signature:
        """All that the scores depend on besides the texts."""
        pipeline = self._analyser.pipeline if self._analyser else None
        origin = "given" if self._rows.columns.sample else ""
        return make_signature(self.settings, pipeline, self.survey.reference_counts, origin)

    def do(self, workers: int = 1) -> None:
        """Do the work on all rows, in this process or in several."""
        chunks = (part.rows for part in self._parts())
        stage, count = self._work.task, self.survey.rows
        self._report(stage, 0, count)
        if workers > 1:
            results = in_processes(self._work, chunks, workers)
        else:
            results = chain.from_iterable(map(Worker(self._work, self._report), chunks))
        with self._results.open("wb") as file:
            for done, result in enumerate(results, 1):
                file.write(result + b"\n")
                self._report(stage, done, count)

    def scored(self) -> Iterator[tuple[Part, list[ScoredRow]]]:
        """The rows, some at a time, with their scores."""
        return self._with_results(decode)

    def explain(self, rows: Sequence[Row]) -> tuple[Explanation, ...]:
        """Why some rows have their scores."""
        if not rows:
            return ()
        return self.scorer.explain_rows(rows, self.survey.idf, with_references=self._work.with_references)

    def tally(self, explained: int = 0) -> Tally:
        """The summary of the scores, with the ``explained`` lowest rows."""
        tally = Tally(explained)
        for part, scored in self.scored():
            tally.add(part, scored)
        return tally

    def output(self) -> Iterator[dict[str, Any]]:
        """The rows as they are to be written, with what the work adds to them."""
        if self._work.task == "score":
            for part, scored in self.scored():
                for row, result in zip(part.file.rows, scored, strict=True):
                    yield {**row, SCORE_COLUMN: result.score.score}
        else:
            for part, results in self._with_results(json.loads):
                for row, (columns, _) in zip(part.file.rows, results, strict=True):
                    yield {**row, **columns}

    def augment_notices(self) -> Notices:
        """Which rows' contexts and references were read in part."""
        notices = Notices()
        for part, results in self._with_results(json.loads):
            for number, (_, flags) in zip(part.file.numbers, results, strict=True):
                notices.add([number], {notice: [flag] for notice, flag in flags.items()})
        return notices

    def _with_results(self, read: Callable[[bytes], Result]) -> Iterator[tuple[Part, list[Result]]]:
        with self._results.open("rb") as file:
            for part in self._parts():
                yield part, [read(line) for line in islice(file, len(part.rows))]

    def _parts(self) -> Iterator[Part]:
        return self._rows.parts(self._chunk_size)
