"""Where models run, and threads that do not wait at other processes' expense."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limiting = threading.Lock()


def pick_device(device: str | None) -> str:
    """The given device, else CUDA where there is one, else the CPU; ValueError: it is not available here."""
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(device)
    return device


def check_device(device: str | None) -> None:
    """As :func:`pick_device`, but without initialising CUDA, so that processes may be forked."""
    if device in (None, "cpu"):
        return
    import torch

    try:
        place = torch.device(device)
        if place.type != "cuda":
            torch.empty(0, device=place)
        elif (place.index or 0) >= torch.cuda.device_count():
            raise RuntimeError(f"number of CUDA devices: {torch.cuda.device_count()}")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r} is not available ({str(error).splitlines()[0]})") from error


def wait_asleep() -> None:
    """In a process of MARS's own, before torch is imported: threads of OpenMP do not spin while they wait."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy multiplies matrices in one thread: those of a row are so small that several would only wait."""
    with _limiting, _blas().limit(limits=1):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
