"""A run's work on a Ray cluster: Ray Data's ``map_batches``, with a scorer in each actor."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mars_score.data.validation import Row
from mars_score.errors import WorkerError
from mars_score.models.devices import wait_asleep
from mars_score.runs.workers import Work, Worker
from mars_score.store.lookup import from_json, to_json

try:
    import pyarrow
    import ray
    import ray.data
except ImportError as error:
    raise ImportError("Ray is not installed; run: pip install 'mars-score[ray]'") from error

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}  # for a Ray that is started here


class _Actor:
    """A worker in a process of the cluster."""

    def __init__(self, work: Work) -> None:
        wait_asleep()  # on another machine nobody has set it
        self._worker = Worker(work)

    def __call__(self, batch: Any) -> Any:
        rows = [Row.from_lists(from_json(row)) for row in batch.column("row").to_pylist()]
        return pyarrow.table({"result": self._worker(rows)})


def on_ray(
    work: Work, chunks: Iterable[Sequence[Row]], workers: int | None, address: str | None
) -> Iterator[bytes]:
    """The results of all rows, in order, by actors; the work's store is a folder on each machine.

    Without ``workers`` there is an actor for each GPU of the cluster, or for each CPU. ``address`` is as for
    ``ray.init``; None: that of ``RAY_ADDRESS``, else a new Ray on this machine, which is shut down at the end.
    """
    with _connected(address or os.environ.get("RAY_ADDRESS") or "local"):
        resources: dict[str, Any] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0)) if work.arguments.get("device") != "cpu" else 0
        actors = workers or gpus or max(1, int(resources.get("CPU", 1)))
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        blocks: list[Any] = [ray.put(pyarrow.table({"row": [to_json(row) for row in rows]})) for rows in chunks]
        scored = ray.data.from_arrow_refs(blocks).map_batches(
            _Actor,
            fn_constructor_args=(work,),
            batch_size=None,  # a block
            batch_format="pyarrow",
            concurrency=actors,
            num_gpus=min(1.0, gpus / actors) if gpus else None,
        )
        try:
            batch: Any
            for batch in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
                yield from batch.column("result").to_pylist()
        except ray.exceptions.RayError as error:
            raise _reason(error) from None


def _reason(error: BaseException) -> BaseException:
    """What a worker raised, out of the exceptions that Ray wraps around it; where that is lost, what Ray says."""
    reason: BaseException | None = error
    while isinstance(reason, ray.exceptions.RayError):
        reason = getattr(reason, "cause", None) or reason.__cause__
    last = next((line for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")
    return reason or WorkerError(f"Ray failed: {last}")


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """Connected to a Ray; a local one has a folder of its own, and both are gone afterwards."""
    if ray.is_initialized():
        yield
        return
    if address.startswith("ray://"):
        raise ValueError(
            f"{address} is for Ray Client; run on a machine of the cluster, with its address (host:port) or 'auto'"
        )
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as stack:
        if address == "local":
            options |= {"include_dashboard": False, "_temp_dir": stack.enter_context(_short_folder())}
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
