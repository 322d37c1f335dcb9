"""How models are run: outside the caller's torch modes, by one thread at a time, as much at once as memory allows.

A process that is forked after scoring scores with one thread: OpenMP's threads do not live on in it, and torch
would wait for them for ever. A model on a GPU cannot be used in it at all; use "spawn".
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

T = TypeVar("T")
R = TypeVar("R")
CPU_CACHE_BYTES = 2**30
SHARE_OF_FREE = 0.3  # of a GPU's free memory; planning needs about as much again as the cache


@contextmanager
def ordinary_mode(*, grad: bool = False) -> Iterator[None]:
    """Leave ``inference_mode``, whose weights have no gradients, and autocast, which changes numbers."""
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.set_grad_enabled(grad))
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                modes.enter_context(torch.autocast(device_type, enabled=False))
        yield


_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # of each model in use
_locks_lock = threading.Lock()


def _after_fork() -> None:
    """In a forked process no other thread lives on: none that computes, and none that would release a lock."""
    global _locks_lock
    _locks_lock = threading.Lock()
    _locks.clear()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def exclusive(model: Any) -> Iterator[None]:
    """The model for this thread alone, without dropout; re-entrant. Afterwards its modules' modes are restored."""
    with _locks_lock:
        lock = _locks.setdefault(model, threading.RLock())
    with lock:
        modules = model.modules() if isinstance(model, torch.nn.Module) else ()
        training = [module for module in modules if module.training]
        if training:
            model.eval()
        try:
            yield
        finally:
            for module in training:
                module.training = True


def position_limit(model: Any) -> int | None:
    """The number of positions that tokens can take, special ones included; None: the model has no such limit.

    RoBERTa and its relatives count positions from the id of the padding token on: the first ones are never used.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:  # relative positions
        return None
    tables = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    paddings = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
    return positions - max((padding + 1 for padding in paddings), default=0)


def cache_bytes(device: torch.device) -> int:
    """Memory for the cached keys and values of a batch, in bytes."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(SHARE_OF_FREE * (free + unused))
    return CPU_CACHE_BYTES


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch or Python could not allocate memory (torch has no exception class for that on the CPU)."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


@dataclass
class BatchSize:
    """The largest number of items that are processed together; halved where memory runs out."""

    size: int

    def run(self, attempt: Callable[[int], T], most: int) -> T:
        """``attempt(size)``, repeated with half the size until memory is sufficient."""
        while True:
            size = min(self.size, most)
            try:
                return attempt(size)
            except (RuntimeError, MemoryError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            self.size = size // 2

    def map(
        self,
        work: Callable[[list[T]], Sequence[R]],
        items: Sequence[T],
        length: Callable[[T], int],
        done: Callable[[T, R], None] | None = None,
    ) -> list[R]:
        """The result of each item, in order; ``work`` gets items of similar length, the longest first."""
        order = sorted(range(len(items)), key=lambda index: -length(items[index]))
        results: dict[int, R] = {}

        def attempt(size: int) -> Sequence[R]:
            return work([items[index] for index in order[:size]])

        while order:
            of_batch = self.run(attempt, len(order))
            batch, order = order[: len(of_batch)], order[len(of_batch) :]
            for index, result in zip(batch, of_batch, strict=True):
                results[index] = result
                if done:
                    done(items[index], result)
        return [results[index] for index in range(len(items))]
