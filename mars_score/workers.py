"""Workers: what is computed for the rows of a run, and the processes of this machine that share it."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Literal

from mars_score.errors import WorkerError
from mars_score.metrics.paper import Idf
from mars_score.models.running import set_passive_omp_wait
from mars_score.results import augmented_to_dict, row_to_dict
from mars_score.rows import AugmentedReference, Row, RowScore

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

Action = Literal["score", "augment"]
Shard = tuple[list[int], Future[list[bytes]]]  # indices of rows in a chunk, and their results
_IN_FLIGHT = 2  # chunks that are being worked on while earlier ones are collected


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

    def __call__(self, scorer: MarsScorer, rows: Sequence[Row]) -> list[bytes]:
        """Return a line of JSON for each row: its score or its augmented references, and its kinds of notices."""
        if self.name == "score":
            results = [_score_result(row) for row in scorer.score_rows(rows, self.idf)]
        else:
            results = [_augment_result(row) for row in scorer.augment_rows(rows, self.idf)]
        return [json.dumps(result).encode() for result in results]


def _score_result(row: RowScore) -> dict[str, Any]:
    return {**row_to_dict(row), "notices": sorted(row.notices)}


def _augment_result(references: Sequence[AugmentedReference]) -> dict[str, Any]:
    return {
        "augmented_references": list(dict.fromkeys(text for one in references for text in one.texts)),
        "augmentations": [augmented_to_dict(one) for one in references],
        "notices": sorted(frozenset().union(*(one.notices for one in references))),
    }


def in_processes(action: RowAction, chunks: Iterable[Sequence[Row]], workers: int) -> Iterator[bytes]:
    """Yield the results of all rows, in order, computed by several processes.

    Raises:
        WorkerError: a process died.
    """
    started = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, context, _start, (action, number, workers)) for number in range(workers)]
    pending: deque[list[Shard]] = deque()
    try:
        for rows in chunks:
            pending.append(_submit(rows, pools))
            if len(pending) > _IN_FLIGHT:
                yield from _collect(pending.popleft())
        while pending:
            yield from _collect(pending.popleft())
    except BrokenProcessPool:
        raise WorkerError(
            "a worker process died, probably as memory ran out: use fewer workers or a smaller batch size; "
            "what was computed is in the store, and the same command goes on from there"
        ) from None
    finally:  # The processes are ended, whatever they are doing.
        for process in set(multiprocessing.active_children()) - started:
            process.terminate()
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def worker_of(row: Row, workers: int) -> int:
    """Return the index of the worker that gets a row: the same for rows with one context, or else references."""
    shared = row.context or "\n".join(row.references)
    return zlib.crc32(shared.encode("utf-8", "surrogatepass")) % workers


def _submit(rows: Sequence[Row], pools: Sequence[ProcessPoolExecutor]) -> list[Shard]:
    """Divide the rows of a chunk among the workers."""
    indices: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        indices.setdefault(worker_of(row, len(pools)), []).append(index)
    return [
        (shard, pools[worker].submit(_compute, [rows[index] for index in shard]))
        for worker, shard in indices.items()
    ]


def _collect(shards: Sequence[Shard]) -> list[bytes]:
    """Wait for the results of a chunk, and return them in the order of its rows."""
    results: dict[int, bytes] = {}
    for indices, future in shards:
        results.update(zip(indices, future.result(), strict=True))
    return [results[index] for index in sorted(results)]


def _start(action: RowAction, number: int, workers: int) -> None:
    """Begin a worker process: its share of the threads and GPUs, and an end with its parent's."""
    global _compute_rows
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_passive_omp_wait()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    import torch

    from mars_score.scorer import MarsScorer

    arguments = dict(action.arguments)
    if arguments.get("device") is None and torch.cuda.is_available():
        arguments["device"] = f"cuda:{number % torch.cuda.device_count()}"
    _compute_rows = partial(action, MarsScorer(**arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


_compute_rows: Callable[[Sequence[Row]], list[bytes]]  # of a worker process


def _compute(rows: Sequence[Row]) -> list[bytes]:
    return _compute_rows(rows)
