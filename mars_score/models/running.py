"""Run models on a device, in one thread at a time, outside the caller's torch modes, in batches that fit.

torch is imported late, so importing this module is fast. A process that is forked after scoring computes with one
thread, as OpenMP's threads are not forked and torch would wait for them for ever. Such a process cannot use a GPU.
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

# Memory for cached keys and values. Planning needs about as much again.
CPU_CACHE_BYTES = 2**30
GPU_CACHE_SHARE = 0.3  # of the free memory


# Runtime and devices


@dataclass(frozen=True)
class Runtime:
    """Options that all parts of a scorer share besides its settings.

    Attributes:
        batch_size: maximum jobs or texts per forward pass of the language model, at least 1, or None to choose by
            device and free memory.
        encoder_batch_size: maximum texts per forward pass of the encoder and the NLI model, at least 1, or None
            for their defaults.
        device: device of the models, or None for CUDA if it is available, else the CPU.
        store: keeps outputs of models. Its folder also holds unpacked models.
        progress: called as ``progress(stage, done, total)``, first with 0 done. None for no reports.
    """

    batch_size: int | None = None
    encoder_batch_size: int | None = None
    device: str | None = None
    store: ResultStore = field(default_factory=lambda: ResultStore(None))
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
        """Yield the results of ``compute``, and report progress before the first and after the use of each."""
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
    """Return the name of a torch number type. ``"auto"`` stands for the one that is fast on a device.

    That is bfloat16 on a GPU or CPU that multiplies it (AMX, AVX-512 BF16), else float32.

    Args:
        dtype: ``"auto"``, or a name, which is returned unchanged.
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
        able: Mapping[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # Older versions lack it.
        fast = able.get("amx_bf16", False) or able.get("avx512_bf16", False)
    return "bfloat16" if fast else "float32"


def position_limit(model: Any) -> int | None:
    """Return the largest number of tokens, including special ones, or None if the model has no limit.

    RoBERTa and similar models count positions from the padding token's id on, so they never use the first ones.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:  # relative positions
        return None
    tables = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    paddings = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
    return positions - max((padding + 1 for padding in paddings), default=0)


# Modes and threads


@contextmanager
def ordinary_mode(*, grad: bool = False) -> Iterator[None]:
    """Leave ``inference_mode``, whose tensors have no gradients, and autocast, which changes numbers."""
    import torch

    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.set_grad_enabled(grad))
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                modes.enter_context(torch.autocast(device_type, enabled=False))
        yield


_locks: WeakKeyDictionary[object, ForkSafeLock] = WeakKeyDictionary()  # a lock for each model in use
_locks_lock = ForkSafeLock()


def _use_one_thread() -> None:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)


@contextmanager
def exclusive(model: object) -> Iterator[None]:
    """Keep a model for this thread and in evaluation mode. Its modules' modes are restored afterwards.

    A thread may enter this again. A generator must yield outside of this and of :func:`ordinary_mode`: values are
    then used in the caller's modes, other threads can run the model meanwhile, and a generator that is not
    exhausted leaves nothing to undo.
    """
    import torch

    with _locks_lock:
        lock = _locks.setdefault(model, ForkSafeLock())
    with lock:
        modules = model.modules() if isinstance(model, torch.nn.Module) else ()
        training = [module for module in modules if module.training]
        try:
            for module in training:
                module.training = False
            yield
        finally:
            for module in training:
                module.training = True


def set_passive_omp_wait() -> None:
    """Let OpenMP's threads sleep while they wait, instead of slowing other processes down.

    Call this before torch is imported, and only in a process that MARS started.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


_blas_lock = ForkSafeLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy multiply in one thread. A row's matrices are too small for more."""
    with _blas_lock, _blas().limit(limits=1):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


# Memory


def cache_bytes(device: torch.device) -> int:
    """Return the maximum size in bytes of a batch's cached keys and values."""
    import torch

    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(GPU_CACHE_SHARE * (free + unused))
    return CPU_CACHE_BYTES


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, in Python or in torch."""
    import torch

    # On the CPU torch raises a plain RuntimeError.
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


@dataclass
class BatchSize:
    """The maximum number of items that are processed together. It is halved for good when memory runs out."""

    size: int

    @contextmanager
    def attempt(self, most: int) -> Iterator[int]:
        """Yield a size of at most ``most``. Where memory runs out in the block, halve the size and leave it."""
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
        """Yield each item with its result, longest first. ``work`` gets batches of items of similar length."""
        waiting = sorted(items, key=length, reverse=True)
        while waiting:
            with self.attempt(len(waiting)) as size:
                yield from zip(waiting, work(waiting[:size]), strict=False)
                del waiting[:size]
