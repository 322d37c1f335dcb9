"""How models are used: outside the caller's torch modes, in evaluation mode, and by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch


@contextmanager
def ordinary_mode(*, grad: bool = False) -> Iterator[None]:
    """Leave ``inference_mode`` and autocast; gradients are recorded only with ``grad``.

    Weights that are made inside ``inference_mode`` can never be differentiated through, and autocast
    changes numbers: models are loaded and used under this.
    """
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.set_grad_enabled(grad))
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                modes.enter_context(torch.autocast(device_type, enabled=False))
        yield


@dataclass
class _Use:
    """How a model is in use: by the thread that holds the lock, which entered ``depth`` times."""

    lock: Any = field(default_factory=threading.RLock)
    depth: int = 0


_uses: WeakKeyDictionary[Any, _Use] = WeakKeyDictionary()
_uses_lock = threading.Lock()


@contextmanager
def exclusive(model: Any) -> Iterator[None]:
    """The model for this thread alone, without dropout; afterwards each module is in the mode it was in.

    Other threads that ask for the same model object wait. Re-entrant: a nested use costs next to nothing.

    Args:
        model: a torch module; another object has no modes to restore.
    """
    with _uses_lock:
        use = _uses.setdefault(model, _Use())
    with use.lock:
        training = []
        if not use.depth and isinstance(model, torch.nn.Module):
            training = [module for module in model.modules() if module.training]
            model.eval()
        use.depth += 1
        try:
            yield
        finally:
            use.depth -= 1
            for module in training:
                module.training = True
