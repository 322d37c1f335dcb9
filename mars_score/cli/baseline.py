"""The gate of a build: scores of today against those of an earlier run of the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mars_score.data.reading import read_rows
from mars_score.stats.resampling import ContextLabels, mean_interval
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.rows import RowScore
    from mars_score.runs import Chunk

_LISTED = 10  # rows that fell most


class Baseline(NamedTuple):
    """The scores of an earlier run, by row."""

    path: str
    scores: Sequence[float]


class _Row(NamedTuple):
    score: float
    line: int
    candidate: str


def read_baseline(path: str) -> Baseline:
    """Read the column "mars" of an earlier ``mars score --out``.

    Raises:
        OSError: the file cannot be read.
        ValueError: a row has no score.
    """
    file = read_rows(path)
    scores = []
    for number, row in enumerate(file.rows):
        try:
            scores.append(float(row["mars"]))
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f'{file.line(number)} has no score in a column "mars"; give an earlier output of mars score --out'
            ) from None
    return Baseline(path, scores)


def fallen(scored: Iterable[tuple[Chunk, Sequence[RowScore]]], baseline: Baseline) -> Iterator[str]:
    """Yield lines on the fall of the mean and the rows that fell most; none where it can be chance.

    The mean fell if the 95 % interval of the rows' differences, by resampling contexts, is below 0; with fewer
    than ten contexts there is no interval, and any fall counts.

    Raises:
        ValueError: the baseline has another number of rows.
    """
    rows, contexts = _rows_of(scored)
    if len(rows) != len(baseline.scores):
        raise ValueError(
            f"{baseline.path} has {len(baseline.scores)} scores, and there are {len(rows)} rows; a baseline has "
            "the same rows in the same order"
        )
    differences = [row.score - before for row, before in zip(rows, baseline.scores, strict=True)]
    mean = sum(differences) / len(differences)
    ends = mean_interval(differences, contexts).ends
    if not (ends[1] < 0 if ends else mean < 0):
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
