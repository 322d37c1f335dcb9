"""Systems over the same references and contexts: which scores higher, how surely, and where they differ."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from mars_score.data.validation import check_candidates, check_rows, check_samples
from mars_score.data.values import is_blank, plain
from mars_score.models.signature import Signature
from mars_score.scorer import MarsScorer
from mars_score.stats.labels import Codes, ContextLabels, Labels, codes_of
from mars_score.stats.resampling import SAME, Interval, check_resampling, holm, mean_interval, mean_p, too_few


@dataclass(frozen=True)
class SystemScore:
    """A system: its name, scores (rows,) and the interval of their mean."""

    name: str
    scores: tuple[float, ...]
    interval: Interval

    @property
    def score(self) -> float:
        """The mean over rows."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class SystemPair:
    """Two systems of a ranking."""

    first: str  # name of the system with the higher score
    second: str  # of the other one
    difference: float  # of their scores, at least 0
    interval: Interval  # of the difference
    p: float  # two-sided, adjusted for the number of pairs (Holm); or NaN
    wins: int  # rows in which the first scores higher
    ties: int
    losses: int


@dataclass(frozen=True)
class ComparedRow:
    """A row, counted from 0, with candidate and score of each system in the order of the ranking."""

    row: int
    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The highest score minus the lowest."""
        return max(self.scores) - min(self.scores)


@dataclass(frozen=True)
class SystemRanking:
    """Two or more systems in the order of their scores; they are told apart where p is at most 1 - confidence."""

    systems: tuple[SystemScore, ...]  # the highest score first
    pairs: tuple[SystemPair, ...]  # each two systems, in the order of the ranking
    rows: tuple[ComparedRow, ...]  # in input order
    groups: int  # how many groups of rows were drawn from: different contexts, or the caller's groups
    confidence: float  # coverage of the intervals
    resamples: int  # of the tests
    signature: Signature  # all that the scores depend on besides the texts; report it beside them
    # What was done to some inputs (blank, shortened), and why there are no intervals and tests, a sentence each.
    notices: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Which systems score higher than which, and which cannot be told apart, in one sentence."""
        clauses = []
        for system in self.systems[:-1]:
            higher, alike = [], []
            for pair in (pair for pair in self.pairs if pair.first == system.name):
                p = "no test" if math.isnan(pair.p) else f"p = {pair.p:.2g}"
                if pair.p <= 1 - self.confidence + SAME:
                    higher.append(f"{pair.second} ({pair.difference:+.3f}, {p})")
                else:
                    alike.append(f"{pair.second} ({p})")
            parts = [f"scores higher than {_listed(higher)}"] if higher else []
            parts += [f"cannot be told apart from {_listed(alike)}"] if alike else []
            clauses.append(f"{system.name} {', but '.join(parts)}")
        return "; ".join(clauses)

    def most_different(self, count: int) -> list[ComparedRow]:
        """The ``count`` rows whose scores are spread most, the largest spread first; none of equal scores."""
        differing = [row for row in self.rows if row.spread > SAME]
        return sorted(differing, key=lambda row: -row.spread)[:count]

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        return {
            "systems": [
                {
                    "name": system.name,
                    "mars": system.score,
                    "interval": system.interval.ends,
                    "scores": list(system.scores),
                }
                for system in self.systems
            ],
            "pairs": [{**asdict(pair), "interval": pair.interval.ends, "p": plain(pair.p)} for pair in self.pairs],
            "verdict": self.verdict,
            "groups": self.groups,
            "confidence": self.confidence,
            "resamples": self.resamples,
            "signature": str(self.signature),
            "notices": list(self.notices),
            "most_different": [{**asdict(row), "spread": row.spread} for row in self.most_different(rows)],
        }


def _listed(parts: Sequence[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


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
        contexts: likewise.
        samples: likewise; or ``"others"``: those of each candidate are the other systems' texts for the row.
            Scores then depend on which systems take part, and the signature says so.
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
    columns: dict[str, Any] = {
        f"systems[{name!r}]": check_candidates(candidates, where=f"systems[{name!r}][{{}}]".format)
        for name, candidates in systems.items()
    }
    texts, context_of, _ = check_rows(references, contexts, use_context=scorer.settings.use_context, **columns)
    count = len(texts)
    if not count:
        raise ValueError("there are no rows to compare")
    codes = codes_of("groups", ContextLabels().of(context_of) if groups is None else groups, count)
    candidates = list(columns.values())
    from_others = isinstance(samples, str) and samples == "others"
    if from_others:
        samples = [
            [other[row] for other in candidates if other is not own and not is_blank(other[row])]
            for own in candidates
            for row in range(count)
        ]
    elif samples is not None:
        samples = check_samples(samples, count) * len(systems)
    result = scorer.score(
        [text for column in candidates for text in column],
        texts * len(systems) if any(texts) else None,
        context_of * len(systems),
        samples=samples,
    )
    signature = result.signature
    if from_others:
        signature = replace(signature, entries={**signature.entries, "samples": "others"})
    scored = zip(systems, candidates, np.reshape(result.scores, (-1, count)).tolist(), strict=True)
    order, written, scores = zip(*sorted(scored, key=lambda system: -sum(system[2])), strict=True)
    ranked = [
        SystemScore(name, tuple(values), mean_interval(values, codes, confidence=confidence))
        for name, values in zip(order, scores, strict=True)
    ]
    by_row = zip(context_of, texts, zip(*written, strict=True), zip(*scores, strict=True), strict=True)
    rows = [ComparedRow(row, *cells) for row, cells in enumerate(by_row)]
    group_count = int(codes.max()) + 1
    # Notices count the rows through all systems.
    places = [f"rows {place * count}-{(place + 1) * count - 1}: {name}" for place, name in enumerate(systems)]
    notices = [f"{notice} [{', '.join(places)}]" for notice in result.notices]
    if reason := too_few(group_count, "different contexts" if groups is None else "groups"):
        notices.append(f"no intervals and no p-values: {reason}")
    return SystemRanking(
        systems=tuple(ranked),
        pairs=_pairs(ranked, codes, confidence, resamples),
        rows=tuple(rows),
        groups=group_count,
        confidence=confidence,
        resamples=resamples,
        signature=signature,
        notices=tuple(notices),
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
