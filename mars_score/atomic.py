"""Files and folders: whole or not there at all, for their owner alone, or for as long as a process runs."""

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
    """Give a path beside ``path`` for a new file or folder, which takes its place when the block ends well.

    A folder that is already there stays: another process was faster. A file keeps its mode and, where possible,
    its owner.

    Raises:
        PermissionError: a file that is there is read-only.
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
    """Write a file in UTF-8 that is there whole, or as it was before."""
    with replaced(path) as beside:
        if os.path.isfile(path):
            beside.touch(mode=0o600)  # Nobody else may read it before it has the mode of the file.
        beside.write_text(text, encoding="utf-8", newline="\n")


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; one that is there keeps its mode, parents have the usual one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Make a folder for this process, removed at the end; also remove those of processes that were killed.

    Args:
        prefix: of its name, which also names machine and process.
        parent: where it is made; None: the system's folder of temporary files.
    """
    parent = Path(parent or tempfile.gettempdir())
    machine = f"{prefix}{zlib.crc32(socket.gethostname().encode()):08x}-"
    for left in parent.glob(f"{machine}*"):
        process = left.name.removeprefix(machine).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{machine}{os.getpid()}-", dir=parent) as folder:
        yield Path(folder)


def _is_alive(process: int) -> bool:
    """Tell whether a process of this machine is alive, or belongs to somebody else."""
    if os.name != "posix":  # There a signal of 0 ends the process.
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
    """Let an error of a full disk name the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
