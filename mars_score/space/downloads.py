"""Scores as files to download: CSV without formulas that a spreadsheet would run, and JSONL."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mars_score.data.files import row_line

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full-width ones, too
LIFETIME = 3600  # seconds


def harmless(text: str) -> str:
    """A cell that a spreadsheet does not compute: an apostrophe is put before the start of a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA[:4]) else text


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with equal keys as CSV with a header."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in row.values()])
    return out.getvalue()


class Downloads:
    """Files for visitors in a temporary folder, deleted after an hour or when the process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mars-space-")

    def write(self, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
        """The paths of a CSV and a JSONL file with the rows."""
        return self.add("mars-scores.csv", to_csv(rows)), self.add(
            "mars-scores.jsonl", "".join(map(row_line, rows))
        )

    def add(self, name: str, content: str) -> str:
        """The path of a new file with this name and content."""
        self._sweep()
        path = Path(tempfile.mkdtemp(dir=self._folder.name)) / name
        path.write_bytes(content.encode())
        return str(path)

    def _sweep(self) -> None:
        for folder in Path(self._folder.name).iterdir():
            if time.time() - folder.stat().st_mtime > LIFETIME:
                shutil.rmtree(folder, ignore_errors=True)
