"""Scores and ratings -> how well each metric agrees with people, and whether MARS agrees better."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from mars_score.meta.scoring import MetricScores, ScoredSet
from mars_score.stats.correlation import (
    Coefficient,
    Comparison,
    Estimate,
    Level,
    MainLevel,
    at_level,
    bootstrap_interval,
    compare_correlations,
    correlation,
)
from mars_score.stats.resampling import Interval

MARS = "mars"  # the metric that the others are compared with
_TIE = 1e-5


@dataclass(frozen=True)
class Robustness:
    """A metric under an attack, over the items that could be attacked.

    Attributes:
        share: of items whose candidate scores above its attack; ties count as failures, and scores that differ
            by less than 1e-5 of their size are ties: a mean over words in another order is equal but for rounding.
        n: the items.
        before: Pearson correlation of the candidates' scores with the ratings.
        after: that of the attacks' scores with the same ratings.
    """

    share: float
    n: int
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class Agreement:
    """How well a metric agrees with the ratings of a set.

    Attributes:
        coefficients: by level and coefficient.
        interval: of Pearson's r at the main level, from resamples of groups.
        per_system: Pearson's r over the items of each system (the paper's Table 3).
        system_intervals: of ``per_system``.
        mars_better: whether MARS correlates better (Pearson, main level, two-sided), by permutation within groups;
            None for MARS itself and where MARS was not scored.
        robustness: by attack.
    """

    coefficients: Mapping[Level, Mapping[Coefficient, Estimate]]
    interval: Interval
    per_system: Mapping[str, Estimate]
    system_intervals: Mapping[str, Interval]
    mars_better: Comparison | None
    robustness: Mapping[str, Robustness]


def agreements(
    scored: ScoredSet, level: MainLevel = "items", *, resamples: int = 1000, seed: int = 0
) -> dict[str, Agreement]:
    """By metric; what is undefined is NaN with its reason.

    Args:
        scored: a set with its metrics' scores.
        level: of intervals and tests: "within_groups" where ratings compare within a group only.
        resamples: of intervals and tests.
        seed: of their generators.
    """
    data = scored.data
    draws = {"resamples": resamples, "seed": seed}
    rated = {
        name: at_level(metric.scores, data.ratings, level, groups=data.groups)
        for name, metric in scored.metrics.items()
    }
    found = {}
    for name, metric in scored.metrics.items():
        systems = {system: _of_system(metric, scored, system, draws) for system in sorted(set(data.systems))}
        found[name] = Agreement(
            _coefficients(metric, scored),
            bootstrap_interval(rated[name], **draws),
            {system: estimate for system, (estimate, _) in systems.items()},
            {system: interval for system, (_, interval) in systems.items()},
            compare_correlations(rated[MARS], rated[name], **draws) if MARS in rated and name != MARS else None,
            {attack: _robustness(scored, metric, attack) for attack in scored.attacks},
        )
    return found


def _coefficients(metric: MetricScores, scored: ScoredSet) -> dict[Level, dict[Coefficient, Estimate]]:
    data = scored.data
    labels = {"groups": data.groups, "systems": data.systems}
    return {
        level: {
            coefficient: correlation(metric.scores, data.ratings, coefficient=coefficient, level=level, **labels)
            for coefficient in get_args(Coefficient)
        }
        for level in get_args(Level)
    }


def _of_system(
    metric: MetricScores, scored: ScoredSet, system: str, draws: Mapping[str, int]
) -> tuple[Estimate, Interval]:
    """Pearson's r over the items of a system, and its interval."""
    items = [index for index, item in enumerate(scored.data.items) if item.system == system]
    ratings = [scored.data.ratings[index] for index in items]
    groups = [scored.data.groups[index] for index in items]
    interval = bootstrap_interval(at_level(metric.scores[items], ratings, "items", groups=groups), **draws)
    return correlation(metric.scores[items], ratings), interval


def _robustness(scored: ScoredSet, metric: MetricScores, attack: str) -> Robustness:
    indices = list(scored.attacks[attack].indices)
    before, after = metric.scores[indices], metric.attacked[attack]
    ratings = [scored.data.ratings[index] for index in indices]
    known = bool(indices) and not np.isnan(before).any() and not np.isnan(after).any()
    above = (before > after) & ~np.isclose(before, after, rtol=_TIE, atol=0)
    return Robustness(
        float(above.mean()) if known else math.nan,
        len(indices),
        correlation(before, ratings),
        correlation(after, ratings),
    )
