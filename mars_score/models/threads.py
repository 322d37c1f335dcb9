"""Threads of OpenMP and BLAS, kept from waiting for each other at other processes' expense."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limiting = threading.Lock()


def wait_asleep() -> None:
    """In a process of MARS's own, before torch is imported: OpenMP's threads sleep while they wait.

    Threads that spin while they wait slow down other processes on the same cores many times. What the environment
    says counts.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy multiplies matrices in one thread.

    Those of a row are small: several threads wait for each other, spinning, longer than they work.
    """
    with _limiting, _blas().limit(limits=1):
        yield


@cache
def _blas() -> Any:
    """NumPy's."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
