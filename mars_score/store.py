"""The folder for what is kept between processes."""

from __future__ import annotations

import os
from pathlib import Path

Store = str | os.PathLike[str] | bool | None


def store_folder(store: Store = None) -> Path | None:
    """The store's folder: None: ``MARS_STORE`` or the user's cache folder; a path: that; False: nothing is kept.

    Raises:
        TypeError: ``store`` is something else.
    """
    if store is False:
        return None
    if store is None:
        import platformdirs

        store = os.environ.get("MARS_STORE") or platformdirs.user_cache_dir("mars_score")
    if not isinstance(store, (str, os.PathLike)):
        raise TypeError(
            f"store must be a folder, None (the default folder) or False (keep nothing), got {store!r}"
        )
    return Path(store).expanduser()
