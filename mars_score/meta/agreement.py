"""Agreement of metrics with human ratings: correlations, attacks on candidates, and MARS against other metrics."""

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, zip_longest
from typing import get_args

import numpy as np

from mars_score.errors import extra_meta
from mars_score.meta.sets import RatedSet, SingleRatings
from mars_score.rows import Row
from mars_score.sentences import sentences
from mars_score.stats.correlation import (
    Coefficient,
    CorrelationTest,
    Estimate,
    Level,
    MainLevel,
    at_level,
    bootstrap_interval,
    compare_correlations,
    correlation,
)
from mars_score.stats.resampling import Floats, Interval

MARS = "mars"  # the metric that the others are compared with
_TIE = 1e-5  # relative difference that the order of words may cause by rounding


# Attacks: changed candidates that a good metric scores below the originals (Table 4 of the paper)


@dataclass(frozen=True)
class Attacked:
    """Rows under an attack.

    Attributes:
        indices: indices of the rows that could be attacked.
        rows: these rows with the attack as candidate.
        skipped: number of rows that could not be attacked.
    """

    indices: tuple[int, ...]
    rows: tuple[Row, ...]
    skipped: int


def reorder(row: Row, generator: random.Random) -> str | None:
    """Shuffle half of the candidate's tokens, or return None if it has fewer than four or all are equal."""
    tokens = row.candidate.split()
    if len(tokens) < 4 or len(set(tokens)) == 1:
        return None
    count = max(2, round(len(tokens) / 2))
    while True:
        sources = generator.sample(range(len(tokens)), count)
        moved = list(tokens)
        for target, source in zip(sorted(sources), sources, strict=True):
            moved[target] = tokens[source]
        if moved != tokens:
            return " ".join(moved)


def retrieve(row: Row, generator: random.Random) -> str | None:
    """Choose a sentence of the context that is not the candidate, or return None if it has fewer than three."""
    texts = sentences(row.context)
    candidate = row.candidate.lower().split()
    others = [text for text in dict.fromkeys(texts) if text.lower().split() != candidate]
    return generator.choice(others) if others and len(texts) >= 3 else None


ATTACKS: Mapping[str, Callable[[Row, random.Random], str | None]] = {"reorder": reorder, "retrieve": retrieve}


def attack(name: str, rows: Sequence[Row], seed: int = 0) -> Attacked:
    """Attack each row that can be attacked. The result depends only on the row's texts and the seed."""
    indices, attacked = [], []
    for index, row in enumerate(rows):
        key = repr((name, row.candidate, row.references, row.context, seed)).encode("utf-8", "surrogatepass")
        generator = random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
        text = ATTACKS[name](row, generator) if row.candidate.strip() else None
        if text is not None:
            indices.append(index)
            attacked.append(replace(row, candidate=text))
    return Attacked(tuple(indices), tuple(attacked), len(rows) - len(indices))


# Agreement


@dataclass(frozen=True)
class MetricScores:
    """The scores of a metric on a set.

    Attributes:
        title: title of the metric.
        note: its note for readers of tables.
        scores: (items,).
        attacked: scores by attack, (attacked rows,).
        signature: signature of a variant of MARS.
        failure: why all scores are NaN, or None.
    """

    title: str
    note: str
    scores: Floats
    attacked: Mapping[str, Floats]
    signature: str = ""
    failure: str | None = None


@dataclass(frozen=True)
class Robustness:
    """A metric under an attack, over the items that could be attacked.

    Attributes:
        share: share of items whose candidate scores above its attack. Ties do not count.
        n: number of items.
        before: Pearson's r of the candidates' scores with the ratings.
        after: Pearson's r of the attacks' scores with the same ratings.
    """

    share: float
    n: int
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class Agreement:
    """How well a metric agrees with the ratings of a set.

    Attributes:
        coefficients: coefficients by level and name.
        interval: interval of Pearson's r at the main level, from resamples of groups.
        per_system: Pearson's r over the items of each system (Table 3 of the paper).
        system_intervals: intervals of ``per_system``.
        mars_better: test whether MARS correlates better (Pearson, main level). None for MARS itself and if MARS
            was not scored.
        robustness: robustness by attack.
    """

    coefficients: Mapping[Level, Mapping[Coefficient, Estimate]]
    interval: Interval
    per_system: Mapping[str, Estimate]
    system_intervals: Mapping[str, Interval]
    mars_better: CorrelationTest | None
    robustness: Mapping[str, Robustness]


