"""Packages of the extra ``meta``, which some of the compared metrics need and MARS does not."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str) -> Any:
    """The module of that name.

    Raises:
        ImportError: its package, or one that it imports, is not installed; says how to get it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as fault:
        package = (fault.name or module).partition(".")[0]
        raise ImportError(f"{package} is not installed; run: pip install 'mars-score[meta]'") from fault
