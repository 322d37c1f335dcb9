"""The work of a run that needs models: done by the chunk, anywhere, depending on the chunk alone.

What a chunk comes to depends on its items, the plan and what the store held of them before, on no other chunk:
so it does not matter who works on it, nor when, nor how often.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mars_score.augmentation import Augmented, Augmenter, Progress
from mars_score.masking.idf import Idf
from mars_score.masking.template import Template
from mars_score.result import Augmentation, AugmentedReference
from mars_score.settings import Settings
from mars_score.similarity.features import Reader
from mars_score.store.results import ResultStore
from mars_score.store.staged import StagedStore

# Items: pairs of a context and a prepared reference; results: `pack`. The other stages are the kinds of evidence.
AUGMENT = "augment"


@dataclass(frozen=True)
class Chunk:
    """Different items that are worked on together, and only together.

    Attributes:
        stage: ``AUGMENT``, or a kind of :mod:`mars_score.similarity.features`.
        number: its place among the chunks of the stage.
        items: see the stages; plain strings and tuples of them.
    """

    stage: str
    number: int
    items: tuple[Any, ...]


Done = tuple[Chunk, list[bytes]]  # a chunk and the result of each of its items


@dataclass(frozen=True)
class Plan:
    """What a worker needs to know; all of it can be sent to another machine.

    Attributes:
        settings: of all stages; models by name or folder.
        idf: counted over the whole input.
        batch_size, device: see ``MarsScorer``.
        store: folder of the store of results and converted models, or None.
        threads: of torch; None: as torch likes.
    """

    settings: Settings
    idf: Idf
    batch_size: int | None = None
    device: str | None = None
    store: Path | None = None
    threads: int | None = None


def usual_threads() -> int:
    """Threads that a worker has unless it is told: ``OMP_NUM_THREADS``, else one for each core it may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(told) if told.isdecimal() and int(told) else cores


class Engine(Protocol):
    """Who does the chunks' work: this process, several of them, or a cluster."""

    def map(self, chunks: Iterable[Chunk]) -> Iterator[Done]:
        """Each chunk with its results, in any order; chunks are taken as there is room for them.

        Raises:
            Exception: what the work of a chunk raised.
        """

    def close(self) -> None:
        """Let all helpers go, whatever they are doing."""


class Worker:
    """Does the work of chunks; models are loaded when first needed, and stay.

    Args:
        plan: see :class:`Plan`.
        report: called as ``report(stage, done, total)`` within a chunk.
    """

    def __init__(self, plan: Plan, report: Progress | None = None) -> None:
        self.plan = plan
        self._report = report
        self._kept = StagedStore(ResultStore(plan.store))

    def work(self, chunk: Chunk) -> list[bytes]:
        """The results of a chunk's items, in their order; then, and only then, does the store get what is new."""
        self._set_threads()
        self._kept.discard()  # of a chunk that failed
        results = self._augment(chunk.items) if chunk.stage == AUGMENT else self._read(chunk)
        self._kept.commit()
        return results

    def _set_threads(self) -> None:
        if self.plan.threads is not None:
            import torch

            torch.set_num_threads(self.plan.threads)

    def _augment(self, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
        pairs = [(context, reference) for context, reference in pairs]
        augmented = self._augmenter.augment(pairs, idf=self.plan.idf)
        return [pack(augmented[pair]) for pair in pairs]

    def _read(self, chunk: Chunk) -> list[bytes]:
        items = [item if isinstance(item, str) else tuple(item) for item in chunk.items]
        read = self._reader.read(chunk.stage, items)
        return [read[item].kept for item in items]

    @cached_property
    def _augmenter(self) -> Augmenter:
        plan = self.plan
        return Augmenter(plan.settings, plan.batch_size, plan.device, plan.store, self._kept, self._note)

    @cached_property
    def _reader(self) -> Reader:
        plan = self.plan
        return Reader(plan.settings, plan.batch_size, plan.device, plan.store, self._kept)

    def _note(self, stage: str, done: int, total: int) -> None:
        if self._report:
            self._report(stage, done, total)


def pack(one: Augmented) -> bytes:
    """An augmented reference as bytes."""
    augmentations = [(each.mask_ratio, each.template.blanks, each.text) for each in one.reference.augmentations]
    return json.dumps([one.reference.reference, augmentations, one.context_cut, one.reference_cut]).encode()


def unpack(packed: bytes) -> Augmented:
    """What :func:`pack` packed."""
    reference, augmentations, context_cut, reference_cut = json.loads(packed)
    made = [
        Augmentation(ratio, Template(reference, tuple((start, end) for start, end in blanks)), text)
        for ratio, blanks, text in augmentations
    ]
    return Augmented(AugmentedReference(reference, tuple(made)), context_cut, reference_cut)
