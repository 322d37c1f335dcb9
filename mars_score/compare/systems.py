"""Scores systems in one call, ranks them and tests each two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from mars_score.compare.result import ComparedRow, SystemPair, SystemRanking, SystemScore
from mars_score.data.validation import check_candidates, check_rows
from mars_score.stats import TESTS, Test
from mars_score.stats.draws import SAME, check_resampling, too_few
from mars_score.stats.labels import Codes, ContextLabels, Floats, Labels, check_known, codes_of
from mars_score.stats.means import holm, mean_interval, mean_p

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer


def rank_systems(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    references: Any = None,
    contexts: Any = None,
    *,
    groups: Labels | None = None,
    test: Test = "randomisation",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> SystemRanking:
    """Rank two or more systems over the same references and contexts by their MARS scores, and test each two.

    All are scored in one call: each reference is augmented once, and IDF is the same for all. Rows of one context
    are not independent, so whole groups of rows are drawn for intervals and tests.

    Args:
        scorer: holds models and settings.
        systems: from the name of each system to its candidates, one per row.
        references: as for :meth:`MarsScorer.score`.
        contexts: as for :meth:`MarsScorer.score`.
        groups: one label per row, strings or integers; rows of a group (a document) are drawn together. None: rows
            of one context are, and each row without a context is a group.
        test: what gives the p-values. Approximate randomisation draws under the hypothesis that both systems are
            alike, and so keeps its level also with few groups; the bootstrap does so with many only.
        confidence: of the intervals; 1 - confidence is the level of the tests.
        resamples: of the tests.
        seed: of the tests.

    Returns:
        The ranking; with fewer than ten groups intervals and p-values are NaN, and a notice says so.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded; fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    if len(systems) < 2:
        raise ValueError(f"a comparison needs at least two systems, got {len(systems)}")
    check_known("test", test, TESTS)
    check_resampling(resamples, confidence)
    columns = {
        f"systems[{name!r}]": check_candidates(candidates, where=f"systems[{name!r}][{{}}]".format)
        for name, candidates in systems.items()
    }
    texts, context_of = check_rows(references, contexts, use_context=scorer.settings.use_context, **columns)
    count = len(texts)
    if not count:
        raise ValueError("there are no rows to compare")
    codes = codes_of("groups", ContextLabels().of(context_of) if groups is None else groups, count)[1]

    candidates = [text for column in columns.values() for text in column]
    result = scorer.score(candidates, texts * len(systems) if any(texts) else None, context_of * len(systems))
    scored = [
        SystemScore(name, scores, mean_interval(scores, codes, confidence=confidence))
        for name, scores in zip(systems, map(tuple, np.reshape(result.scores, (-1, count)).tolist()), strict=True)
    ]
    order = sorted(range(len(scored)), key=lambda place: -scored[place].score)
    ranked = [scored[place] for place in order]
    written = zip(*([*columns.values()][place] for place in order), strict=True)
    scores = zip(*(system.scores for system in ranked), strict=True)
    rows = zip(range(count), context_of, texts, written, scores, strict=True)
    group_count = int(codes.max()) + 1
    reason = too_few(group_count, "different contexts" if groups is None else "groups")
    return SystemRanking(
        systems=tuple(ranked),
        pairs=_pairs(ranked, codes, confidence, partial(mean_p, test=test, resamples=resamples, seed=seed)),
        rows=tuple(starmap(ComparedRow, rows)),
        test=test,
        groups=group_count,
        confidence=confidence,
        resamples=resamples,
        signature=result.signature,
        notices=(
            *_located(result.notices, list(systems), count),
            *([f"no intervals and no p-values: {reason}"] if reason else []),
        ),
    )


def _pairs(
    ranked: Sequence[SystemScore], groups: Codes, confidence: float, test: Callable[[Floats, Codes], float]
) -> tuple[SystemPair, ...]:
    """Each two of the ranked systems, with p-values adjusted for their number."""
    pairs = list(combinations(ranked, 2))
    differences = [np.subtract(first.scores, second.scores) for first, second in pairs]
    p_values = holm([test(of_rows, groups) for of_rows in differences])
    return tuple(
        SystemPair(
            first=first.name,
            second=second.name,
            difference=first.score - second.score,
            interval=mean_interval(of_rows, groups, confidence=confidence),
            p=p,
            wins=int((of_rows > SAME).sum()),
            ties=int((abs(of_rows) <= SAME).sum()),
            losses=int((of_rows < -SAME).sum()),
        )
        for (first, second), of_rows, p in zip(pairs, differences, p_values, strict=True)
    )


def _located(notices: Sequence[str], names: Sequence[str], count: int) -> list[str]:
    """Notices, whose rows are counted through all systems, with the rows that each system has in this count."""
    places = [f"rows {place * count}-{(place + 1) * count - 1}: {name}" for place, name in enumerate(names)]
    return [f"{notice} [{', '.join(places)}]" for notice in notices]
