"""The engine for many machines: a pool of model actors that Ray Data feeds.

The chunks pass through one file on this machine. A read task beside us follows the file as it grows, Ray Data
hands each record to an actor, and what the actor comes to is a row of the dataset. No more than a few chunks a
worker are on their way at any time, however many there are.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import pickle
import tempfile
import time
import traceback
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mars_score.runs.worker import Chunk, Done, Plan, Worker

# What Ray would print to stdout when a worker is lost. It reads this when it is imported.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "so the task will be retried|A worker died or was killed")
try:
    import pyarrow as pa
    import ray
    from ray.data import ActorPoolStrategy, DataContext, Dataset, Datasource, ReadTask
    from ray.data.block import BlockMetadata
except ImportError as error:
    raise ImportError("Ray Data is not installed; run: pip install 'mars-score[ray]'") from error

AHEAD = 4  # chunks a worker that are on their way: being worked on, waiting at an actor, in the file, coming back
IN_FLIGHT = 2  # of them at an actor, so that it need not wait for the next one
TRIES = 6  # of a chunk whose worker is lost each time
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}  # of a Ray that we start
# That there are no progress bars, and the traceback of an error that reaches the caller anyway.
_TALKATIVE = ("ray.data._internal.progress", "ray.data._internal.execution.streaming_executor_state")
_PAUSE = 0.02  # seconds between two looks at the file
_LENGTH = 8  # bytes before each record
_END = 2 ** (8 * _LENGTH) - 1  # in place of a length


class RayEngine:
    """Chunks worked on by the actors of a Ray cluster, which may come and go.

    Args:
        plan: sent once to every machine. Its store is a folder on each of them, and only saves work there.
        workers: number of actors; None: one for each GPU of the cluster, or without any (or with the plan's device
            ``"cpu"``) as many as its CPUs allow, each with the plan's threads.
        address: of the cluster, as for ``ray.init``. None: the one that ``RAY_ADDRESS`` names, else a Ray of our
            own on this machine, which goes when we close. A process that is connected to a Ray uses that one.
        folder: for our file; a folder of this machine that the caller owns.

    Raises:
        ConnectionError: no cluster is at the address.
        ValueError: an address of Ray Client, which has no files in common with the cluster.
    """

    def __init__(self, plan: Plan, workers: int | None, address: str | None, folder: Path) -> None:
        self._folder = folder
        self._running: Generator[Done, None, None] | None = None
        self._closing = ExitStack()
        try:
            if not ray.is_initialized():
                address = address or os.environ.get("RAY_ADDRESS") or "local"
                self._closing.enter_context(_connected(address, workers, plan.threads or 1))
            self._pool = _pool(plan, workers)
            self._plan = ray.put(plan)
        except BaseException:
            self.close()
            raise

    def map(self, chunks: Iterable[Chunk]) -> Iterator[Done]:
        """See :class:`mars_score.runs.worker.Engine`; chunks are taken in the caller's thread."""
        self._running = self._map(iter(chunks))
        return self._running

    def close(self) -> None:
        """End a map that is going on, with its actors, and the Ray that we started."""
        if self._running is not None:
            self._running.close()
        self._closing.close()

    def _map(self, chunks: Iterator[Chunk]) -> Generator[Done, None, None]:
        on_their_way: dict[int, Chunk] = {}
        self._folder.mkdir(parents=True, exist_ok=True)
        with _quiet(), tempfile.NamedTemporaryFile(dir=self._folder, prefix="chunks-") as file:
            feed = _Feed(file)

            def fill() -> None:
                while not feed.ended and len(on_their_way) < AHEAD * self._pool.workers:
                    chunk = next(chunks, None)
                    if chunk is None:
                        feed.end()
                    else:
                        on_their_way[feed.add(chunk)] = chunk

            fill()
            if not on_their_way:
                return
            with closing(self._rows(Path(file.name))) as rows:
                for row in rows:
                    chunk = on_their_way.pop(row["place"])
                    fill()
                    yield chunk, _opened(row["outcome"])

    def _rows(self, file: Path) -> Generator[dict[str, Any], None, None]:
        """The outcomes as they come; closing it lets the actors go."""
        tables = self._tables(file)
        trouble = ""
        try:
            for table in tables:
                yield from table.to_pylist()
        except ray.exceptions.RayError as error:
            trouble = _described(error)
        finally:
            tables.close()
        if trouble:
            del tables
            gc.collect()  # what the error held, too: actors live as long as a handle of theirs
            raise RuntimeError(trouble)

    def _tables(self, file: Path) -> Any:
        """A generator of Arrow tables; closing it kills the actors."""
        source = ray.data.read_datasource(_ChunksDatasource(file), num_cpus=0, override_num_blocks=1)
        _set(source.context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the last two have no new names yet
            outcomes: Dataset = source.map_batches(
                _Actor,
                batch_size=1,
                batch_format="pyarrow",
                fn_constructor_args=(self._plan,),
                compute=ActorPoolStrategy(size=self._pool.workers, max_tasks_in_flight_per_actor=IN_FLIGHT),
                num_cpus=self._pool.cpus,
                num_gpus=self._pool.gpus,
                max_restarts=-1,
                max_task_retries=TRIES - 1,
            )
        return iter(outcomes.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))


