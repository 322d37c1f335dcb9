"""Who does the work of a run: this process, or several processes of this machine."""

import json
import multiprocessing
import os
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Literal

from mars_score.augment.augmented import cuts
from mars_score.augment.masking.idf import Idf
from mars_score.data.validation import Row
from mars_score.errors import WorkerError
from mars_score.models.devices import wait_asleep
from mars_score.scoring.result import augmented_to_dict
from mars_score.scoring.rows import encode
from mars_score.store.runtime import Progress

_IN_FLIGHT = 2  # chunks that are being worked on while earlier ones are collected


@dataclass(frozen=True)
class Work:
    """What is to be done with rows; it can be sent to other processes."""

    task: Literal["score", "augment"]  # score them, or augment their references
    arguments: Mapping[str, Any]  # of the scorer
    idf: Idf | None = None  # counted over the whole file; None: the scorer's own
    with_references: bool = True  # False: candidates are scored by their contexts alone


class Worker:
    """Does the work, with a scorer of its own."""

    def __init__(self, work: Work, progress: Progress | None = None) -> None:
        from mars_score.scorer import MarsScorer

        self._work = work
        self._scorer = MarsScorer(**work.arguments, progress=progress)

    def __call__(self, rows: Sequence[Row]) -> list[bytes]:
        """One result per row, in one line: a scored row, or augmented references with their notices, as JSON."""
        if self._work.task == "score":
            scored = self._scorer.score_rows(rows, self._work.idf, with_references=self._work.with_references)
            return [encode(row) for row in scored]
        results = []
        for references, samples in self._scorer.augment_rows(rows, self._work.idf):
            texts = [*(text for reference in references for text in reference.texts), *samples.texts]
            columns = {
                "augmented_references": list(dict.fromkeys(texts)),
                "augmentations": [augmented_to_dict(reference) for reference in references],
                "samples": list(samples.texts),
            }
            flags = {notice: flag for notice, (flag,) in cuts([references]).items()}
            results.append(json.dumps([columns, flags]).encode())
        return results


def in_processes(work: Work, chunks: Iterable[Sequence[Row]], workers: int) -> Iterator[bytes]:
    """The results of all rows, in order, by processes; rows with the same context go to the same one."""
    started = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools = [ProcessPoolExecutor(1, context, _start, (work, number, workers)) for number in range(workers)]
        stack.callback(_stop, pools, started)
        pending: deque[list[tuple[list[int], Future[list[bytes]]]]] = deque()
        for rows in chunks:
            pending.append(_submit(pools, rows))
            if len(pending) > _IN_FLIGHT:
                yield from _collect(pending.popleft())
        while pending:
            yield from _collect(pending.popleft())


def _submit(
    pools: Sequence[ProcessPoolExecutor], rows: Sequence[Row]
) -> list[tuple[list[int], Future[list[bytes]]]]:
    """Hand out a chunk: for each process that gets rows, their places in the chunk and the future results."""
    shards: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        shared = row.context or "\n".join(row.references)
        shards.setdefault(zlib.crc32(shared.encode("utf-8", "surrogatepass")) % len(pools), []).append(place)
    return [
        (places, pools[number].submit(_work, [rows[place] for place in places]))
        for number, places in shards.items()
    ]


def _collect(shards: Sequence[tuple[list[int], Future[list[bytes]]]]) -> list[bytes]:
    """The results of a chunk, in the order of its rows."""
    results: dict[int, bytes] = {}
    for places, future in shards:
        try:
            results.update(zip(places, future.result(), strict=True))
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process died, probably as memory ran out: use fewer workers or a smaller batch size; "
                "what was computed is in the store, and the same command goes on from there"
            ) from None
    return [results[place] for place in sorted(results)]


def _stop(pools: Sequence[ProcessPoolExecutor], started: set[Any]) -> None:
    """End the processes, whatever they are doing."""
    for process in set(multiprocessing.active_children()) - started:
        process.terminate()
    for pool in pools:
        pool.shutdown(cancel_futures=True)


_worker: Worker | None = None  # of a worker process


def _start(work: Work, number: int, workers: int) -> None:
    """Begin a worker process: its share of the threads and GPUs, and an end with its parent's."""
    global _worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    wait_asleep()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    import torch

    arguments = dict(work.arguments)
    if arguments.get("device") is None and torch.cuda.is_available():
        arguments["device"] = f"cuda:{number % torch.cuda.device_count()}"
    _worker = Worker(Work(work.task, arguments, work.idf, work.with_references))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(rows: Sequence[Row]) -> list[bytes]:
    assert _worker is not None
    return _worker(rows)
