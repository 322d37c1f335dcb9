"""Comparison of systems over the same references and contexts: which scores higher, how surely, and where."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from mars_score.data.validation import check_candidates, check_rows
from mars_score.data.writing import plain
from mars_score.errors import Notices
from mars_score.results import MarsResult
from mars_score.rows import Row
from mars_score.scorer import MarsScorer
from mars_score.signature import Signature
from mars_score.stats.resampling import (
    SAME,
    Codes,
    ContextLabels,
    Interval,
    Labels,
    check_resampling,
    holm,
    label_codes,
    mean_interval,
    mean_p,
    too_few,
)
from mars_score.text import is_blank


@dataclass(frozen=True)
class SystemScore:
    """A system: its name, scores (rows,) and the interval of their mean."""

    name: str
    scores: tuple[float, ...]
    interval: Interval

    @property
    def score(self) -> float:
        """Return the mean over rows."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class SystemPair:
    """Two systems of a ranking.

    Attributes:
        first: name of the system with the higher score.
        second: name of the other one.
        difference: of their scores, at least 0.
        interval: of the difference.
        p: two-sided, adjusted for the number of pairs (Holm); or NaN.
        wins: number of rows in which the first scores higher.
        ties: number of rows in which both score the same.
        losses: number of rows in which the second scores higher.
    """

    first: str
    second: str
    difference: float
    interval: Interval
    p: float
    wins: int
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
        """Return the highest score minus the lowest."""
        return max(self.scores) - min(self.scores)


@dataclass(frozen=True)
class SystemRanking:
    """Two or more systems in the order of their scores; two differ significantly if p is at most 1 - confidence.

    Attributes:
        systems: the highest score first.
        pairs: each two systems, in the order of the ranking.
        rows: in input order.
        groups: number of groups of rows that were drawn from: different contexts, or the caller's groups.
        confidence: coverage of the intervals.
        resamples: of the tests.
        signature: all that the scores depend on besides the texts; report it beside them.
        notices: what was done to some inputs (blank, shortened), and why there are no intervals and tests, a
            sentence each.
    """

    systems: tuple[SystemScore, ...]
    pairs: tuple[SystemPair, ...]
    rows: tuple[ComparedRow, ...]
    groups: int
    confidence: float
    resamples: int
    signature: Signature
    notices: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Say in one sentence which systems score higher than which, and which cannot be told apart."""
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
        """Return the ``count`` rows whose scores are spread most, the largest first; none of equal scores."""
        differing = [row for row in self.rows if row.spread > SAME]
        return sorted(differing, key=lambda row: -row.spread)[:count]

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Return plain data for JSON (undefined numbers are None), with the ``rows`` that differ most."""
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


