"""A run from its first row to its last: it may be stopped at any moment, and goes on when it is started again.

Chunks are cut by the input alone and each is worked on by itself, so that what was done before a stop fits what is
done after it, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mars_score.augmentation import Augmented, Progress
from mars_score.masking.analysis import WordAnalyser
from mars_score.result import RowScore
from mars_score.runs.chunks import augment_chunks, augmented_of, reading_chunks, scorable
from mars_score.runs.input import Input, Part
from mars_score.runs.records import Records, check_manifest
from mars_score.runs.survey import Survey, item_key, survey
from mars_score.runs.worker import AUGMENT, Chunk, Engine, Plan, usual_threads
from mars_score.signature import Signature, make_signature
from mars_score.similarity.features import decode, kinds
from mars_score.store.results import ResultStore

ITEMS_A_PAIR = 8  # texts are read much faster than references are augmented: their chunks are larger


@dataclass(frozen=True)
class AugmentedPart:
    """Some rows with their augmented references; none where they are not wanted."""

    part: Part
    augmented: Sequence[Sequence[Augmented]]


@dataclass(frozen=True)
class ScoredPart(AugmentedPart):
    """Some rows with their scores.

    Attributes:
        rows: one score a row.
        flags: what was done to which rows.
    """

    rows: Sequence[RowScore]
    flags: dict[str, list[bool]]


@dataclass(frozen=True)
class Job:
    """What a run is to do; ``plan`` lacks its IDF, which the run counts.

    Attributes:
        rows: the input.
        plan: for the workers.
        chunk_size: pairs of contexts and references a chunk.
    """

    rows: Input
    plan: Plan
    chunk_size: int

    def manifest(self, signature: Signature) -> dict[str, Any]:
        """All that the output depends on, to the last bit, as plain data."""
        columns = {"prediction": self.rows.columns.prediction, "reference": self.rows.columns.reference}
        return json.loads(  # type: ignore[no-any-return]
            json.dumps(
                {
                    "input": self.rows.digest(),
                    "columns": {**columns, "context": self.rows.columns.context},
                    "chunk_size": self.chunk_size,
                    "batch_size": self.plan.batch_size,
                    "device": self.plan.device,
                    "threads": self.plan.threads or usual_threads(),
                    **signature.to_dict(),
                }
            )
        )


class Run:
    """A run and what it remembers.

    Args:
        job: what to do.
        records: in the run's folder.
        progress: called as ``progress(stage, done, total)``; a total of 0 is not known.

    Raises:
        ValueError: the folder holds a run of another input or with other settings.
        OSError: the folder cannot be used.
    """

    def __init__(self, job: Job, records: Records, progress: Progress | None = None) -> None:
        self.job = job
        self.records = records
        self._progress = progress
        self._analyser = WordAnalyser(ResultStore(job.plan.store))
        check_manifest(records, job.manifest(self._signature([])))

    def read(self) -> None:
        """Have all rows checked, before any model is loaded.

        Raises:
            ValueError, TypeError: a fault of the input, named with its line and column.
        """
        self.survey  # noqa: B018

    @cached_property
    def survey(self) -> Survey:
        """The first pass, or what is known from it."""
        found = self.records.fact("survey")
        if found is None:
            made = survey(self.job.rows, self._analyser, self._report)
            self.records.note("survey", made.to_dict())
            return made
        return Survey.from_dict(found)

    @property
    def plan(self) -> Plan:
        """For the workers."""
        return replace(self.job.plan, idf=self.survey.idf)

    @property
    def signature(self) -> Signature:
        """All that the scores depend on besides the texts."""
        return self._signature(self.survey.reference_counts)

    def augment(self, engine: Engine) -> None:
        """Have the references augmented."""
        done = self.records.done(AUGMENT)
        size = self.job.chunk_size
        chunks = augment_chunks(self.job.rows, size, done)
        finished = min(len(done) * size, self.survey.pairs)
        self._work(engine, chunks, finished, self.survey.pairs)

    def gather(self, engine: Engine) -> None:
        """Have all read that the scores follow from; the references have been augmented."""
        similarity = self.job.plan.settings.similarity
        for kind in kinds(similarity):
            done = self.records.done(kind)
            size = self.job.chunk_size * ITEMS_A_PAIR
            chunks = reading_chunks(kind, self.job.rows, self.records, similarity, size, done)
            self._work(engine, chunks, len(done) * size, 0)

    def augmented(self, start: int = 0) -> Iterator[AugmentedPart]:
        """The rows from row ``start`` with their augmented references."""
        for part in self.job.rows.parts():
            if part.file.start >= start:
                yield AugmentedPart(part, augmented_of(part, self.records))
                self._report("write", part.file.start + len(part.file.rows), self.survey.rows)

    def scored(self, start: int = 0) -> Iterator[ScoredPart]:
        """The rows from row ``start`` with their scores."""
        for one in self.augmented(start):
            rows = scorable(one.part, one.augmented, self.job.plan.settings.similarity)
            evidence = {kind: self._evidence(kind, items) for kind, items in rows.needs.items()}
            yield ScoredPart(one.part, one.augmented, rows.scores(evidence), rows.flags(evidence))

    def _evidence(self, kind: str, items: Sequence[Any]) -> dict[Any, Any]:
        keys = {item: item_key(item) for item in items}
        kept = self.records.get(kind, list(keys.values()))
        return {item: decode(kind, kept[key]) for item, key in keys.items()}

    def _work(self, engine: Engine, chunks: Iterable[Chunk], done: int, total: int) -> None:
        for chunk, results in engine.map(chunks):
            self.records.add(
                chunk.stage, chunk.number, dict(zip(map(item_key, chunk.items), results, strict=True))
            )
            done += len(results)
            self._report(chunk.stage, done, total)

    def _signature(self, reference_counts: Sequence[int]) -> Signature:
        return make_signature(self.job.plan.settings, self._analyser.pipeline, reference_counts)

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._progress:
            self._progress(stage, done, total)
