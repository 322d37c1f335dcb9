"""Files and folders that are there whole or not at all, and folders that only their owner can read."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside ``path`` for a new file or folder, which takes its place when the block ends well.

    A folder that is already there stays: another process was faster.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield beside
        if not (beside.is_dir() and target.is_dir()):
            os.replace(beside, target)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8 that is there whole, or as it was before."""
    with replaced(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; one that is there keeps its mode, parents have the usual one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
