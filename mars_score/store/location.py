"""The store's folder, which holds data and no code and is private to its owner, and the limit of its size."""

from __future__ import annotations

import math
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

Store = str | os.PathLike[str] | bool | None
LIMIT = 10 * 2**30  # bytes


def store_folder(store: Store = None) -> Path | None:
    """The store's folder: None: ``MARS_STORE`` or the user's cache folder; a path: that; False: none."""
    if store is False:
        return None
    if store is None:
        import platformdirs

        store = os.environ.get("MARS_STORE") or platformdirs.user_cache_dir("mars_score")
    if not isinstance(store, (str, os.PathLike)):
        raise TypeError(
            f"store must be a folder, None (the default folder) or False (save nothing), got {store!r}"
        )
    return Path(store).expanduser()


def size_limit() -> int:
    """Bytes that a store's file may have: ``MARS_STORE_LIMIT`` (GiB), else ``LIMIT``."""
    text = os.environ.get("MARS_STORE_LIMIT")
    if not text:
        return LIMIT
    with suppress(ValueError):
        if 0 < (limit := float(text) * 2**30) < math.inf:
            return math.ceil(limit)
    raise ValueError(f"MARS_STORE_LIMIT must be a positive number (GiB), got {text!r}")


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; one that is there keeps its mode, parents have the usual one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_to_others(folder: Path) -> str | None:
    """Why other users could plant results in a folder, in words; None: they could not, or it is not there."""
    if sys.platform == "win32":
        return None
    try:
        state = folder.stat()
    except OSError:
        return None
    if state.st_mode & stat.S_IWOTH:
        return "everyone may write to it"
    if os.geteuid() != 0 and state.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user (number {state.st_uid})"
    return None
