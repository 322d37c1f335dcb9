"""Write files and folders atomically, and make private and temporary folders."""

import errno
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))


def check_replaceable(*paths: str | os.PathLike[str]) -> None:
    """Check that existing files may be replaced, also by the superuser.

    Raises:
        PermissionError: a file is read-only.
    """
    for path in paths:
        if os.path.isfile(path) and not (os.stat(path).st_mode & 0o222 and os.access(path, os.W_OK)):
            fault = "the file is read-only; name another, or allow writing"
            raise PermissionError(errno.EACCES, fault, os.fspath(path))


def keep_mode(target: Path, new: Path) -> None:
    """Give a new file the mode and, if permitted, the owner of the file that it will replace."""
    if not target.is_file():
        return
    state = target.stat()
    if hasattr(os, "chown"):
        for user, group in ((state.st_uid, -1), (-1, state.st_gid)):
            with suppress(OSError):
                os.chown(new, user, group)
    shutil.copymode(target, new)  # last, as chown changes the mode


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path for a new file or folder, which replaces ``path`` when the block ends without an error.

    A folder that another process has made meanwhile stays. A file keeps its mode and, if permitted, its owner.

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
    """Write a text file in UTF-8. On an error the old file stays."""
    with replaced(path) as beside:
        if os.path.isfile(path):
            beside.touch(mode=0o600)  # Others must not read it before it has the mode of the old file.
        beside.write_text(text, encoding="utf-8", newline="\n")


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read. An existing folder keeps its mode."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end of the block, and remove those of processes that were killed.

    Args:
        prefix: start of its name, which also identifies machine and process.
        parent: the folder to make it in, or None for the system's folder of temporary files.
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
    """Tell whether a process of this machine is or may be alive."""
    if os.name != "posix":  # On Windows, signal 0 would end the process.
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
    """Add the file's name to errors of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
