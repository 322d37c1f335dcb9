"""How models are used: outside the caller's torch modes, in evaluation mode, and by one thread at a time.

A process that is forked after scoring scores with one thread: OpenMP's threads do not live on in it, and torch
would wait for them for ever. A model on a GPU cannot be used in it at all; use "spawn".
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch


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
