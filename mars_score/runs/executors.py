"""Chunks worked on by this machine: in this process, or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from typing import Any

from mars_score.models.threads import wait_asleep
from mars_score.runs import worker as work
from mars_score.runs.worker import Chunk, ChunkResult, Plan
from mars_score.store.runtime import Progress

_AHEAD = 2  # chunks handed out per process, so that none waits for the next
_TRIES = 3  # for a chunk whose process dies each time


class SerialExecutor:
    """Works on one chunk after the other, in this process.

    Args:
        plan: for the worker.
        report: see :class:`mars_score.runs.worker.Worker`.
    """

    def __init__(self, plan: Plan, report: Progress | None = None) -> None:
        self._worker = work.Worker(plan, report)

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """See :class:`mars_score.runs.worker.Executor`."""
        for chunk in chunks:
            yield chunk, self._worker.work(chunk)

    def close(self) -> None:
        """Nothing to end."""


class ProcessExecutor:
    """Several processes on this machine, each with models of its own; on several GPUs in turn.

    A process that dies is replaced, and its chunk is worked on again.

    Args:
        plan: for the workers.
        count: number of processes.
    """

    def __init__(self, plan: Plan, count: int) -> None:
        self._plan = plan
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """See :class:`mars_score.runs.worker.Executor`.

        Raises:
            OSError: processes die again and again.
        """
        waiting = iter(chunks)
        again: list[Chunk] = []
        losses: dict[int, int] = {}
        handed: dict[Future[list[bytes]], Chunk] = {}
        while True:
            room = self._count * _AHEAD - len(handed)
            some = [*again[:room], *islice(waiting, max(0, room - len(again)))]
            del again[:room]
            for chunk in some:
                try:
                    handed[self._submit(chunk)] = chunk
                except BrokenProcessPool:
                    again.append(chunk)
            if not handed and not again:
                return
            for future in wait(handed, return_when=FIRST_COMPLETED).done:
                chunk = handed.pop(future)
                try:
                    yield chunk, future.result()
                except BrokenProcessPool:  # all chunks that are handed out are lost
                    again.append(chunk)
            if again:
                again += handed.values()
                handed.clear()
                self._replace(again, losses)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, chunk: Chunk) -> Future[list[bytes]]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            arguments = self._plan, context.Value("i", 0)
            self._pool = ProcessPoolExecutor(self._count, context, _begin, arguments)
        return self._pool.submit(_work, chunk)

    def _replace(self, lost: list[Chunk], losses: dict[int, int]) -> None:
        self.close()
        for chunk in lost:
            losses[chunk.number] = losses.get(chunk.number, 0) + 1
        if max(losses.values()) > _TRIES:
            raise OSError(
                "worker processes were killed again and again; where memory is short, take fewer --workers or a "
                "smaller --batch-size"
            )


# In the worker processes

_worker: work.Worker


def _begin(plan: Plan, counter: Any) -> None:
    """Make this process a worker; models are loaded with its first chunk."""
    global _worker
    wait_asleep()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with counter.get_lock():
        number, counter.value = counter.value, counter.value + 1
    _worker = work.Worker(replace(plan, device=plan.device or _gpu(number)))


def _exit_with_parent() -> None:
    """Exit when the parent process dies."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _gpu(number: int) -> str | None:
    """The device of a worker where there are several GPUs."""
    import torch

    return f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.device_count() > 1 else None


def _work(chunk: Chunk) -> list[bytes]:
    return _worker.work(chunk)
