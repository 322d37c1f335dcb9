"""Write files and folders whole or not at all, and make private and temporary folders."""

import errno
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))  # errors of a full disk


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path for a new file or folder, which replaces ``path`` when the block ends without an error.

    A folder that another process has made meanwhile stays.
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
    """Write a text file in UTF-8; on an error the file stays as it was."""
    with replaced(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; an existing folder keeps its mode."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end of the block, and remove those of processes that were killed.

    Args:
        prefix: start of its name, which also names machine and process.
        parent: the folder to make it in; None for the system's folder of temporary files.
    """
    parent = Path(parent or tempfile.gettempdir())
    machine = f"{prefix}{zlib.crc32(socket.gethostname().encode()):08x}-"
    for folder in parent.glob(f"{machine}*"):
        process = folder.name.removeprefix(machine).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{machine}{os.getpid()}-", dir=parent) as path:
        yield Path(path)


def _is_alive(process: int) -> bool:
    """Tell whether a process of this machine is alive, or may be."""
    if os.name != "posix":  # On Windows a signal of 0 ends the process.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
