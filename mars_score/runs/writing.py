"""The last pass of a run: its output, written in the run's folder and moved into its place when it is complete."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mars_score.augment.augmented import cuts
from mars_score.data.files import row_line
from mars_score.data.writers import convert
from mars_score.errors import Notices
from mars_score.runs.folder import STDOUT, is_stream
from mars_score.runs.interval import ScoresByContext
from mars_score.runs.run import Run
from mars_score.runs.tally import Tally
from mars_score.scoring.result import augmented_to_dict
from mars_score.scoring.rows import flags_of

ROWS = "rows.jsonl"  # becomes the output


def write_scores(run: Run, folder: Path, *, rows: bool) -> tuple[Tally, list[float] | None]:
    """Write all rows with their scores; returns their summary and the interval of their mean.

    Args:
        run: its rows have been scored.
        folder: of the run.
        rows: False: only count them.
    """
    tally, by_context = Tally(), ScoresByContext()
    with _rows_file(folder) as file:
        for part, scored in run.scored():
            scores = [row.score.score for row in scored]
            tally.add(part.file.numbers, part.candidates, scores, flags_of(scored))
            by_context.add(part, scores)
            if rows:
                for row, score in zip(part.file.rows, scores, strict=True):
                    file.write(row_line({**row, "mars": score}).encode())
    return tally, by_context.interval()


def write_augmented(run: Run, folder: Path) -> Notices:
    """Write all rows with their augmented references; the run's references have been augmented."""
    notices = Notices()
    with _rows_file(folder) as file:
        for part, augmented, samples in run.augmented():
            for row, of_row, drawn in zip(part.file.rows, augmented, samples, strict=True):
                references = [one.reference for one in of_row]
                texts = [*(text for reference in references for text in reference.texts), *drawn.texts]
                details = [augmented_to_dict(reference) for reference in references]
                more = {"augmentations": details, "samples": list(drawn.texts)}
                line = row_line({**row, "augmented_references": list(dict.fromkeys(texts)), **more})
                file.write(line.encode())
            notices.add(part.file.numbers, cuts(augmented))
    return notices


@contextmanager
def _rows_file(folder: Path) -> Iterator[BinaryIO]:
    """A new file, which is on the disk when the block ends."""
    path = folder / ROWS
    try:
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:  # Python does not name the file
        raise OSError(error.errno, error.strerror, error.filename or str(path)) from error


def place(folder: Path, out: str) -> None:
    """Move the output of a complete run into its place, in the format of its name, unless that has been done.

    Raises:
        OSError: it cannot be written there.
        ValueError: its format cannot hold the rows.
    """
    made = folder / ROWS
    if not made.exists():
        return
    if out == STDOUT:
        with made.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)
    elif is_stream(out):
        with made.open("rb") as source, open(out, "ab") as sink:
            shutil.copyfileobj(source, sink)
    else:
        os.replace(convert(made, out), os.path.realpath(out))
        made.unlink(missing_ok=True)
