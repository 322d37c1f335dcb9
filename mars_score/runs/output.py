"""The output of a run: written beside its place, in the format of its name, and moved there when complete."""

import errno
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.data.files import row_line
from mars_score.data.writers import convert

STDOUT = "-"  # as a name of an output


@contextmanager
def run_folder(out: str | None) -> Iterator[Path]:
    """A folder for what a run computes, beside its output if that is a file; removed at the end."""
    parent = None
    if out is not None and not is_stream(out):
        target = Path(os.path.realpath(out))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), out)
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{out}: the folder {target.parent} does not exist; make it first")
        parent = target.parent
    try:
        made = tempfile.TemporaryDirectory(prefix=".mars-run-", dir=parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, out or tempfile.gettempdir()) from None
    with made as folder:
        yield Path(folder)


def is_stream(out: str) -> bool:
    """Whether an output is no file that can be replaced: standard output, /dev/stdout, a pipe."""
    if out == STDOUT:
        return True
    path = Path(os.path.abspath(out))
    device = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    return device or (path.exists() and not path.is_file() and not path.is_dir())


def write(rows: Iterable[dict[str, Any]], folder: Path, out: str) -> None:
    """Write rows and move them into their place; OSErrors name the output."""
    try:
        if out == STDOUT:
            for row in rows:
                sys.stdout.buffer.write(row_line(row).encode())
            sys.stdout.buffer.flush()
        elif is_stream(out):
            with open(out, "ab") as sink:
                sink.writelines(row_line(row).encode() for row in rows)
        else:
            lines = folder / "rows.jsonl"
            with lines.open("wb") as file:
                file.writelines(row_line(row).encode() for row in rows)
                file.flush()
                os.fsync(file.fileno())
            os.replace(convert(lines, out), os.path.realpath(out))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, out) from None
