"""Rank systems over the same references and contexts, with intervals, tests and the rows that differ most."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from mars_score.data.checking import check_candidates
from mars_score.data.writing import plain
from mars_score.errors import BY_INDEX, Notice, Notices, Place
from mars_score.findings import listed
from mars_score.results import MarsResult
from mars_score.rows import Contexts, Row, Tasks, Texts
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


@dataclass(frozen=True)
class SystemScore:
    """The scores of a system.

    Attributes:
        name: of the system.
        scores: one per row.
        interval: of the mean score.
        contradicted: indices of the rows with a contradiction.
    """

    name: str
    scores: tuple[float, ...]
    interval: Interval
    contradicted: tuple[int, ...] = ()

    @property
    def score(self) -> float:
        """Return the mean over rows."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class SystemPair:
    """Two systems of a ranking.

    Attributes:
        first: name of the system with the higher score.
        second: name of the other system.
        difference: of their scores, at least 0.
        interval: of the difference.
        p: two-sided p-value, adjusted for the number of pairs (Holm), or NaN.
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
    """A row with the candidates and scores of all systems, in the order of the ranking.

    ``row`` is its index. ``asked`` is what the candidates answer: the last turn of a dialogue, or the question of
    passages; "" for other contexts.
    """

    row: int
    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: tuple[float, ...]
    asked: str = ""

    @property
    def spread(self) -> float:
        """Return the highest score minus the lowest."""
        return max(self.scores) - min(self.scores)


@dataclass(frozen=True)
class SystemRanking:
    """Two or more systems, ranked by their scores. Two differ significantly if p is at most 1 - confidence.

    Attributes:
        systems: the highest score first.
        pairs: all pairs of systems, in the order of the ranking.
        rows: in input order.
        groups: number of groups that were resampled: distinct contexts, or the caller's groups.
        confidence: coverage of the intervals.
        resamples: number of resamples of the tests.
        signature: identifies all that the scores depend on besides the texts. Report it beside them.
        notices: a sentence for each notice on rows, and on missing intervals and tests.
        untested: why there are no tests; "" if there are.
    """

    systems: tuple[SystemScore, ...]
    pairs: tuple[SystemPair, ...]
    rows: tuple[ComparedRow, ...]
    groups: int
    confidence: float
    resamples: int
    signature: Signature
    notices: tuple[str, ...] = ()
    untested: str = ""

    @property
    def verdict(self) -> str:
        """Return a sentence that says which systems score higher than others, and which cannot be told apart."""
        clauses = []
        for system in self.systems[:-1]:
            higher, alike = [], []
            for pair in (pair for pair in self.pairs if pair.first == system.name):
                if pair.p <= 1 - self.confidence + SAME:
                    higher.append(f"{pair.second} ({pair.difference:+.3f}, p = {pair.p:.2g})")
                else:
                    alike.append(pair.second + ("" if math.isnan(pair.p) else f" (p = {pair.p:.2g})"))
            parts = [f"scores higher than {listed(higher)}"] if higher else []
            parts += [f"cannot be told apart from {listed(alike)}"] if alike else []
            clauses.append(f"{system.name} {', but '.join(parts)}")
        if self.untested:
            clauses.append(f"no test: {self.untested}")
        return "; ".join(clauses)

    def most_different(self, count: int) -> list[ComparedRow]:
        """Return the ``count`` rows with the largest spread, largest first, without rows of equal scores."""
        differing = [row for row in self.rows if row.spread > SAME]
        return sorted(differing, key=lambda row: -row.spread)[:count]

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Return plain data for JSON, with None for NaN and only the ``rows`` rows that differ most."""
        return {
            "systems": [
                {
                    "name": system.name,
                    "mars": system.score,
                    "interval": system.interval.ends,
                    "scores": list(system.scores),
                    "contradicted": list(system.contradicted),
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


def _count_notices(result: MarsResult, names: Sequence[str], place: Place) -> list[str]:
    """Return a sentence for each notice, with its number of rows by system if the systems differ."""
    counted, count = Notices(), len(result.rows) // len(names)
    by_system = [Counter[Notice]() for _ in names]
    for index, score in enumerate(result.row_scores):
        counted.add(place.of(names[index // count], index % count), score.notices)
        by_system[index // count].update(score.notices)
    sentences = []
    for notice, sentence in counted.sentences().items():
        counts = [counts[notice] for counts in by_system]
        by_name = ", ".join(f"{name} {number}" for name, number in zip(names, counts, strict=True))
        sentences.append(sentence if len(set(counts)) == 1 else f"{sentence}; by system: {by_name}")
    return sentences


def rank_systems(
    scorer: MarsScorer,
    systems: Mapping[str, Any],
    references: Texts | None = None,
    contexts: Contexts | None = None,
    *,
    samples: Texts | None = None,
    tasks: Tasks | None = None,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    place: Place = BY_INDEX,
) -> SystemRanking:
    """Rank two or more systems over the same references and contexts by their MARS scores, and test each pair.

    All systems are scored in one call, so that each reference is augmented once and IDF is the same for all. Rows
    of one context are not independent, so whole groups of rows are resampled: with replacement for the intervals
    (paired bootstrap), and by swapping two systems' scores for the p-values (approximate randomisation, which
    keeps its level even with few groups).

    Args:
        scorer: holds models and settings.
        systems: candidates by name of the system, one per row.
        references: as for :meth:`MarsScorer.score`, like contexts and tasks.
        contexts: as above.
        samples: as for :meth:`MarsScorer.score`, or ``"others"`` for the other systems' candidates of the row.
            Scores then depend on the set of systems, and the signature says so.
        tasks: as above.
        groups: one label per row, strings or integers. Rows of a group, such as a document, are resampled
            together. If None, rows of one context are a group, and so is each row without a context.
        confidence: of the intervals. The level of the tests is 1 - confidence.
        resamples: number of resamples of the tests.
        place: names a row of a system in the notices.

    Returns:
        The ranking. With fewer than ten groups, intervals and p-values are NaN, and a notice says so.

    Raises:
        TypeError, ValueError: bad input, named with its row before any model is loaded, or fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    from_others = isinstance(samples, str) and samples == "others"
    if from_others:
        scorer.check_inputs(has_references=references is not None, has_samples=True)
    candidates = {
        name: check_candidates(column, place=Place(names={"predictions": f"systems[{name!r}]"}))
        for name, column in systems.items()
    }
    columns = {f"systems[{name!r}]": column for name, column in candidates.items()}
    examples = scorer.check_examples(references, contexts, None if from_others else samples, tasks, **columns)
    rows = {
        name: [example.with_candidate(text) for example, text in zip(examples, column, strict=True)]
        for name, column in candidates.items()
    }
    return rank_rows(
        scorer,
        rows,
        samples_from_others=from_others,
        groups=groups,
        confidence=confidence,
        resamples=resamples,
        place=place,
    )


def rank_rows(
    scorer: MarsScorer,
    systems: Mapping[str, Sequence[Row]],
    *,
    samples_from_others: bool = False,
    groups: Labels | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    place: Place = BY_INDEX,
) -> SystemRanking:
    """Rank systems by checked rows, which are equal in all but their candidates; see :func:`rank_systems`.

    With ``samples_from_others`` the samples of a row are the other systems' candidates.

    Raises:
        ValueError: no rows, or fewer than two systems.
        ModelUnavailableError: a model cannot be loaded.
    """
    if len(systems) < 2:
        raise ValueError(f"a comparison needs at least two systems, got {len(systems)}")
    check_resampling(resamples, confidence)
    names, columns = list(systems), list(systems.values())
    count = len(columns[0])
    if not count:
        raise ValueError("there are no rows to compare")
    labels = ContextLabels().of(row.prompt for row in columns[0]) if groups is None else groups
    codes = label_codes("groups", labels, count)
    result = scorer.score_rows([*chain.from_iterable(_with_samples(columns) if samples_from_others else columns)])
    signature = result.signature
    if samples_from_others:
        signature = replace(signature, entries={**signature.entries, "samples": "others"})
    notices = _count_notices(result, names, place)
    ranked = _system_scores(result, names, codes, confidence)
    ranked.sort(key=lambda system: -sum(system.scores))
    group_count = len(np.unique(codes))
    reason = too_few(group_count, "different contexts" if groups is None else "groups")
    if reason:
        notices.append(f"no intervals and no p-values: {reason}")
    return SystemRanking(
        systems=tuple(ranked),
        pairs=_pairs(ranked, codes, confidence, resamples),
        rows=tuple(_compared_rows(systems, ranked)),
        groups=group_count,
        confidence=confidence,
        resamples=resamples,
        signature=signature,
        notices=tuple(notices),
        untested=reason or "",
    )


def _system_scores(result: MarsResult, names: Sequence[str], codes: Codes, confidence: float) -> list[SystemScore]:
    """Return the scores of each system. Its rows are consecutive in the result."""
    count = len(result.rows) // len(names)
    systems = []
    for number, name in enumerate(names):
        rows = result.row_scores[number * count : (number + 1) * count]
        scores = tuple(row.score for row in rows)
        contradicted = tuple(index for index, row in enumerate(rows) if row.contradicted)
        systems.append(
            SystemScore(name, scores, mean_interval(scores, codes, confidence=confidence), contradicted)
        )
    return systems


def _with_samples(columns: Sequence[Sequence[Row]]) -> Iterator[list[Row]]:
    """Yield the rows of each system with the other systems' candidates, unless blank, as samples."""
    texts = [[row.candidate for row in same] for same in zip(*columns, strict=True)]
    for system, rows in enumerate(columns):
        yield [
            replace(row, samples=tuple(dict.fromkeys(filter(None, [*same[:system], *same[system + 1 :]]))))
            for row, same in zip(rows, texts, strict=True)
        ]


def _compared_rows(systems: Mapping[str, Sequence[Row]], ranked: Sequence[SystemScore]) -> Iterator[ComparedRow]:
    for number, same in enumerate(zip(*(systems[system.name] for system in ranked), strict=True)):
        texts = tuple(row.candidate for row in same)
        scores = tuple(system.scores[number] for system in ranked)
        row = same[0]
        asked = row.context.splitlines()[-1] if row.task == "dialogue" and row.context else row.question
        yield ComparedRow(number, row.prompt, row.references, texts, scores, asked)


def _pairs(
    ranked: Sequence[SystemScore], groups: Codes, confidence: float, resamples: int
) -> tuple[SystemPair, ...]:
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
