"""Run models on a device, in one thread at a time, outside the caller's torch modes, in batches that fit.

Importing this module is light: torch is imported by the functions that need it. A process that is forked after
scoring computes with one thread, since OpenMP's threads are not forked and torch would wait for them for ever. It
cannot use a model on a GPU at all; use "spawn" for that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from mars_score.cache import ResultStore
from mars_score.locks import ForkSafeLock
from mars_score.progress import Progress

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
R = TypeVar("R")

# Memory for cached keys and values: a fixed size on a CPU, a share of the free memory on a GPU. Planning needs
# about as much again as the cache.
CPU_CACHE_BYTES = 2**30
FREE_SHARE = 0.3


# Runtime and devices


@dataclass(frozen=True)
class Runtime:
    """Options that all parts of a scorer share besides its settings; batch sizes are positive integers."""

    # Most jobs or texts per forward pass of the language model; None to choose by device and free memory.
    batch_size: int | None = None
    encoder_batch_size: int | None = None  # most texts per forward pass of the sentence encoder; None for 32
    device: str | None = None  # device of the models; None for CUDA if it is available, else the CPU
    # Saves results; its folder also holds converted models.
    store: ResultStore = field(default_factory=lambda: ResultStore(None))
    # Called as ``progress(stage, done, total)``, first with 0 done; None for no reports.
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "encoder_batch_size"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))  # NumPy's integers cannot be written as JSON.

    def reported(
        self, stage: str, compute: Callable[[Sequence[T]], Iterable[R]], items: Sequence[T]
    ) -> Iterator[R]:
        """Yield the results of ``compute``; report progress before the first and after the use of each."""
        self.report(stage, 0, len(items))
        for done, result in enumerate(compute(items), 1):
            yield result
            self.report(stage, done, len(items))

    def report(self, stage: str, done: int, total: int) -> None:
        """Call ``progress``, if there is one."""
        if self.progress:
            self.progress(stage, done, total)


def pick_device(device: str | None) -> str:
    """Return the device, or if None CUDA if it is available, else the CPU.

    Raises:
        ValueError: the device is not available.
    """
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(device)
    return device


def check_device(device: str | None) -> None:
    """Check that a device is available, without initialising CUDA, so that processes may be forked.

    Raises:
        ValueError: the device is not available.
    """
    if device in (None, "cpu"):
        return
    import torch

    try:
        parsed = torch.device(device)
        if parsed.type != "cuda":
            torch.empty(0, device=parsed)
        elif (parsed.index or 0) >= torch.cuda.device_count():
            raise RuntimeError(f"number of CUDA devices: {torch.cuda.device_count()}")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r} is not available ({str(error).splitlines()[0]})") from error


@cache
def number_type(dtype: str, device: str | None) -> str:
    """Return the name of torch's number type; ``"auto"`` is the type that is fast on a device.

    That is bfloat16 on a GPU or CPU that multiplies it (AMX, AVX-512 BF16), else float32.

    Args:
        dtype: ``"auto"``, or a name, which is returned.
        device: as for :func:`pick_device`.

    Raises:
        ValueError: the device is not available.
    """
    if dtype != "auto":
        return dtype
    import torch

    kind, fast = torch.device(pick_device(device)).type, False
    if kind == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    elif kind == "cpu":
        able: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # Older versions lack it.
        fast = bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    return "bfloat16" if fast else "float32"


def position_limit(model: Any) -> int | None:
    """Return the largest number of tokens, special ones included; None if the model has no limit.

    RoBERTa and similar models count positions from the padding token's id on, so the first ones are never used.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:  # Positions are relative.
        return None
    tables = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    paddings = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
    return positions - max((padding + 1 for padding in paddings), default=0)


# Modes and threads


@contextmanager
def ordinary_mode(*, grad: bool = False) -> Iterator[None]:
    """Leave ``inference_mode``, whose weights have no gradients, and autocast, which changes numbers."""
    import torch

    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.set_grad_enabled(grad))
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                modes.enter_context(torch.autocast(device_type, enabled=False))
        yield


_locks: WeakKeyDictionary[Any, ForkSafeLock] = WeakKeyDictionary()  # A lock for each model in use.
_locks_lock = ForkSafeLock()


def _after_fork() -> None:
    """Compute with one thread."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def exclusive(model: Any) -> Iterator[None]:
    """Keep a model for this thread, without dropout; re-entrant. Its modules' modes are restored afterwards.

    A generator enters this and :func:`ordinary_mode` for each batch, and yields outside of both. So values are
    saved and reported in the caller's modes, other threads may run the model meanwhile, and a generator that is
    not exhausted, as after Ctrl-C, leaves nothing to be undone.
    """
    import torch

    with _locks_lock:
        lock = _locks.setdefault(model, ForkSafeLock())
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


def set_passive_omp_wait() -> None:
    """Let OpenMP's threads sleep while they wait, rather than spin at other processes' expense.

    Call this only in a process that MARS started, before torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


_limiting_blas = ForkSafeLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy multiply in one thread; a row's matrices are so small that more threads would only wait."""
    with _limiting_blas, _blas().limit(limits=1):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


# Memory


def cache_bytes(device: torch.device) -> int:
    """Return the largest size in bytes of a batch's cached keys and values."""
    import torch

    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(FREE_SHARE * (free + unused))
    return CPU_CACHE_BYTES


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, in Python or in torch."""
    import torch

    # torch has no exception class for this on the CPU.
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


@dataclass
class BatchSize:
    """The largest number of items that are processed together; halved for good where memory runs out."""

    size: int

    @contextmanager
    def attempt(self, most: int) -> Iterator[int]:
        """Yield a size, at most ``most``; if memory runs out in the block, halve the size and leave the block."""
        size = min(self.size, most)
        try:
            yield size
        except (RuntimeError, MemoryError) as error:
            if size == 1 or not is_out_of_memory(error):
                raise
            self.size = size // 2

    def map(
        self, work: Callable[[list[T]], Sequence[R]], items: Iterable[T], length: Callable[[T], int]
    ) -> Iterator[tuple[T, R]]:
        """Yield each item with its result, the longest first; ``work`` gets batches of items of similar length."""
        waiting = sorted(items, key=length, reverse=True)
        while waiting:
            with self.attempt(len(waiting)) as size:
                yield from zip(waiting, work(waiting[:size]), strict=False)
                del waiting[:size]
