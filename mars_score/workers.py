"""Score the rows of a run in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from mars_score.errors import WorkerError
from mars_score.models.running import set_passive_omp_wait
from mars_score.rows import Example, Row

AnyRow = Row | Example
Start = Callable[[str | None], Callable[[Sequence[AnyRow]], list[bytes]]]
Shard = tuple[list[int], Future[list[bytes]]]  # indices of rows in a chunk, and their results
_IN_FLIGHT = 2  # chunks that are computed while an earlier one is collected


def in_processes(start: Start, chunks: Iterable[Sequence[AnyRow]], workers: int) -> Iterator[bytes]:
    """Yield the results of all rows, in order, computed by several processes.

    Args:
        start: called in each process with its GPU or None. It returns a function from rows to their results, one
            line per row. It must be picklable.
        chunks: chunks of rows.
        workers: number of processes.

    Raises:
        WorkerError: a process died.
    """
    context = _OwnProcesses()
    pools = [ProcessPoolExecutor(1, context, _begin, (start, number, workers)) for number in range(workers)]
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
            "a worker process died, probably for lack of memory: use fewer workers or a smaller batch size; "
            "what was computed is in the store, and the same command goes on from there"
        ) from None
    finally:  # Processes are stopped in the middle of their work.
        for process in context.started:
            if process.is_alive():
                process.terminate()
        for pool in pools:
            pool.shutdown(cancel_futures=True)


class _OwnProcesses(SpawnContext):
    """Keeps the processes that it makes, as an executor does not publish them."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Make and keep a process."""
        process = SpawnProcess(*args, **kwargs)
        self.started.append(process)
        return process


def worker_of(row: AnyRow, workers: int) -> int:
    """Return the index of a row's worker. Rows with the same context or, without one, references share it."""
    shared = row.prompt or "\n".join(row.references)
    return zlib.crc32(shared.encode("utf-8", "surrogatepass")) % workers


def _submit(rows: Sequence[AnyRow], pools: Sequence[ProcessPoolExecutor]) -> list[Shard]:
    indices: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        indices.setdefault(worker_of(row, len(pools)), []).append(index)
    return [
        (shard, pools[worker].submit(_compute, [rows[index] for index in shard]))
        for worker, shard in indices.items()
    ]


def _collect(shards: Sequence[Shard]) -> list[bytes]:
    """Wait for the results of a chunk and return them in the order of its rows."""
    results: dict[int, bytes] = {}
    for indices, future in shards:
        results.update(zip(indices, future.result(), strict=True))
    return [results[index] for index in sorted(results)]


def _begin(start: Start, number: int, workers: int) -> None:
    """Set up a worker process with its share of threads and GPUs. It ends when its parent ends."""
    global _compute_rows
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_passive_omp_wait()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    import torch

    has_gpu = torch.cuda.is_available()
    _compute_rows = start(f"cuda:{number % torch.cuda.device_count()}" if has_gpu else None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


_compute_rows: Callable[[Sequence[AnyRow]], list[bytes]]  # set in a worker process


def _compute(rows: Sequence[AnyRow]) -> list[bytes]:
    return _compute_rows(rows)
