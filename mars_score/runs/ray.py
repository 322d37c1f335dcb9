"""Chunks worked on by the actors of a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
import pickle
import tempfile
import traceback
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mars_score.models.threads import wait_asleep
from mars_score.runs.worker import Chunk, ChunkResult, Plan, Worker

try:
    import ray
except ImportError as error:
    raise ImportError("Ray is not installed; run: pip install 'mars-score[ray]'") from error

IN_FLIGHT = 2  # chunks per actor: the one it works on, and the next
TRIES = 6  # for a chunk whose actor dies each time
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}  # for a Ray that is started here


class RayExecutor:
    """Works on chunks with the actors of a Ray cluster, which Ray restarts when they die.

    Args:
        plan: sent once to every machine. Its store is a folder on each of them.
        workers: number of actors; None: one for each GPU of the cluster, or without any (or with the plan's device
            ``"cpu"``) as many as its CPUs allow, each with the plan's threads.
        address: of the cluster, as for ``ray.init``. None: the one that ``RAY_ADDRESS`` names, else a new Ray on
            this machine, which is shut down by :meth:`close`. A process that is connected to a Ray uses that one.

    Raises:
        ConnectionError: no cluster is at the address.
        ValueError: an address of Ray Client, which these actors do not support.
    """

    def __init__(self, plan: Plan, workers: int | None, address: str | None) -> None:
        self._running: Generator[ChunkResult, None, None] | None = None
        self._actors: list[Any] = []
        self._connection = ExitStack()
        try:
            if not ray.is_initialized():
                address = address or os.environ.get("RAY_ADDRESS") or "local"
                self._connection.enter_context(_connected(address, workers, plan.threads or 1))
            self._pool = _pool(plan, workers)
            self._plan = ray.put(plan)
        except BaseException:
            self.close()
            raise

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """See :class:`mars_score.runs.worker.Executor`.

        Raises:
            RuntimeError: an actor cannot be started, or a chunk's actor died ``TRIES`` times.
        """
        self._running = self._map(iter(chunks))
        return self._running

    def close(self) -> None:
        """End a running map and the actors, and the Ray that was started here."""
        if self._running is not None:
            self._running.close()
        self._kill_actors()
        self._connection.close()

    def _map(self, chunks: Iterator[Chunk]) -> Generator[ChunkResult, None, None]:
        self._start_actors()
        # An actor gets chunks once it has started; if the cluster has no room for it, the others do all the work.
        busy: dict[Any, tuple[Any, Chunk | None]]
        busy = {actor.ready.remote(): (actor, None) for actor in self._actors}
        idle: list[Any] = []
        try:
            while True:
                for chunk in islice(chunks, len(idle)):
                    actor = idle.pop(0)
                    busy[actor.work.remote(chunk)] = actor, chunk
                if idle and not any(chunk for _, chunk in busy.values()):
                    return
                (done,), _ = ray.wait(list(busy), num_returns=1)
                actor, finished = busy.pop(done)
                outcome = _outcome(done)
                idle += [actor] if finished else [actor] * IN_FLIGHT
                if finished:
                    yield finished, outcome
        except BaseException:
            self._kill_actors()  # whatever they are doing
            raise

    def _start_actors(self) -> None:
        if not self._actors:
            actor: Any = ray.remote(
                num_cpus=self._pool.cpus, num_gpus=self._pool.gpus, max_restarts=-1, max_task_retries=TRIES - 1
            )(_Actor)
            self._actors = [actor.remote(self._plan) for _ in range(self._pool.workers)]

    def _kill_actors(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []


class _Actor:
    """A worker in a process of the cluster."""

    def __init__(self, plan: Plan) -> None:
        wait_asleep()  # on another machine nobody has set it
        self._worker = Worker(plan)

    def ready(self) -> None:
        """Return when the actor has started."""

    def work(self, chunk: Chunk) -> list[bytes] | Exception:
        """The chunk's results, or the exception that the work raised, which Ray would wrap in its own."""
        try:
            return self._worker.work(chunk)
        except Exception as error:
            return _portable(error)


def _portable(error: Exception) -> Exception:
    """The exception with its traceback as a note; a RuntimeError in place of one that cannot be pickled."""
    note = "In a worker:\n" + "".join(traceback.format_exception(error))
    try:
        portable: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        portable = RuntimeError(f"{type(error).__name__}: {error}")
    portable.add_note(note)
    return portable


def _outcome(done: Any) -> list[bytes]:
    """The results of a finished call.

    Raises:
        Exception: the one that the work raised.
        RuntimeError: Ray failed.
    """
    try:
        outcome = ray.get(done)
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.RayActorError) and not error.actor_init_failed:
            raise RuntimeError(
                f"{TRIES} workers in turn were lost over one chunk; where memory ran out, take fewer workers or a "
                f"smaller batch size ({error})"
            ) from None
        raise RuntimeError(f"Ray failed: {error}") from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome or []


@dataclass(frozen=True)
class _Pool:
    """Number of actors, and what Ray reserves for each."""

    workers: int
    cpus: int
    gpus: float


def _pool(plan: Plan, workers: int | None) -> _Pool:
    """Where there are GPUs each actor has one, or a part of one when more actors were asked for."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes) if plan.device != "cpu" else 0
    if gpus:
        workers = workers or gpus
        share = math.ceil(workers / gpus)
        return _Pool(workers, 1, 1 if share == 1 else math.floor(10_000 / share) / 10_000)  # Ray's precision
    most = max(int(node.get("CPU", 0)) for node in nodes)
    cpus = min(plan.threads or 1, max(most, 1))
    return _Pool(workers or max(sum(int(node.get("CPU", 0)) // cpus for node in nodes), 1), cpus, 0)


@contextmanager
def _connected(address: str, workers: int | None, threads: int) -> Iterator[None]:
    """Connected to a Ray; a local one has a folder of its own, and both are gone afterwards."""
    if address.startswith("ray://"):
        raise ValueError(
            f"{address} is for Ray Client; run on a machine of the cluster, with its address (host:port) or 'auto'"
        )
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as stack:
        if address == "local":
            options["num_cpus"] = max((workers or 0) * threads, os.cpu_count() or 1)
            options["include_dashboard"] = False
            options["_temp_dir"] = stack.enter_context(_short_folder())
        stack.callback(ray.shutdown)
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about changes of Ray
            ray.init(address, **options)
        yield


def _short_folder() -> tempfile.TemporaryDirectory[str]:
    """The paths of Ray's sockets are 64 characters longer than its folder's, and may have 107 at most."""
    parent = tempfile.gettempdir()
    return tempfile.TemporaryDirectory(
        prefix="mars-ray-", dir=parent if len(parent) < 24 else "/tmp", ignore_cleanup_errors=True
    )
