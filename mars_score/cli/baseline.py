"""Compare scores with a baseline: an earlier run of the same rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mars_score.cache import digest
from mars_score.data.columns import Columns, RawRows
from mars_score.data.reading import read_rows
from mars_score.signature import LIBRARIES, Signature

if TYPE_CHECKING:
    from mars_score.rows import Example, Row
    from mars_score.runs import Chunk

LEAST_FALL = 0.001  # Another batch size or machine changes a mean by less.


@dataclass(frozen=True)
class Baseline:
    """The scores of an earlier run, and what identifies its rows."""

    path: str
    scores: Sequence[float]  # one per row
    signatures: Sequence[str] = ()  # distinct ones; empty if the file has none
    references: Sequence[bytes] = ()  # a digest for each row; empty if the file has no such column
    contexts: Sequence[bytes] = ()  # the same for the contexts


class SameRows:
    """Checks that the rows of a run are those of a baseline."""

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        # One entry for each row of the run.
        self._lines: list[str] = []
        self._references: list[bytes] = []
        self._contexts: list[bytes] = []

    def add(self, chunk: Chunk) -> None:
        """Add the next rows of the run."""
        self._lines += map(chunk.file.line, range(len(chunk.rows)))
        self._references += map(_references, chunk.rows)
        self._contexts += map(_context, chunk.rows)

    def check(self, signature: Signature) -> Iterator[str]:
        """Compare all rows and settings with those of the baseline, and yield notices.

        Raises:
            ValueError: they differ.
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
        """Raise ValueError for the first row whose digest differs."""
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
    """Return the entries of a signature by name, without libraries, which change only the last digits."""
    entries = dict(entry.partition(":")[::2] for entry in signature.split("|"))
    return {name: value for name, value in entries.items() if name not in LIBRARIES}


def read_baseline(path: str, columns: Columns, task: str | None) -> Baseline:
    """Read an earlier output of ``mars score --out``. It may lack columns of the new run.

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


def _present(columns: Columns, file: RawRows) -> Columns:
    """Return the columns that a file has, without samples."""
    found = replace(columns, samples=None).found_in(file)
    missing: dict[str, Any] = dict.fromkeys(name for name, title in found.names.items() if not file.has(title))
    return replace(found, **missing)
