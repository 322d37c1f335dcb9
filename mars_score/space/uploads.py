"""An uploaded CSV or JSONL file -> checked rows."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from typing import Any

from mars_score.data.readers import json_rows
from mars_score.data.validation import check_candidates, check_contexts, check_references
from mars_score.space.inputs import whole
from mars_score.space.limits import BATCH_BYTES, BATCH_ROWS, Refused, check_texts

COLUMNS = "prediction, reference and context"
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
    """The rows of a file, as columns."""

    candidates: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    contexts: tuple[str, ...]


def read_upload(path: str | os.PathLike[str] | None, *, use_context: bool) -> Batch:
    """Read a file of rows, as JSONL if it begins with "{", else as CSV; its name does not count.

    Args:
        path: of the uploaded file.
        use_context: False: the column may be missing.

    Raises:
        Refused: no file, too large, or not valid rows; the message names the row.
    """
    if path is None:
        raise Refused("Please choose a CSV or JSONL file first.")
    size = os.stat(path).st_size
    if size > BATCH_BYTES:
        raise Refused(f"The file has {size:,} bytes; at most {BATCH_BYTES:,} are allowed here.")
    with open(path, "rb") as file:
        raw = file.read()
    is_jsonl = raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    rows = _read_jsonl(path) if is_jsonl else _read_csv(raw)
    if len(rows) > BATCH_ROWS:
        raise Refused(f"The file has {len(rows):,} rows; at most {BATCH_ROWS} are allowed here.")
    return _check(rows, use_context=use_context)


def _read_jsonl(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    try:
        return list(json_rows(os.fspath(path)))
    except ValueError as error:  # names the file by its path
        raise Refused(str(error).replace(f"{os.fspath(path)}:", "Line ")[:300]) from None


def _read_csv(raw: bytes) -> list[dict[str, Any]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("The file is not UTF-8 text. Please save it as CSV in UTF-8, or as JSONL.") from None
    header = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(line)]
    except csv.Error as error:
        raise Refused(f"The file cannot be read as CSV: {error}.") from None
    if not lines:
        raise Refused(f"The file is empty. Please send rows with the columns {COLUMNS}.")
    names = [name.strip().lower() for name in lines[0]]
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(names):
            raise Refused(f"Row {number} has {len(line)} cells, but the header has {len(names)}.")
    return [_gathered(dict(zip(names, line, strict=True))) for line in lines[1:]]


def _gathered(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its columns reference, reference_2, reference_3, ... as one list."""
    further = [name for name in row if name.startswith("reference_")]
    more = [row.pop(name) for name in further]
    if "reference" in row and any(more):
        row["reference"] = [row["reference"], *filter(str.strip, more)]
    return row


def _check(rows: list[dict[str, Any]], *, use_context: bool) -> Batch:
    if not rows:
        raise Refused(f"The file holds no rows. Please send rows with the columns {COLUMNS}.")
    try:
        candidates = check_candidates(_column(rows, "prediction", "candidate"), where=_place("prediction"))
        references = _references(rows)
        given = use_context or "context" in rows[0]
        contexts = check_contexts(
            _column(rows, "context") if given else None,
            len(rows),
            use_context=use_context,
            where=_place("context"),
        )
    except Refused:
        raise
    except (TypeError, ValueError) as error:
        raise Refused(str(error)[:300]) from None
    for number, (candidate, texts, context) in enumerate(
        zip(candidates, references, contexts or [""] * len(rows), strict=True), 1
    ):
        check_texts(context, texts, [candidate if candidate.strip() else "blank"], f"Row {number}: ")
    return Batch(
        tuple(map(whole, candidates)),
        tuple(tuple(map(whole, texts)) for texts in references),
        tuple(map(whole, contexts)),
    )


def _references(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The references of each row; none at all where no row has any."""
    if all(row.get(name) in ("", None, []) for row in rows for name in ("reference", "references")):
        return [()] * len(rows)
    return check_references(_column(rows, "reference", "references"), where=_place("reference"))


def _place(column: str) -> Any:
    return lambda row: f"Row {row + 1}, column {column!r}"


def _column(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    name = next((name for name in names if name in rows[0]), names[0])
    for number, row in enumerate(rows, 1):
        if name not in row:
            hint = ", or untick “Use the context” in the settings" if name == "context" else ""
            found = ", ".join(str(one)[:40] for one in list(row)[:8]) or "none"
            raise Refused(f"Row {number} has no column {name!r} (its columns: {found}). Please add it{hint}.")
    return [row[name] for row in rows]
