"""Scores two systems in one call and compares them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mars_score.compare.result import RowPair, SystemComparison
from mars_score.data.validation import check_candidates, check_contexts, check_lengths, check_references
from mars_score.stats.draws import check_resampling
from mars_score.stats.paired import paired_test
from mars_score.stats.rated import Labels, codes_of

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer


def compare_systems(
    scorer: MarsScorer,
    first: Any,
    second: Any,
    references: Any,
    contexts: Any = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    groups: Labels | None = None,
    tie_margin: float = 0.0,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> SystemComparison:
    """Compare the MARS scores of two systems over the same references and contexts.

    Both are scored in one call: each reference is augmented once, and IDF is the same for both.

    Args:
        scorer: holds models and settings.
        first: candidates of the first system, one per row.
        second: candidates of the second system for the same rows.
        references: as for :meth:`MarsScorer.score`.
        contexts: as for :meth:`MarsScorer.score`.
        names: of the systems.
        groups: one label per row, strings or integers; rows of a group (a document) are drawn together.
        tie_margin: scores of a row that differ by no more are a tie.
        confidence: as for :func:`mars_score.stats.paired.paired_test`.
        resamples: likewise.
        seed: likewise.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded.
        ModelUnavailableError: a model cannot be loaded.
    """
    columns = (
        check_candidates(first, where="first[{}]".format),
        check_candidates(second, where="second[{}]".format),
    )
    texts = check_references(references)
    given = check_contexts(contexts, len(texts), use_context=scorer.settings.use_context)
    check_lengths(first=columns[0], second=columns[1], references=texts, contexts=given)
    if not (tie_margin >= 0 and math.isfinite(tie_margin)):
        raise ValueError(f"tie_margin must be a number of at least 0, got {tie_margin}")
    check_resampling(confidence, resamples)
    if groups is not None:
        codes_of("groups", groups, len(texts))
    if not texts:
        raise ValueError("there are no rows to compare")

    result = scorer.score([*columns[0], *columns[1]], texts * 2, given * 2)
    count = len(texts)
    scores = result.scores[:count], result.scores[count:]
    pairs = zip(given, texts, zip(*columns, strict=True), zip(*scores, strict=True), strict=True)
    place = f"[rows 0-{count - 1}: {names[0]}, rows {count}-{2 * count - 1}: {names[1]}]"
    return SystemComparison(
        names,
        tuple(RowPair(row, *pair) for row, pair in enumerate(pairs)),
        paired_test(*scores, groups=groups, confidence=confidence, resamples=resamples, seed=seed),
        confidence,
        resamples,
        tie_margin,
        str(result.signature),
        tuple(f"{notice} {place}" for notice in result.notices),
    )
