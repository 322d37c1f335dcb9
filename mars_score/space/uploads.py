"""An uploaded file -> checked rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mars_score.data.files import RowFile, read_rows
from mars_score.data.validation import check_candidates, check_contexts, check_reference_free, check_references
from mars_score.space.inputs import whole
from mars_score.space.limits import BATCH_BYTES, BATCH_ROWS, Refused, check_texts

SUFFIXES = (".csv", ".tsv", ".jsonl")
SAMPLE = """context,reference,prediction
Jane's car broke down on Monday.,She went to work by bus.,She took the bus until it was fixed.
Jane's car broke down on Monday.,She went to work by bus.,The cat slept on the sofa.
The museum closes at six.,We have to leave the museum before six.,Visitors can stay until six o'clock.
The museum closes at six.,We have to leave the museum before six.,We have to eat the museum before six.
Rain fell all night.,In the morning the river was over its banks.,By sunrise the stream had flooded the fields.
Rain fell all night.,In the morning the river was over its banks.,In the morning the banker was over his bridges.
"""


@dataclass(frozen=True)
class Batch:
    """The rows of a file, as columns; no row has references, or all have."""

    candidates: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    contexts: tuple[str, ...]

    def columns(self, start: int = 0, stop: int | None = None) -> tuple[list[str], Any, list[str]]:
        """Predictions, references and contexts of some rows, for MarsScorer."""
        part = slice(start, stop)
        references = [list(row) for row in self.references[part]] if any(self.references) else None
        return list(self.candidates[part]), references, list(self.contexts[part])


def read_upload(path: str | os.PathLike[str] | None, *, use_context: bool) -> Batch:
    """Read a file of rows, of the kinds in ``SUFFIXES``.

    Args:
        path: of the uploaded file.
        use_context: False: the column may be missing.

    Raises:
        Refused: no file, too large, or not valid rows; the message names the row.
    """
    if path is None:
        raise Refused("Please choose a CSV, TSV or JSONL file first.")
    if Path(path).suffix.lower() not in SUFFIXES:
        raise Refused(f"Please send a file whose name ends in {', '.join(SUFFIXES)}.")
    size = os.stat(path).st_size
    if size > BATCH_BYTES:
        raise Refused(f"The file has {size:,} bytes; at most {BATCH_BYTES:,} are allowed here.")
    try:
        file = read_rows(path)
        if len(file.rows) > BATCH_ROWS:
            raise Refused(f"The file has {len(file.rows):,} rows; at most {BATCH_ROWS} are allowed here.")
        batch = _columns(file, use_context=use_context)
    except Refused:
        raise
    except (TypeError, ValueError) as error:
        raise Refused(str(error).replace(f"{Path(path).parent}{os.sep}", "")[:300]) from None
    for number, row in enumerate(zip(batch.contexts, batch.references, batch.candidates, strict=True), 1):
        context, references, candidate = row
        check_texts(context, references, [candidate], f"Row {number}: ")
    return batch


def _columns(file: RowFile, *, use_context: bool) -> Batch:
    names = {name for row in file.rows for name in row}
    remedy = "please add it; the columns are prediction, reference and context"
    if numbered := sorted(name for name in names if str(name).startswith("reference_")):
        raise Refused(
            f"Columns such as {numbered[0]!r} are not read: several references go into a list, in JSONL."
        )
    candidates = check_candidates(file.column("prediction", remedy=remedy), where=file.place("prediction"))
    references: list[tuple[str, ...]] = [()] * len(candidates)
    if "reference" in names:
        values = file.column("reference", remedy=remedy)
        references = check_references(values, where=file.place("reference"))
    contexts = [""] * len(candidates)
    if use_context or "context" in names:
        values = file.column("context", remedy=f"{remedy}; or untick “Use the context”")
        where = file.place("context")
        contexts = (
            check_contexts(values, len(values), use_context=True, where=where)
            if "reference" in names
            else check_reference_free(values, where=where)
        )
    return Batch(
        tuple(whole(text) for text in candidates),
        tuple(tuple(map(whole, texts)) for texts in references),
        tuple(whole(text) for text in contexts),
    )