def _described(error: Exception) -> str:
    """What went wrong with Ray; what goes wrong in the work of a chunk comes as an outcome."""
    if isinstance(error, ray.exceptions.RayActorError) and not error.actor_init_failed:
        return (
            f"{TRIES} workers in turn were lost over one chunk; where memory ran out, take fewer workers or a "
            f"smaller batch size ({error})"
        )
    return f"Ray failed: {error}"


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
        return _Pool(workers, 1, 1 if share == 1 else math.floor(10_000 / share) / 10_000)  # as fine as Ray counts
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
        with warnings.catch_warnings(), _environment(_QUIET):
            warnings.simplefilter("ignore", FutureWarning)  # Ray's hints about its own future
            ray.init(address, **options)
        yield


def _short_folder() -> tempfile.TemporaryDirectory[str]:
    """The paths of Ray's sockets are 64 characters longer, and the system takes no more than 107."""
    parent = tempfile.gettempdir()
    return tempfile.TemporaryDirectory(
        prefix="mars-ray-", dir=parent if len(parent) < 24 else "/tmp", ignore_cleanup_errors=True
    )


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """With ``values`` of variables that are not set."""
    new = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _set(context: DataContext) -> None:
    """How Ray Data goes about it."""
    context.target_max_block_size = 1  # a block, and with it a task, for each chunk
    context.execution_no_progress_timeout_s = -1  # a chunk may take as long as it takes
    context.enable_progress_bars = False
    context.print_on_execution_start = False


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray Data tells of problems only."""
    levels = {"ray.data": logging.WARNING, **dict.fromkeys(_TALKATIVE, logging.CRITICAL)}
    loggers = [logging.getLogger(name) for name in levels]
    before = [logger.level for logger in loggers]
    for logger, level in zip(loggers, levels.values(), strict=True):
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


class _Feed:
    """The file of chunks, as it is written: each chunk after its length, and a mark at the end."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._count = 0
        self.ended = False

    def add(self, chunk: Chunk) -> int:
        """Its place among all chunks of the map."""
        record = pickle.dumps(chunk)
        self._write(len(record).to_bytes(_LENGTH) + record)
        self._count += 1
        return self._count - 1

    def end(self) -> None:
        self._write(_END.to_bytes(_LENGTH))
        self.ended = True

    def _write(self, record: bytes) -> None:
        self._file.write(record)
        self._file.flush()


class _ChunksDatasource(Datasource):
    """The chunks of a file, as it is written; read on this machine, by one task.

    The task can be done again from the start, as the file stays.
    """

    supports_distributed_reads = False

    def __init__(self, file: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._file = file

    def estimate_inmemory_data_size(self) -> None:
        """Not known."""

    def get_read_tasks(self, *_: Any, **__: Any) -> list[ReadTask]:
        """One task, which goes on until the last chunk is written."""
        file = self._file
        metadata = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(lambda: _follow(file), metadata)]


def _follow(path: Path) -> Iterator[pa.Table]:
    """A row for each chunk: its place and its record."""
    with path.open("rb") as file:
        place = 0
        while (length := int.from_bytes(_await(path, file, _LENGTH))) != _END:
            yield pa.table({"place": [place], "record": [_await(path, file, length)]})
            place += 1


def _await(path: Path, file: BinaryIO, size: int) -> bytes:
    """The next ``size`` bytes, as soon as they are all written."""
    found = file.read(size)
    while len(found) < size:
        if not path.exists():
            raise FileNotFoundError(f"{path} is gone: its map has ended")
        time.sleep(_PAUSE)
        found += file.read(size - len(found))
    return found


class _Actor:
    """A worker of the pool; it keeps its models from one chunk to the next."""

    def __init__(self, plan: Any) -> None:
        self._worker = Worker(ray.get(plan))

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The place and the outcome of the chunk."""
        (row,) = batch.to_pylist()
        return pa.table({"place": [row["place"]], "outcome": [self._outcome(row["record"])]})

    def _outcome(self, record: bytes) -> bytes:
        """The results, or the exception: Ray would try again, or wrap it in its own."""
        try:
            return pickle.dumps(self._worker.work(pickle.loads(record)))
        except Exception as error:
            return _packed(error)


def _packed(error: Exception) -> bytes:
    """The exception with its traceback as a note; one that cannot be sent becomes a RuntimeError."""
    note = "In a worker:\n" + "".join(traceback.format_exception(error))
    for one in (error, RuntimeError(f"{type(error).__name__}: {error}")):
        one.__dict__.pop("__notes__", None)
        one.add_note(note)
        with suppress(Exception):
            packed = pickle.dumps(one)
            if str(pickle.loads(packed)) == str(one):
                return packed
    raise error


def _opened(outcome: bytes) -> list[bytes]:
    found = pickle.loads(outcome)
    if isinstance(found, Exception):
        raise found
    return list(found)