def _count_notices(result: MarsResult, names: Sequence[str], where: Callable[[str, int], str]) -> list[str]:
    """Write a sentence for each kind of notice; rows are named by their system and ``where``."""
    counted, count = Notices(), len(result.rows) // len(names)
    for index, row in enumerate(result.rows):
        counted.add(where(names[index // count], index % count), row.notices)
    return list(counted.sentences())


def rank_systems(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    references: Any = None,
    contexts: Any = None,
    *,
    samples: Any = None,
    tasks: Any = None,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    where: Callable[[str, int], str] = "{}[{}]".format,
) -> SystemRanking:
    """Rank two or more systems over the same references and contexts by their MARS scores, and test each two.

    All are scored in one call: each reference is augmented once, and IDF is the same for all. Rows of one context
    are not independent, so whole groups of rows are drawn: with replacement for the intervals (bootstrap), and to
    swap two systems' scores for the p-values (approximate randomisation, which keeps its level also with few
    groups). The interval of a difference is that of the paired bootstrap.

    Args:
        scorer: holds models and settings.
        systems: candidates by name of the system, one per row.
        references: as for :meth:`MarsScorer.score`.
        contexts: likewise.
        samples: likewise; or ``"others"``: those of each candidate are the other systems' texts for the row.
            Scores then depend on which systems take part, and the signature says so.
        tasks: as for :meth:`MarsScorer.score`.
        groups: one label per row, strings or integers; rows of a group (a document) are drawn together. None: rows
            of one context are, and each row without a context is a group.
        confidence: of the intervals; 1 - confidence is the level of the tests.
        resamples: of the tests.
        where: names a row of a system, from 0, in the notices.

    Returns:
        The ranking; with fewer than ten groups intervals and p-values are NaN, and a notice says so.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded; fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    if len(systems) < 2:
        raise ValueError(f"a comparison needs at least two systems, got {len(systems)}")
    check_resampling(resamples, confidence)
    from_others = isinstance(samples, str) and samples == "others"
    rows, candidates = _check(scorer, systems, references, contexts, None if from_others else samples, tasks)
    labels = ContextLabels().of(row.context for row in rows) if groups is None else groups
    codes = label_codes("groups", labels, len(rows))
    result = _score(scorer, rows, candidates, samples, has_references=references is not None)
    signature = result.signature
    if from_others:
        signature = replace(signature, entries={**signature.entries, "samples": "others"})
    scores = dict(zip(candidates, np.reshape(result.scores, (-1, len(rows))).tolist(), strict=True))
    notices = _count_notices(result, list(candidates), where)
    ranked = sorted(
        (
            SystemScore(name, tuple(own), mean_interval(own, codes, confidence=confidence))
            for name, own in scores.items()
        ),
        key=lambda system: -sum(system.scores),
    )
    group_count = len(np.unique(codes))
    if reason := too_few(group_count, "different contexts" if groups is None else "groups"):
        notices.append(f"no intervals and no p-values: {reason}")
    return SystemRanking(
        systems=tuple(ranked),
        pairs=_pairs(ranked, codes, confidence, resamples),
        rows=tuple(_compared_rows(rows, candidates, ranked)),
        groups=group_count,
        confidence=confidence,
        resamples=resamples,
        signature=signature,
        notices=tuple(notices),
    )


def _check(
    scorer: MarsScorer, systems: Mapping[str, Any], references: Any, contexts: Any, samples: Any, tasks: Any
) -> tuple[list[Row], dict[str, list[str]]]:
    """Check all columns; return the rows without candidates, and the candidates of each system."""
    candidates = {
        name: check_candidates(column, where=f"systems[{name!r}][{{}}]".format) for name, column in systems.items()
    }
    columns: dict[str, Any] = {f"systems[{name!r}]": column for name, column in candidates.items()}
    settings = scorer.settings
    rows = check_rows(
        references, contexts, samples, tasks, use_context=settings.use_context, task=settings.task, **columns
    )
    if not rows:
        raise ValueError("there are no rows to compare")
    return rows, candidates


def _score(
    scorer: MarsScorer,
    rows: Sequence[Row],
    candidates: Mapping[str, Sequence[str]],
    samples: Any,
    *,
    has_references: bool,
) -> MarsResult:
    """Score all systems, one after another, in one call."""
    columns = list(candidates.values())
    from_others = isinstance(samples, str) and samples == "others"
    if from_others:
        samples = _texts_of_others(columns)
    elif samples is not None:
        samples = [row.samples for row in rows] * len(columns)
    return scorer.score(
        [text for column in columns for text in column],
        [row.references for row in rows] * len(columns) if has_references else None,
        [row.context for row in rows] * len(columns),
        samples=samples,
        tasks=[row.task for row in rows] * len(columns),
    )


def _texts_of_others(columns: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the texts of the other systems for each candidate, system by system; none of them blank."""
    return [
        [text for index, text in enumerate(row) if index != own and not is_blank(text)]
        for own in range(len(columns))
        for row in zip(*columns, strict=True)
    ]


def _compared_rows(
    rows: Sequence[Row], candidates: Mapping[str, Sequence[str]], ranked: Sequence[SystemScore]
) -> Iterator[ComparedRow]:
    for number, row in enumerate(rows):
        texts = tuple(candidates[system.name][number] for system in ranked)
        scores = tuple(system.scores[number] for system in ranked)
        yield ComparedRow(number, row.context, row.references, texts, scores)


def _pairs(
    ranked: Sequence[SystemScore], groups: Codes, confidence: float, resamples: int
) -> tuple[SystemPair, ...]:
    """Compare each two of the ranked systems, with p-values adjusted for their number."""
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
