"""Scores systems in one call, ranks them and tests each two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from mars_score.compare.result import ComparedRow, SystemPair, SystemRanking, SystemScore
from mars_score.data.validation import check_candidates, check_rows, check_samples
from mars_score.data.values import is_blank
from mars_score.stats.draws import SAME, check_resampling, too_few
from mars_score.stats.labels import Codes, ContextLabels, Labels, codes_of
from mars_score.stats.means import holm, mean_interval, mean_p

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer


def rank_systems(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    references: Any = None,
    contexts: Any = None,
    *,
    samples: Any = None,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> SystemRanking:
    """Rank two or more systems over the same references and contexts by their MARS scores, and test each two.

    All are scored in one call: each reference is augmented once, and IDF is the same for all. Rows of one context
    are not independent, so whole groups of rows are drawn: with replacement for the intervals (bootstrap), and to
    swap two systems' scores for the p-values (approximate randomisation, which keeps its level also with few
    groups). The interval of a difference is that of the paired bootstrap.

    Args:
        scorer: holds models and settings.
        systems: from the name of each system to its candidates, one per row.
        references: as for :meth:`MarsScorer.score`.
        contexts: as for :meth:`MarsScorer.score`.
        samples: as for :meth:`MarsScorer.score`; or ``"others"``: those of each candidate are the other systems'
            texts for the row. Scores then depend on which systems take part, and the signature says so.
        groups: one label per row, strings or integers; rows of a group (a document) are drawn together. None: rows
            of one context are, and each row without a context is a group.
        confidence: of the intervals; 1 - confidence is the level of the tests.
        resamples: of the tests.

    Returns:
        The ranking; with fewer than ten groups intervals and p-values are NaN, and a notice says so.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded; fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    if len(systems) < 2:
        raise ValueError(f"a comparison needs at least two systems, got {len(systems)}")
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
    from_others = isinstance(samples, str) and samples == "others"
    if from_others:
        samples_of: list[Any] = [
            [other[row] for name, other in columns.items() if name != system and not is_blank(other[row])]
            for system in columns
            for row in range(count)
        ]
    else:
        samples_of = check_samples(samples, count) * len(systems)
    result = scorer.score(
        candidates,
        texts * len(systems) if any(texts) else None,
        context_of * len(systems),
        samples=samples_of if samples is not None else None,
    )
    signature = result.signature
    if from_others:
        signature = replace(signature, entries={**signature.entries, "samples": "others"})
    scores = np.reshape(result.scores, (-1, count)).tolist()
    order = sorted(range(len(systems)), key=lambda place: -sum(scores[place]))
    names = list(systems)
    ranked = [
        SystemScore(names[place], tuple(scores[place]), mean_interval(scores[place], codes, confidence=confidence))
        for place in order
    ]
    written = zip(*([*columns.values()][place] for place in order), strict=True)
    by_row = zip(*(system.scores for system in ranked), strict=True)
    rows = zip(range(count), context_of, texts, written, by_row, strict=True)
    group_count = int(codes.max()) + 1
    reason = too_few(group_count, "different contexts" if groups is None else "groups")
    # Notices count the rows through all systems.
    places = [f"rows {place * count}-{(place + 1) * count - 1}: {name}" for place, name in enumerate(names)]
    notices = [f"{notice} [{', '.join(places)}]" for notice in result.notices]
    return SystemRanking(
        systems=tuple(ranked),
        pairs=_pairs(ranked, codes, confidence, resamples),
        rows=tuple(starmap(ComparedRow, rows)),
        groups=group_count,
        confidence=confidence,
        resamples=resamples,
        signature=signature,
        notices=(*notices, *([f"no intervals and no p-values: {reason}"] if reason else [])),
    )


def _pairs(
    ranked: Sequence[SystemScore], groups: Codes, confidence: float, resamples: int
) -> tuple[SystemPair, ...]:
    """Each two of the ranked systems, with p-values adjusted for their number."""
    pairs = list(combinations(ranked, 2))
    differences = [np.subtract(first.scores, second.scores) for first, second in pairs]
    p_values = holm([mean_p(by_row, groups, resamples=resamples) for by_row in differences])
    return tuple(
        SystemPair(
            first=first.name,
            second=second.name,
            difference=first.score - second.score,
            interval=mean_interval(by_row, groups, confidence=confidence),
            p=p,
            wins=int((by_row > SAME).sum()),
            ties=int((abs(by_row) <= SAME).sum()),
            losses=int((by_row < -SAME).sum()),
        )
        for (first, second), by_row, p in zip(pairs, differences, p_values, strict=True)
    )