def agreements(
    data: RatedSet,
    attacks: Mapping[str, Attacked],
    metrics: Mapping[str, MetricScores],
    level: MainLevel = "items",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Agreement]:
    """Compute the agreement of each metric. Undefined figures are NaN with a reason.

    Args:
        data: the rated candidates.
        attacks: attacked rows by attack.
        metrics: scores by metric.
        level: level of intervals and tests: "within_groups" if ratings are comparable within a group only.
        resamples: resamples of intervals and tests.
        seed: seed of intervals and tests.
    """
    draws = {"resamples": resamples, "seed": seed}
    rated = {
        name: at_level(metric.scores, data.ratings, level, groups=data.groups) for name, metric in metrics.items()
    }
    by_metric = {}
    for name, metric in metrics.items():
        systems = {
            system: _system_agreement(metric.scores, data, system, draws) for system in sorted(set(data.systems))
        }
        by_metric[name] = Agreement(
            coefficients=_coefficients(metric.scores, data),
            interval=bootstrap_interval(rated[name], **draws),
            per_system={system: estimate for system, (estimate, _) in systems.items()},
            system_intervals={system: interval for system, (_, interval) in systems.items()},
            mars_better=(
                compare_correlations(rated[MARS], rated[name], **draws) if MARS in rated and name != MARS else None
            ),
            robustness={
                attack_name: _robustness(metric.scores, metric.attacked[attack_name], data, attacked)
                for attack_name, attacked in attacks.items()
            },
        )
    return by_metric


def _coefficients(scores: Floats, data: RatedSet) -> dict[Level, dict[Coefficient, Estimate]]:
    labels = {"groups": data.groups, "systems": data.systems}
    return {
        level: {
            coefficient: correlation(scores, data.ratings, coefficient=coefficient, level=level, **labels)
            for coefficient in get_args(Coefficient)
        }
        for level in get_args(Level)
    }


def _system_agreement(
    scores: Floats, data: RatedSet, system: str, draws: Mapping[str, int]
) -> tuple[Estimate, Interval]:
    kept = [other == system for other in data.systems]
    scores, ratings, groups = scores[kept], list(compress(data.ratings, kept)), list(compress(data.groups, kept))
    interval = bootstrap_interval(at_level(scores, ratings, "items", groups=groups), **draws)
    return correlation(scores, ratings), interval


def _robustness(scores: Floats, after: Floats, data: RatedSet, attacked: Attacked) -> Robustness:
    indices = list(attacked.indices)
    before, ratings = scores[indices], [data.ratings[index] for index in indices]
    known = bool(indices) and not np.isnan(before).any() and not np.isnan(after).any()
    above = (before > after) & ~np.isclose(before, after, rtol=_TIE, atol=0)
    share = float(above.mean()) if known else math.nan
    return Robustness(share, len(indices), correlation(before, ratings), correlation(after, ratings))


def rater_agreement(items: Sequence[SingleRatings]) -> dict[str, float]:
    """Compute Krippendorff's alpha of raters (on an interval scale) by aspect.

    With several aspects, "mean" is the alpha of each rater's mean over them, as in Table 2 of the paper. The n-th
    ratings of all aspects count as one rater's. An alpha is NaN if no item has two ratings, or if all ratings are
    equal. Without single ratings the result is empty.

    Raises:
        ImportError: the package krippendorff is not installed.
    """
    aspects = list(dict.fromkeys(aspect for item in items for aspect in item))
    alphas = {aspect: _alpha([item.get(aspect, ()) for item in items]) for aspect in aspects}
    if len(aspects) > 1:
        alphas["mean"] = _alpha([_mean_ratings(item, aspects) for item in items])
    return alphas


def _mean_ratings(item: SingleRatings, aspects: Sequence[str]) -> list[float]:
    """Return each rater's mean over all aspects, or [] if not all aspects have the same number of raters."""
    lists = [item.get(aspect, ()) for aspect in aspects]
    if len({len(ratings) for ratings in lists}) > 1:
        return []
    return [sum(ratings) / len(ratings) for ratings in zip(*lists, strict=True)]


def _alpha(items: Sequence[Sequence[float]]) -> float:
    with extra_meta():
        import krippendorff
    ratings = np.array([*zip_longest(*items, fillvalue=math.nan)]).reshape(-1, len(items))  # (raters, items)
    shared = ratings[:, (~np.isnan(ratings)).sum(0) > 1]
    if len(np.unique(shared[~np.isnan(shared)])) < 2:
        return math.nan
    return float(krippendorff.alpha(shared, level_of_measurement="interval"))
