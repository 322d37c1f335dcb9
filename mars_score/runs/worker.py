"""The work of a run that needs models, done in chunks by one process or many.

The result of a chunk depends on its items, the plan and what the store held of them before, on no other chunk: it
does not matter which worker does it, nor when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from mars_score.augment.augmenter import Augmenter
from mars_score.augment.masking.idf import Idf
from mars_score.augment.sampling.samples import ContextSampler, decode_samples, encode_samples
from mars_score.runs.encoding import decode_augmented, decode_evidence, encode_augmented, encode_evidence, join
from mars_score.scoring.batch import Scorable
from mars_score.scoring.evidence import Reader
from mars_score.scoring.form import Form
from mars_score.scoring.head_folder import HeadFolder
from mars_score.scoring.heads import LearnedHead, load_head
from mars_score.scoring.rows import KIND, encode, row_results
from mars_score.settings import Settings
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Progress, Runtime
from mars_score.store.staged import StagedStore

Feature = tuple[str, Any]  # a kind of mars_score.scoring.evidence and an item of that kind

# Stages, in their order, with their items and results.
AUGMENT = "augment"  # (context, prepared reference) -> encode_augmented
SAMPLE = "sample"  # Request -> encode_samples
FEATURES = "features"  # Feature: those that several chunks of rows share -> their bytes
# A row (candidate, context, encoded augmented references, Request, encoded samples) -> one join for all
SCORE = "score"


@dataclass(frozen=True)
class Chunk:
    """Items that are worked on together, apart from all others.

    Attributes:
        stage: ``AUGMENT``, ``SAMPLE``, ``FEATURES`` or ``SCORE``.
        number: its place among the chunks of the stage.
        items: see the stages; plain strings and tuples.
        known: features that ``SCORE`` needs not compute.
    """

    stage: str
    number: int
    items: tuple[Any, ...]
    known: Mapping[Feature, bytes] = field(default_factory=dict)


ChunkResult = tuple[Chunk, list[bytes]]  # a chunk and its results


@dataclass(frozen=True)
class Plan:
    """What a worker needs to know; all of it can be sent to another machine.

    Attributes:
        settings: of all stages; models by name or folder.
        idf: counted over the whole input.
        batch_size, device, encoder_batch_size: see ``MarsScorer``.
        store: folder of the store of results and converted models, or None.
        threads: of torch; None: torch's default.
        head: that computes the scores; None: MARS's own.
    """

    settings: Settings
    idf: Idf
    batch_size: int | None = None
    device: str | None = None
    store: Path | None = None
    threads: int | None = None
    encoder_batch_size: int | None = None
    head: HeadFolder | None = None

    def runtime(self, store: ResultStore, progress: Progress | None) -> Runtime:
        """How models are run, with the plan's store opened here."""
        return Runtime(self.batch_size, self.encoder_batch_size, self.device, store, progress)


def usual_threads() -> int:
    """A worker's default number of threads: ``OMP_NUM_THREADS``, else one for each core that it may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(told) if told.isdecimal() and int(told) else cores


class Executor(Protocol):
    """Where chunks are worked on: this process, several processes, or a cluster."""

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """Each chunk with its results, in any order; chunks are drawn as workers become free.

        Raises:
            Exception: what the work of a chunk raised.
        """

    def close(self) -> None:
        """End all workers, whatever they are doing."""


class Worker:
    """Works on chunks; models are loaded when first needed, and stay loaded.

    Args:
        plan: see :class:`Plan`.
        report: called as ``report(stage, done, total)`` within a chunk.
    """

    def __init__(self, plan: Plan, report: Progress | None = None) -> None:
        self.plan = plan
        self._report = report
        store = ResultStore(plan.store)
        self._runtime = plan.runtime(store, self._note)
        # Vectors depend on their batch in the last digits: the store gets those of a whole chunk, or none, so that
        # a chunk that was interrupted is computed from what it was computed from before. Infills are texts: they
        # are stored as they are made, so that an interruption loses no more than seconds.
        self._staged = StagedStore(store)

    def work(self, chunk: Chunk) -> list[bytes]:
        """The results of a chunk; see the stages."""
        self._set_threads()
        if chunk.stage == AUGMENT:
            return self._augment(chunk.items)
        if chunk.stage == SAMPLE:
            drawn = self._sampler.draw(chunk.items, partial(self._note, "draw"))
            return [encode_samples(drawn[request]) for request in chunk.items]
        self._staged.discard()  # what a chunk that failed has left
        results = self._compute(chunk.items) if chunk.stage == FEATURES else self._score(chunk)
        self._staged.commit()
        return results

    def _set_threads(self) -> None:
        if self.plan.threads is not None:
            import torch

            torch.set_num_threads(self.plan.threads)

    def _augment(self, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
        pairs = [(context, reference) for context, reference in pairs]
        augmented = self._augmenter.augment(pairs, idf=self.plan.idf)
        return [encode_augmented(augmented[pair]) for pair in pairs]

    def _compute(self, features: Sequence[Feature]) -> list[bytes]:
        """The bytes of features of one kind or several."""
        of_kind: dict[str, list[Any]] = {}
        for kind, item in features:
            of_kind.setdefault(kind, []).append(item)
        found = {kind: self._reader.read(kind, items) for kind, items in of_kind.items()}
        return [encode_evidence(found[kind][item]) for kind, item in features]

    def _score(self, chunk: Chunk) -> list[bytes]:
        candidates, contexts, references, requests, samples = zip(*chunk.items, strict=True)
        augmented = [[decode_augmented(one) for one in row] for row in references]
        drawn = dict(zip(requests, map(decode_samples, samples), strict=True))
        settings = self.plan.settings
        rows = Scorable(
            candidates,
            contexts,
            augmented,
            requests,
            drawn,
            Form.of(settings.similarity),
            settings.use_context,
            self._head,
        )
        evidence = {}
        for kind, items in rows.needs.items():
            found = {
                item: decode_evidence(kind, chunk.known[kind, item])
                for item in items
                if (kind, item) in chunk.known
            }
            found |= self._reader.read(kind, [item for item in items if item not in found])
            evidence[kind] = found
        scored = list(map(encode, rows.scored(evidence)))
        self._keep(rows, scored)
        return [join(scored)]

    def _keep(self, rows: Scorable, scored: Sequence[bytes]) -> None:
        """Save the scores of rows, for runs to come: in this one each chunk is scored once."""
        results = row_results(self.plan.settings)
        if results.common is not None:
            texts = [tuple(one.reference.reference for one in of_row) for of_row in rows.augmented]
            keys = map(results.key, zip(rows.candidates, texts, rows.contexts, strict=True))
            self._staged.put(KIND, dict(zip(keys, scored, strict=True)))

    @cached_property
    def _head(self) -> LearnedHead | None:
        head = self.plan.head
        return None if head is None else load_head(head, self.plan.settings, self._runtime)

    @cached_property
    def _augmenter(self) -> Augmenter:
        return Augmenter(self.plan.settings, self._runtime)

    @cached_property
    def _sampler(self) -> ContextSampler:
        return ContextSampler(self.plan.settings, self._runtime)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.plan.settings, replace(self._runtime, store=self._staged))

    def _note(self, stage: str, done: int, total: int) -> None:
        if self._report:
            self._report(stage, done, total)
