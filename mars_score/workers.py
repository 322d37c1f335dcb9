"""Who does the work of a run: this process, or several processes of this machine."""

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

from mars_score.data.validation import Row
from mars_score.errors import WorkerError
from mars_score.infilling.augmented import notices_of
from mars_score.metrics.idf import Idf
from mars_score.models.devices import wait_asleep
from mars_score.scoring.result import augmented_to_dict
from mars_score.scoring.rows import encode

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

Task = Literal["score", "augment"]
Shard = tuple[list[int], Future[list[bytes]]]  # places of rows in a chunk, and their results
_IN_FLIGHT = 2  # chunks that are being worked on while earlier ones are collected


@dataclass(frozen=True)
class Work:
    """What is to be done with rows; it can be sent to other processes."""

    task: Task  # score them, or augment their references
    arguments: Mapping[str, Any]  # of the scorer
    idf: Idf | None = None  # counted over the whole file; None: the scorer's own
    with_references: bool = True  # False: candidates are scored by their contexts alone

    def do(self, scorer: MarsScorer, rows: Sequence[Row]) -> list[bytes]:
        """One result per row, in one line: a scored row, or augmented references with their notices, as JSON."""
        if self.task == "score":
            return list(map(encode, scorer.score_rows(rows, self.idf, with_references=self.with_references)))
        results = []
        for references, samples in scorer.augment_rows(rows, self.idf):
            texts = [*(text for reference in references for text in reference.texts), *samples.texts]
            columns = {
                "augmented_references": list(dict.fromkeys(texts)),
                "augmentations": [augmented_to_dict(reference) for reference in references],
                "samples": list(samples.texts),
            }
            results.append(json.dumps([columns, list(notices_of(references))]).encode())
        return results


def in_processes(work: Work, chunks: Iterable[Sequence[Row]], workers: int) -> Iterator[bytes]:
    """The results of all rows, in order, by processes."""
    started = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, context, _start, (work, number, workers)) for number in range(workers)]
    pending: deque[list[Shard]] = deque()
    try:
        for rows in chunks:
            places: dict[int, list[int]] = {}  # of the rows of each process
            for place, row in enumerate(rows):
                places.setdefault(process_of(row, workers), []).append(place)
            shards = [
                (at, pools[number].submit(_work, [rows[place] for place in at])) for number, at in places.items()
            ]
            pending.append(shards)
            if len(pending) > _IN_FLIGHT:
                yield from _collect(pending.popleft())
        while pending:
            yield from _collect(pending.popleft())
    except BrokenProcessPool:
        raise WorkerError(
            "a worker process died, probably as memory ran out: use fewer workers or a smaller batch size; "
            "what was computed is in the store, and the same command goes on from there"
        ) from None
    finally:  # end the processes, whatever they are doing
        for process in set(multiprocessing.active_children()) - started:
            process.terminate()
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def process_of(row: Row, workers: int) -> int:
    """The number of the process that gets a row: the same for rows with one context, or else references."""
    shared = row.context or "\n".join(row.references)
    return zlib.crc32(shared.encode("utf-8", "surrogatepass")) % workers


def _collect(shards: Sequence[Shard]) -> list[bytes]:
    """The results of a chunk, in the order of its rows."""
    results: dict[int, bytes] = {}
    for places, future in shards:
        results.update(zip(places, future.result(), strict=True))
    return [results[place] for place in sorted(results)]


def _start(work: Work, number: int, workers: int) -> None:
    """Begin a worker process: its share of the threads and GPUs, and an end with its parent's."""
    global _do
    threading.Thread(target=_end_with_parent, daemon=True).start()
    wait_asleep()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    import torch

    from mars_score.scorer import MarsScorer

    arguments = dict(work.arguments)
    if arguments.get("device") is None and torch.cuda.is_available():
        arguments["device"] = f"cuda:{number % torch.cuda.device_count()}"
    _do = partial(work.do, MarsScorer(**arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


_do: Callable[[Sequence[Row]], list[bytes]]  # of a worker process


def _work(rows: Sequence[Row]) -> list[bytes]:
    return _do(rows)
