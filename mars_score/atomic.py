"""Write files and folders whole or not at all, and make private and temporary folders."""

import errno
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))  # errors of a full disk


def check_replaceable(*paths: str | os.PathLike[str]) -> None:
    """Check that files, if they are there, may be replaced.

    Raises:
        PermissionError: one is read-only, which the superuser respects as well.
    """
    for path in paths:
        if os.path.isfile(path) and not (os.stat(path).st_mode & 0o222 and os.access(path, os.W_OK)):
            fault = "the file is read-only; name another, or allow writing"
            raise PermissionError(errno.EACCES, fault, os.fspath(path))


def keep_mode(target: Path, new: Path) -> None:
    """Give a new file the mode of the file that it will replace, if there is one, and where possible its owner."""
    if not target.is_file():
        return
    state = target.stat()
    if hasattr(os, "chown"):
        for user, group in ((state.st_uid, -1), (-1, state.st_gid)):
            with suppress(OSError):
                os.chown(new, user, group)
    shutil.copymode(target, new)  # Last, as a change of the owner changes the mode.


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path for a new file or folder, which replaces ``path`` when the block ends without an error.

    A folder that another process has made meanwhile stays. A file keeps its mode and, where possible, its owner.

    Raises:
        PermissionError: the file at ``path`` is read-only.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield beside
        if not (beside.is_dir() and target.is_dir()):
            keep_mode(target, beside)
            os.replace(beside, target)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8; on an error the file stays as it was."""
    with replaced(path) as beside:
        if os.path.isfile(path):
            beside.touch(mode=0o600)  # Nobody else may read it before it has the mode of the file.
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
