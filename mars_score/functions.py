"""Scores in one call, and scores of a stream; models that are named stay loaded for the next call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from mars_score.scorer import MarsScorer
from mars_score.scoring.result import MarsResult


def score(
    predictions: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    columns: Mapping[str, str | None] | None = None,
    **settings: Any,
) -> MarsResult:
    """Score candidates: :meth:`MarsScorer.score` of a new scorer; models that are named stay loaded.

    Args:
        predictions: as for :meth:`MarsScorer.score`: candidates, or a table alone.
        references: as there.
        contexts: as there.
        columns: as there.
        settings: the arguments of :class:`MarsScorer`, such as ``preset="mini"``.

    Raises:
        TypeError, ValueError, ModelUnavailableError: as there.
    """
    return MarsScorer(**settings).score(predictions, references, contexts, columns=columns)


def score_iter(
    rows: Iterable[Mapping[str, Any]],
    *,
    columns: Mapping[str, str | None] | None = None,
    chunk_size: int = 64,
    **settings: Any,
) -> Iterator[dict[str, Any]]:
    """Score a stream of any length, ``chunk_size`` rows at a time.

    Args:
        rows: dicts with ``"prediction"``, ``"reference"`` and ``"context"``.
        columns: their names where they differ, as for :meth:`MarsScorer.score`.
        chunk_size: rows that are read before the first of them is yielded.
        settings: the arguments of :class:`MarsScorer`. Variants that mask words need ``idf_corpus``, as a stream
            has no references of a whole call to count IDF over.

    Yields:
        A record per candidate, as in :meth:`MarsResult.to_records`; ``"row"`` counts through the stream.

    Raises:
        ValueError: ``idf_corpus`` is needed, or ``chunk_size`` is below 1; raised by the call itself.
        TypeError, ValueError: bad input, named with its row within a chunk and the rows before the chunk.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    scorer = MarsScorer(**settings)
    masking = scorer.settings.masking
    if masking.max_mask_ratio != 0 and masking.idf_corpus is None:
        raise ValueError(
            f"variant {scorer.settings.variant!r} counts IDF over all references, which a stream does not have: "
            "pass some as idf_corpus=[...], or set max_mask_ratio=0"
        )
    return _score_iter(scorer, iter(rows), columns, chunk_size)


def _score_iter(scorer: Any, rows: Iterator[Any], columns: Any, chunk_size: int) -> Iterator[dict[str, Any]]:
    done = 0
    while chunk := list(islice(rows, chunk_size)):
        try:
            result = scorer.score(chunk, columns=columns)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error} (of the rows from {done} on)") from None
        for record in result.to_records():
            yield {**record, "row": done + record["row"]}
        done += len(chunk)
