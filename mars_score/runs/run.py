"""A run from its first row to its last: it may be stopped at any moment, and goes on when it is started again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mars_score.augment.augmented import Augmented
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.sampling.samples import Samples
from mars_score.models.signature import Signature, make_signature
from mars_score.runs.chunks import (
    augment_chunks,
    augmented_of,
    feature_chunks,
    sample_chunks,
    samples_of,
    score_chunks,
)
from mars_score.runs.encoding import join, split
from mars_score.runs.input import Input, Part
from mars_score.runs.records import Records, check_manifest
from mars_score.runs.survey import Survey, item_key, survey
from mars_score.runs.worker import AUGMENT, FEATURES, SAMPLE, SCORE, Chunk, Executor, Plan, usual_threads
from mars_score.scoring.result import RowScore
from mars_score.scoring.rows import KIND, ScoredRow, decode, row_results
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Progress

REUSED = "reused"  # the name of the fact in the run's records: which chunks, and how many are left


@dataclass(frozen=True)
class RunSpec:
    """What a run is to do; ``plan`` lacks its IDF, which the run counts.

    Attributes:
        rows: the input.
        plan: for the workers.
        chunk_size: pairs of context and reference, or rows, per chunk.
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
    """A run and what it has done so far.

    Args:
        spec: what to do.
        records: in the run's folder.
        progress: called as ``progress(stage, done, total)``; a total of 0 is not known.

    Raises:
        ValueError: the folder holds a run of another input or with other settings.
        OSError: the folder cannot be used.
    """

    def __init__(self, spec: RunSpec, records: Records, progress: Progress | None = None) -> None:
        self.spec = spec
        self.records = records
        self._progress = progress
        self._augmented = 0  # pairs of finished chunks
        self._analyser = WordAnalyser(ResultStore(spec.plan.store), spec.plan.settings.language)
        check_manifest(records, spec.manifest(self._signature([])))

    def read(self) -> None:
        """Check all rows, before any model is loaded.

        Raises:
            ValueError, TypeError: a fault of the input, named with its line and column.
        """
        self.survey  # noqa: B018

    @cached_property
    def survey(self) -> Survey:
        """The first pass, or what is recorded of it."""
        found = self.records.fact("survey")
        if found is None:
            made = survey(self.spec.rows, self._analyser, self._report)
            self.records.note("survey", made.to_dict())
            return made
        return Survey.from_dict(found)

    @property
    def plan(self) -> Plan:
        """For the workers."""
        return replace(self.spec.plan, idf=self.survey.idf)

    @property
    def signature(self) -> Signature:
        """All that the scores depend on besides the texts."""
        return self._signature(self.survey.reference_counts)

    def reuse(self) -> None:
        """Take the scores of chunks whose rows are all in the store; what follows leaves these chunks out."""
        plan, records = self.spec.plan, self.records
        results = row_results(plan.settings)
        if results.common is None or records.fact(REUSED) is not None:
            return
        store, left = ResultStore(plan.store), 0

        def kept() -> Iterator[tuple[int, dict[bytes, bytes]]]:
            nonlocal left
            for part in self.spec.rows.parts(self.spec.chunk_size):
                keys = list(map(results.key, part.rows))
                found = store.get(KIND, keys)
                if len(found) == len(set(keys)):
                    yield part.number, {_key(part.number): join(found[one] for one in keys)}
                else:
                    left += 1

        records.add_all(SCORE, kept())
        records.note(REUSED, {"chunks": sorted(records.done(SCORE)), "left": left})

    def _parts(self) -> Iterator[Part]:
        """The rows that are to be scored, a chunk's at a time."""
        reused = self.records.fact(REUSED) or {"chunks": (), "left": True}
        if reused["left"]:
            chunks = set(reused["chunks"])
            yield from (part for part in self.spec.rows.parts(self.spec.chunk_size) if part.number not in chunks)

    def augment(self, executor: Executor) -> None:
        """Augment the references."""
        size, total = self.spec.chunk_size, self.survey.pairs
        done = self.records.done(AUGMENT)
        self._augmented = min(len(done) * size, total)
        self._report(AUGMENT, self._augmented, total)
        for chunk, results in executor.map(augment_chunks(self._parts(), size, done)):
            self._record(chunk, item_key, results)
            self._augmented += len(results)
            self._report(AUGMENT, self._augmented, total)
        self._report(AUGMENT, total, total)  # those of rows that are reused are not augmented

    def sample(self, executor: Executor) -> None:
        """Draw the samples of all contexts."""
        sampling, size = self.spec.plan.settings.sampling, self.spec.chunk_size
        if sampling.samples == 0:
            return
        chunks = sample_chunks(self._parts(), sampling, size, self.records.done(SAMPLE))
        for chunk, results in executor.map(chunks):
            self._record(chunk, item_key, results)
            self._report(SAMPLE, chunk.number * size + len(results), 0)

    def score(self, executor: Executor) -> None:
        """Score the rows; their references have been augmented and their samples drawn."""
        size, total, settings = self.spec.chunk_size, self.survey.rows, self.spec.plan.settings
        features = feature_chunks(self._parts(), self.records, settings, size, self.records.done(FEATURES))
        for chunk, results in executor.map(features):
            self._record(chunk, item_key, results)
            self._report("embed repeated texts", (chunk.number + 1) * size, 0)
        done = self.records.done(SCORE)
        finished = min(len(done) * size, total)
        self._report(SCORE, finished, total)
        for chunk, results in executor.map(score_chunks(self._parts(), self.records, settings, done)):
            self.records.add(SCORE, chunk.number, {_key(chunk.number): results[0]})
            finished += len(chunk.items)
            self._report(SCORE, finished, total)

    def chunk_progress(self, stage: str, done: int, total: int) -> None:
        """Report what a worker reports within a chunk: as a part of the stage, or as a stage of its own."""
        if stage == "infill":
            pairs = min(self.spec.chunk_size, self.survey.pairs - self._augmented)
            self._report(AUGMENT, self._augmented + pairs * done // max(total, 1), self.survey.pairs)
        elif stage not in _WITHIN:
            self._report(stage, done, total)

    def augmented(self) -> Iterator[tuple[Part, list[list[Augmented]], list[Samples]]]:
        """The rows, some at a time, with their augmented references and samples (none for blank candidates)."""
        sampling = self.spec.plan.settings.sampling
        written = 0
        for part in self.spec.rows.parts(self.spec.chunk_size):
            yield part, augmented_of(part, self.records), samples_of(part, self.records, sampling)
            written += len(part.candidates)
            self._report("write", written, self.survey.rows)

    def scored(self) -> Iterator[tuple[Part, list[ScoredRow]]]:
        """The rows, some at a time, with their scores."""
        written = 0
        for part in self.spec.rows.parts(self.spec.chunk_size):
            key = _key(part.number)
            yield part, list(map(decode, split(self.records.get(SCORE, [key])[key])))
            written += len(part.candidates)
            self._report("write", written, self.survey.rows)

    def detailed(self) -> Iterator[tuple[str, RowScore]]:
        """The candidate of each row and its score in full."""
        for part, rows in self.scored():
            yield from zip(part.candidates, (row.score for row in rows), strict=True)

    def _record(self, chunk: Chunk, key: Callable[[Any], bytes], results: Iterable[bytes]) -> None:
        self.records.add(chunk.stage, chunk.number, dict(zip(map(key, chunk.items), results, strict=True)))

    def _signature(self, reference_counts: Sequence[int]) -> Signature:
        settings = self.spec.plan.settings
        pipeline = self._analyser.pipeline if settings.masking.max_mask_ratio > 0 else None
        return make_signature(settings, pipeline, reference_counts)

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._progress:
            self._progress(stage, done, total)


_WITHIN = ("analyse", "embed", "match", "likelihood")  # a worker's stages that last as long as a chunk


def _key(number: int) -> bytes:
    return number.to_bytes(8)
