"""The last pass of a run: its output, written beside its place and put there when it is whole."""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mars_score.augmentation import cuts
from mars_score.data.files import row_line
from mars_score.diagnostics import Notices
from mars_score.result import augmented_to_dict
from mars_score.runs.folder import is_stream
from mars_score.runs.output import GrowingFile
from mars_score.runs.records import Records
from mars_score.runs.run import Run
from mars_score.runs.tally import Tally

ROWS = "rows.jsonl"  # becomes the output
_SCORES = "scores.f64"
_FLUSH_SECONDS = 2.0  # what is written is made safe this often


def write_scores(run: Run, folder: Path, *, rows: bool) -> Tally:
    """Score all rows.

    Args:
        run: augmented, and all is read.
        folder: its folder.
        rows: whether to write the rows with their scores.
    """
    with _Output(run.records, folder, [_SCORES, *([ROWS] if rows else [])]) as output:
        tally = Tally.from_dict(output.state) if output.state else Tally()
        for one in run.scored(tally.rows):
            scores = [row.score for row in one.rows]
            tally.add(one.part.candidates, scores, one.flags)
            parts = {_SCORES: struct.pack(f"<{len(scores)}d", *scores)}
            if rows:
                scored = zip(one.part.file.rows, scores, strict=True)
                parts[ROWS] = "".join(row_line({**row, "mars": score}) for row, score in scored).encode()
            output.add(parts, tally.to_dict())
    return tally


def write_augmented(run: Run, folder: Path) -> Notices:
    """Write all rows with their augmented references; the run's references have been augmented."""
    with _Output(run.records, folder, [ROWS]) as output:
        notices = Notices(**output.state) if output.state else Notices()
        for one in run.augmented(notices.rows):
            lines = []
            for row, augmented in zip(one.part.file.rows, one.augmented, strict=True):
                references = [each.reference for each in augmented]
                plain = dict.fromkeys(text for reference in references for text in reference.texts)
                details = [augmented_to_dict(reference) for reference in references]
                lines.append(row_line({**row, "augmented_references": list(plain), "augmentations": details}))
            notices.add(cuts(one.augmented))
            output.add({ROWS: "".join(lines).encode()}, notices.to_dict())
    return notices


def read_scores(folder: Path) -> Iterator[float]:
    """The scores of all rows, as :func:`write_scores` has written them."""
    with open(folder / _SCORES, "rb") as file:
        while some := file.read(8 * 4096):
            yield from (score for (score,) in struct.iter_unpack("<d", some))


def place(folder: Path, out: str) -> None:
    """Put the output of a complete run into its place; nothing where that has been done.

    Raises:
        OSError: it cannot be put there.
    """
    made = folder / ROWS
    if not made.exists():
        return
    if is_stream(out):
        with made.open("rb") as source, open(out, "ab") as sink:
            shutil.copyfileobj(source, sink)
    else:
        os.replace(made, os.path.realpath(out))


class _Output:
    """The files of a run that grow together, and a state that fits their lengths.

    Attributes:
        state: what was given with the last rows that are whole; None: there are none.
    """

    def __init__(self, records: Records, folder: Path, names: list[str]) -> None:
        self._records = records
        written = records.fact("written") or {"lengths": {}, "state": None}
        self.state: Any = written["state"]
        self._files = {name: GrowingFile(folder / name, written["lengths"].get(name, 0)) for name in names}
        self._flushed = time.monotonic()

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            for file in self._files.values():
                file.close()

    def add(self, parts: Mapping[str, bytes], state: Any) -> None:
        """The next rows of each file."""
        for name, data in parts.items():
            self._files[name].write(data)
        self.state = state
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        for file in self._files.values():
            file.flush()
        lengths = {name: file.length for name, file in self._files.items()}
        self._records.note("written", {"lengths": lengths, "state": self.state})
        self._flushed = time.monotonic()
