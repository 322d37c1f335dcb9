"""Leaving the callers' torch modes: MARS differentiates even when called under no_grad."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """No dropout while MARS uses a model, whatever mode its owner left it in."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
