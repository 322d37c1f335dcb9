"""Scores systems in one call and compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mars_score.compare.ranking import SystemRanking, pairs_of
from mars_score.compare.result import ComparedRow, SystemComparison, SystemScore
from mars_score.data.validation import check_candidates, check_rows
from mars_score.stats import TESTS, Test
from mars_score.stats.draws import check_resampling
from mars_score.stats.paired import paired_tests
from mars_score.stats.rated import Labels, check_known, codes_of

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer


def compare_systems(
    scorer: MarsScorer,
    first: Any,
    second: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    groups: Labels | None = None,
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
        confidence: as for :func:`mars_score.stats.paired.paired_tests`.
        resamples: likewise.
        seed: likewise.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded.
        ModelUnavailableError: a model cannot be loaded.
    """
    columns = {"first": first, "second": second}
    shared = _score(scorer, columns, names, references, contexts, groups, confidence, resamples)
    scores = list(zip(*(row.scores for row in shared["rows"]), strict=True))
    tests = paired_tests(scores, groups=groups, confidence=confidence, resamples=resamples, seed=seed)
    return SystemComparison(names, tests[0, 1], **shared)


def rank_systems(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    references: Any = None,
    contexts: Any = None,
    *,
    test: Test = "randomisation",
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> SystemRanking:
    """Rank two or more systems over the same references and contexts by their MARS scores, and test each two.

    All are scored in one call: each reference is augmented once, and IDF is the same for all.

    Args:
        scorer: holds models and settings.
        systems: from the name of each system to its candidates, one per row.
        references: as for :meth:`MarsScorer.score`.
        contexts: as for :meth:`MarsScorer.score`.
        test: what gives the p-values. Approximate randomisation draws under the hypothesis that both systems are
            alike, and so keeps its level also with few rows; the bootstrap does so with many only.
        groups: as for :func:`compare_systems`, like all that follows.
        confidence: of the intervals; 1 - confidence is the level of the tests.
        resamples: how many.
        seed: of the random numbers.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded; fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    if len(systems) < 2:
        raise ValueError(f"a comparison needs at least two systems, got {len(systems)}")
    check_known("test", test, tuple(TESTS))
    columns = {f"systems[{name!r}]": candidates for name, candidates in systems.items()}
    shared = _score(scorer, columns, list(systems), references, contexts, groups, confidence, resamples)
    scores = zip(*(row.scores for row in shared["rows"]), strict=True)
    found = list(map(SystemScore, systems, scores))
    order = sorted(range(len(found)), key=lambda which: -found[which].score)
    ranked = tuple(found[which] for which in order)
    tests = paired_tests(
        [one.scores for one in ranked], groups=groups, confidence=confidence, resamples=resamples, seed=seed
    )
    return SystemRanking(
        ranked,
        (tests[0, 1].first, *(tests[0, place].second for place in range(1, len(ranked)))),
        pairs_of(ranked, tests, test),
        test,
        tests[0, 1].groups,
        **{**shared, "rows": tuple(_in_order(row, order) for row in shared["rows"])},
    )


def _score(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    names: Sequence[str],
    references: Any,
    contexts: Any,
    groups: Labels | None,
    confidence: float,
    resamples: int,
) -> dict[str, Any]:
    """Check everything, then score all systems in one call: the fields of ``Compared``.

    ``systems`` are candidates by what errors call them.
    """
    columns = {
        name: check_candidates(candidates, where=f"{name}[{{}}]".format) for name, candidates in systems.items()
    }
    texts, given = check_rows(references, contexts, use_context=scorer.settings.use_context, **columns)
    count = len(texts)
    if groups is not None:
        codes_of("groups", groups, count)
    if not texts:
        raise ValueError("there are no rows to compare")
    check_resampling(resamples, confidence)
    candidates = [text for column in columns.values() for text in column]
    result = scorer.score(candidates, texts * len(columns) if any(texts) else None, given * len(columns))
    scores = [result.scores[start : start + count] for start in range(0, len(candidates), count)]
    rows = zip(given, texts, zip(*columns.values(), strict=True), zip(*scores, strict=True), strict=True)
    place = ", ".join(
        f"rows {which * count}-{(which + 1) * count - 1}: {name}" for which, name in enumerate(names)
    )
    return {
        "rows": tuple(ComparedRow(number, *row) for number, row in enumerate(rows)),
        "confidence": confidence,
        "resamples": resamples,
        "signature": result.signature,
        "notices": tuple(f"{notice} [{place}]" for notice in result.notices),  # of rows counted through
    }


def _in_order(row: ComparedRow, order: Sequence[int]) -> ComparedRow:
    candidates = tuple(row.candidates[which] for which in order)
    scores = tuple(row.scores[which] for which in order)
    return ComparedRow(row.row, row.context, row.references, candidates, scores)
