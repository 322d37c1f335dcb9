"""Thresholds that scores must reach: for builds (``mars score --fail-under``) and for tests."""

import math
from collections.abc import Iterable, Iterator

from mars_score.data.values import one_line
from mars_score.scoring.result import MarsResult

SHOWN = 20  # rows below the threshold that are listed
_WIDTH = 100  # characters of a listed text


def check_threshold(name: str, value: float | None) -> None:
    """Raise ValueError unless a threshold is a finite number or None."""
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")


def failures(
    mean: float,
    rows: Iterable[tuple[int, float, str]],
    fail_under: float | None,
    fail_rows_under: float | None,
    *,
    row_word: str,
) -> Iterator[str]:
    """What does not reach its threshold, one line each.

    Args:
        mean: of all scores.
        rows: number, score and candidate of each; read only with ``fail_rows_under``.
        fail_under: the mean must not be below it; None: it may be anything.
        fail_rows_under: likewise for every single score.
        row_word: what the number of a row is: ``"row"`` or ``"line"``.
    """
    if fail_under is not None and mean < fail_under:
        yield f"the mean score {mean:.4f} is below {fail_under:g}"
    if fail_rows_under is None:
        return
    below = sorted((score, number, text) for number, score, text in rows if score < fail_rows_under)
    if below:
        more = f"; the {SHOWN} lowest are" if len(below) > SHOWN else ""
        yield f"{len(below)} scores are below {fail_rows_under:g}{more}:"
    for score, number, text in below[:SHOWN]:
        yield f"  {row_word} {number}: {score:.4f}  {one_line(text, _WIDTH)}"


def assert_scores(
    result: MarsResult, *, fail_under: float | None = None, fail_rows_under: float | None = None
) -> None:
    """For tests: assert that scores reach thresholds; the failure lists the rows that do not, the lowest first.

    Args:
        result: of :meth:`MarsScorer.score`.
        fail_under: the mean score must not be below it.
        fail_rows_under: no single score must be below it.

    Raises:
        AssertionError: a threshold is not reached.
        ValueError: no threshold is given, or one is not a finite number.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    if fail_under is None and fail_rows_under is None:
        raise ValueError("give fail_under, fail_rows_under or both")
    check_threshold("fail_under", fail_under)
    check_threshold("fail_rows_under", fail_rows_under)
    rows = ((texts.row, row.score, texts.candidate) for texts, row in zip(result.texts, result.rows, strict=True))
    lines = list(failures(result.score, rows, fail_under, fail_rows_under, row_word="row"))
    if lines:
        raise AssertionError("\n".join([*lines, f"signature {result.signature}"]))
