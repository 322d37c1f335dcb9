"""Scores as files to download: CSV without formulas that a spreadsheet would run, and JSONL."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full-width ones, too
_KEPT_SECONDS = 3600


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


def to_jsonl(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as one JSON object per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


class Downloads:
    """Files for visitors in a temporary folder, deleted after an hour or when the process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mars-space-")

    def write(self, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
        """The paths of a CSV and a JSONL file with the rows."""
        return self.keep("mars-scores.csv", to_csv(rows)), self.keep("mars-scores.jsonl", to_jsonl(rows))

    def keep(self, name: str, content: str | bytes) -> str:
        """The path of a new file with this name and content."""
        self._sweep()
        path = Path(tempfile.mkdtemp(dir=self._folder.name)) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def _sweep(self) -> None:
        for folder in Path(self._folder.name).iterdir():
            if time.time() - folder.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
