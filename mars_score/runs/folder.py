"""The folder of a run: for one process at a time, one input and one set of settings; removed at the end."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mars_score.runs.records import FILE

SUFFIX = ".run"
STDOUT = "-"  # as a name of an output
_LOCK = "lock"


@contextmanager
def run_folder(out: str | None, *, restart: bool = False) -> Iterator[Path]:
    """The folder of the run that writes ``out``, locked for this process.

    It stands beside the output and stays until :func:`finish`, so that a stopped run can go on. Without an output,
    or where it is a pipe, it is a temporary one.

    Args:
        out: the file to be written, or None.
        restart: discard what an earlier run has done.

    Raises:
        OSError: the output's folder is missing or cannot be written, or the output is a folder.
        ValueError: another process holds the folder.
    """
    if out is None or is_stream(out):
        with tempfile.TemporaryDirectory(prefix="mars-run-") as temporary:
            yield Path(temporary)
        return
    target = Path(os.path.realpath(out))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), out)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {target.parent} does not exist; make it first")
    folder = target.with_name(target.name + SUFFIX)
    folder.mkdir(mode=0o700, exist_ok=True)
    with _locked(folder):
        if restart:
            _remove_records(folder)
        yield folder


def is_stream(out: str) -> bool:
    """Whether an output is no file that can be replaced: standard output, /dev/stdout, a pipe."""
    if out == STDOUT:
        return True
    path = Path(os.path.abspath(out))
    device = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    return device or (path.exists() and not path.is_file() and not path.is_dir())


def finish(folder: Path) -> None:
    """Remove the folder; first the records, from which a run would go on."""
    _remove_records(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_records(folder: Path) -> None:
    for name in (FILE, f"{FILE}-journal"):  # SQLite ignores a journal without its file
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder until the block or the process ends, where the system can."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with open(folder / _LOCK, "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another process uses {folder}; let it finish, or stop it") from None
        yield
