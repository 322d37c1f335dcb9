"""The gate of a build: scores of today against those of an earlier run of the same rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.cache import digest
from mars_score.data.columns import Columns, RecordFile
from mars_score.data.reading import read_rows
from mars_score.stats.resampling import ContextLabels, mean_interval
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.rows import Example, Row, RowScore
    from mars_score.runs import Chunk
    from mars_score.signature import Signature

LEAST_FALL = 0.001  # Another batch or machine changes a mean by less.
_LISTED = 10  # rows that fell most
_LIBRARIES = ("rapidfuzz", "torch", "transformers", "sentence-transformers")  # They change last digits alone.


class _Row(NamedTuple):
    score: float
    line: int
    candidate: str


@dataclass
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
    _lines: list[str] = field(default_factory=list)  # of today's rows, as the following
    _references: list[bytes] = field(default_factory=list)
    _contexts: list[bytes] = field(default_factory=list)

    def see(self, chunk: Chunk) -> None:
        """Take the next of today's rows, before they are scored."""
        self._lines += map(chunk.file.line, range(len(chunk.rows)))
        self._references += map(_references, chunk.rows)
        self._contexts += map(_context, chunk.rows)

    def check(self, signature: Signature) -> Iterator[str]:
        """Compare today's rows and settings with those of the baseline, and yield notices.

        Raises:
            ValueError: they are not the same.
        """
        if len(self._lines) != len(self.scores):
            counts = f"{self.path} has {len(self.scores)} scores, and there are {len(self._lines)} rows"
            raise ValueError(f"{counts}; a baseline has the same rows in the same order")
        yield from self._check_settings(signature)
        if self.references:
            self._refuse_others(self.references, self._references, "references")
        if not self.contexts:
            if not self.references:
                yield f"{self.path} has no references and no contexts: only the number of rows was compared"
        elif not any(self.references) or self._same_in_another_order():
            self._refuse_others(self.contexts, self._contexts, "a context")
        elif changed := sum(map(bytes.__ne__, self.contexts, self._contexts)):
            yield f"{changed} of {len(self.scores)} rows have another context than in {self.path}"

    def _check_settings(self, signature: Signature) -> Iterator[str]:
        if not self.signatures:
            yield f"{self.path} has no signatures: that its settings are those of today was not checked"
        today = _settings(str(signature))
        for before in map(_settings, self.signatures):
            names = [name for name in {**before, **today} if before.get(name) != today.get(name)]
            if names:
                differences = ", ".join(
                    f"{name} {before.get(name, 'by default')} (now {today.get(name, 'by default')})"
                    for name in names
                )
                fault = f"{self.path} was scored with {differences}"
                raise ValueError(f"{fault}; take the same settings, or write a new baseline with --out")

    def _refuse_others(self, before: Sequence[bytes], today: Sequence[bytes], what: str) -> None:
        for index, (old, new) in enumerate(zip(before, today, strict=True)):
            if old != new:
                fault = f"{self._lines[index]} has {what} other than row {index + 1} of {self.path}"
                raise ValueError(f"{fault}; a baseline has the same rows in the same order")

    def _same_in_another_order(self) -> bool:
        before = Counter(zip(self.references, self.contexts, strict=True))
        return before == Counter(zip(self._references, self._contexts, strict=True))


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


def _present(columns: Columns, file: RecordFile) -> Columns:
    """Return the columns that a file has, without samples."""
    found = replace(columns, samples=None).found_in(file)
    lacking: dict[str, Any] = {name: None for name, title in found.names.items() if not file.has(title)}
    return replace(found, **lacking)


def fallen(
    scored: Iterable[tuple[Chunk, Sequence[RowScore]]], baseline: Baseline, least_fall: float = LEAST_FALL
) -> Iterator[str]:
    """Yield lines on the fall of the mean and the rows that fell most; none where it is small or can be chance.

    The mean fell if it is lower by more than ``least_fall`` and the 95 % interval of the rows' differences, by
    resampling contexts, is below 0; with fewer than ten contexts there is no interval.
    """
    rows, contexts = _rows_of(scored)
    differences = [row.score - before for row, before in zip(rows, baseline.scores, strict=True)]
    mean = sum(differences) / len(differences)
    ends = mean_interval(differences, contexts).ends
    if mean >= -least_fall or (ends and ends[1] >= 0):
        return
    interval = f", 95 % interval {ends[0]:+.4f} to {ends[1]:+.4f}" if ends else ""
    yield f"the mean score fell by {-mean:.4f} from {baseline.path}{interval}; most in"
    order = sorted(range(len(rows)), key=lambda index: differences[index])
    for index in order[:_LISTED]:
        row, before = rows[index], baseline.scores[index]
        if differences[index] < 0:
            yield f"  line {row.line}: {before:.4f} -> {row.score:.4f}  {one_line(row.candidate, 90)}"


def _rows_of(scored: Iterable[tuple[Chunk, Sequence[RowScore]]]) -> tuple[list[_Row], list[int]]:
    """Return the rows of today, and the labels of their contexts."""
    labels, contexts, rows = ContextLabels(), list[int](), list[_Row]()
    for chunk, scores in scored:
        contexts += labels.of([row.context for row in chunk.rows])
        rows += [
            _Row(score.score, number + 1, row.candidate)
            for number, row, score in zip(chunk.file.numbers, chunk.rows, scores, strict=True)
        ]
    return rows, contexts
