"""A run's output while it grows: a file that is cut back, after a stop, to what is known to be whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class GrowingFile:
    """A file that grows from a known length; the caller remembers its length after each :meth:`flush`.

    Args:
        path: made where it is missing.
        length: bytes that are known to be whole; what stands behind them is cut off.

    Raises:
        OSError: the file cannot be written.
        ValueError: it is shorter than ``length``.
    """

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        self.length = length
        self._file = open(path, "ab")  # noqa: SIM115 (closed by close)
        if os.fstat(self._file.fileno()).st_size < length:
            self._file.close()
            raise ValueError(f"{path} is shorter than it was; begin anew with --restart")
        self._file.truncate(length)

    def write(self, data: bytes) -> None:
        """Add to the end."""
        with self._telling():
            self._file.write(data)
        self.length += len(data)

    def flush(self) -> None:
        """Have all that was written on the disk."""
        with self._telling():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file; what was not flushed may be lost."""
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # Python does not name the file
            raise OSError(error.errno, error.strerror, str(self.path)) from error
