"""The gate of a build: scores of today against those of an earlier run of the same rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mars_score.cache import digest
from mars_score.data.columns import Columns, Records
from mars_score.data.reading import read_rows

if TYPE_CHECKING:
    from mars_score.rows import Example, Row
    from mars_score.runs import Chunk
    from mars_score.signature import Signature

LEAST_FALL = 0.001  # Another batch or machine changes a mean by less.
_LIBRARIES = ("rapidfuzz", "torch", "transformers", "sentence-transformers")  # They change last digits alone.


@dataclass(frozen=True)
class Baseline:
    """The scores of an earlier run, by row, and what tells whether today's rows are the same.

    Attributes:
        path: of the file.
        scores: by row.
        signatures: the different ones of the rows; none in a file without them.
        references: a digest of the references of each row; none if the file has no such column.
        contexts: the same of the contexts.
    """

    path: str
    scores: Sequence[float]
    signatures: Sequence[str] = ()
    references: Sequence[bytes] = ()
    contexts: Sequence[bytes] = ()


class SameRows:
    """Compares today's rows with those of a baseline.

    Args:
        baseline: the baseline.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._lines: list[str] = []  # of today's rows, as the following
        self._references: list[bytes] = []
        self._contexts: list[bytes] = []

    def add(self, chunk: Chunk) -> None:
        """Take the next of today's rows."""
        self._lines += map(chunk.file.line, range(len(chunk.rows)))
        self._references += map(_references, chunk.rows)
        self._contexts += map(_context, chunk.rows)

    def check(self, signature: Signature) -> Iterator[str]:
        """Compare all of today's rows and their settings with those of the baseline, and yield notices.

        Raises:
            ValueError: they are not the same.
        """
        before = self._baseline
        if len(self._lines) != len(before.scores):
            counts = f"{before.path} has {len(before.scores)} scores, and there are {len(self._lines)} rows"
            raise ValueError(f"{counts}; a baseline has the same rows in the same order")
        yield from _check_settings(before, signature)
        if before.references:
            self._refuse_others(before.references, self._references, "references")
        if not before.contexts:
            if not before.references:
                yield f"{before.path} has no references and no contexts: only the number of rows was compared"
        elif not any(before.references) or self._same_in_another_order():
            self._refuse_others(before.contexts, self._contexts, "a context")
        elif changed := sum(map(bytes.__ne__, before.contexts, self._contexts)):
            yield f"{changed} of {len(before.scores)} rows have another context than in {before.path}"

    def _refuse_others(self, before: Sequence[bytes], today: Sequence[bytes], what: str) -> None:
        for index, (old, new) in enumerate(zip(before, today, strict=True)):
            if old != new:
                fault = f"{self._lines[index]} has {what} other than row {index + 1} of {self._baseline.path}"
                raise ValueError(f"{fault}; a baseline has the same rows in the same order")

    def _same_in_another_order(self) -> bool:
        before = Counter(zip(self._baseline.references, self._baseline.contexts, strict=True))
        return before == Counter(zip(self._references, self._contexts, strict=True))


def _check_settings(baseline: Baseline, signature: Signature) -> Iterator[str]:
    if not baseline.signatures:
        yield f"{baseline.path} has no signatures: that its settings are those of today was not checked"
    today = _settings(str(signature))
    for before in map(_settings, baseline.signatures):
        names = [name for name in {**before, **today} if before.get(name) != today.get(name)]
        if names:
            differences = ", ".join(
                f"{name} {before.get(name, 'by default')} (now {today.get(name, 'by default')})" for name in names
            )
            fault = f"{baseline.path} was scored with {differences}"
            raise ValueError(f"{fault}; take the same settings, or write a new baseline with --out")


def _references(row: Row | Example) -> bytes:
    return digest(*row.references) if row.references else b""


def _context(row: Row | Example) -> bytes:
    return digest(row.context, row.task)


def _settings(signature: str) -> dict[str, str]:
    """Return the entries of a signature that matter, by name."""
    entries = dict(entry.partition(":")[::2] for entry in signature.split("|"))
    return {name: value for name, value in entries.items() if name not in _LIBRARIES}


def read_baseline(path: str, columns: Columns, task: str | None) -> Baseline:
    """Read an earlier ``mars score --out``.

    Args:
        path: of the file.
        columns: of today's file; the baseline may lack them.
        task: of rows that have none in the file.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row has no score.
    """
    file = read_rows(path)
    scores = []
    for number, row in enumerate(file.rows):
        try:
            scores.append(float(row["mars"]))
            if not math.isfinite(scores[-1]):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f'{file.line(number)} has no score in a column "mars"; give an earlier output of mars score --out'
            ) from None
    signatures = dict.fromkeys(str(row["mars_signature"]) for row in file.rows if row.get("mars_signature"))
    present = _present(columns, file)
    examples: Sequence[Row | Example] = ()
    if present.reference or present.context:
        examples = (present.rows if present.prediction else present.examples)(file, task=task)
    return Baseline(
        path,
        scores,
        tuple(signatures),
        tuple(map(_references, examples)) if present.reference else (),
        tuple(map(_context, examples)) if present.context else (),
    )


def _present(columns: Columns, file: Records) -> Columns:
    """Return the columns that a file has, without samples."""
    found = replace(columns, samples=None).found_in(file)
    lacking: dict[str, Any] = {name: None for name, title in found.names.items() if not file.has(title)}
    return replace(found, **lacking)
