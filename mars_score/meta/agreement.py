"""Scores and ratings -> how well each metric agrees with people, and whether MARS agrees better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from mars_score.meta.scoring import MetricScores, ScoredSet
from mars_score.scoring.result import RowScore
from mars_score.stats.correlation import (
    Coefficient,
    Estimate,
    Level,
    at_level,
    correlation,
    correlation_per_system,
)
from mars_score.stats.draws import Interval
from mars_score.stats.resampling import (
    Comparison,
    MainLevel,
    Test,
    bootstrap_interval,
    compare_correlations,
)

MARS = "mars"  # the metric that the others are compared with
_TIE = 1e-5


@dataclass(frozen=True)
class Robustness:
    """A metric under an attack, over the items that could be attacked.

    Attributes:
        share: of items whose candidate scores above its attack; ties count as failures, and scores that differ
            by less than 1e-5 of their size are ties: a mean over words in another order is equal but for rounding.
        n: the items.
        skipped: items that could not be attacked.
        before: Pearson correlation of the candidates' scores with the ratings.
        after: that of the attacks' scores with the same ratings.
    """

    share: float
    n: int
    skipped: int
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class Tests:
    """Whether MARS correlates better with the ratings (Pearson, main level, two-sided) than another metric.

    Attributes:
        bootstrap: over groups.
        permutation: within groups.
    """

    bootstrap: Comparison
    permutation: Comparison


@dataclass(frozen=True)
class Agreement:
    """How well a metric agrees with the ratings of a set.

    Attributes:
        coefficients: by level and coefficient.
        interval: of Pearson's r at the main level, from resamples of groups.
        per_system: Pearson's r over the items of each system (the paper's Table 3).
        system_intervals: of ``per_system``.
        mars_better: MARS compared with this metric; None for MARS itself and where MARS was not scored.
        robustness: by attack.
        changed: of MARS's variants the share of augmentations that differ from their reference, else NaN.
    """

    coefficients: Mapping[Level, Mapping[Coefficient, Estimate]]
    interval: Interval
    per_system: Mapping[str, Estimate]
    system_intervals: Mapping[str, Interval]
    mars_better: Tests | None
    robustness: Mapping[str, Robustness]
    changed: float


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
    return {name: _agreement(name, scored, level, resamples, seed) for name in scored.metrics}


def _agreement(name: str, scored: ScoredSet, level: MainLevel, resamples: int, seed: int) -> Agreement:
    data, scores = scored.data, scored.metrics[name].scores
    coefficients = {
        one: {
            kind: correlation(
                scores, data.ratings, coefficient=kind, level=one, groups=data.groups, systems=data.systems
            )
            for kind in get_args(Coefficient)
        }
        for one in get_args(Level)
    }
    rated = at_level(scores, data.ratings, level, groups=data.groups)
    interval = bootstrap_interval(rated, resamples=resamples, seed=seed)
    per_system = correlation_per_system(scores, data.ratings, data.systems)
    return Agreement(
        coefficients,
        interval,
        {str(system): estimate for system, estimate in per_system.items()},
        {str(system): _system_interval(name, scored, str(system), resamples, seed) for system in per_system},
        _tests(name, scored, level, resamples, seed),
        {attack: _robustness(scored, scored.metrics[name], attack) for attack in scored.attacks},
        share_changed(scored.metrics[name].details),
    )


def _system_interval(name: str, scored: ScoredSet, system: str, resamples: int, seed: int) -> Interval:
    data = scored.data
    of_system = [index for index, one in enumerate(data.systems) if one == system]
    ratings = [data.ratings[index] for index in of_system]
    groups = [data.groups[index] for index in of_system]
    rated = at_level(scored.metrics[name].scores[of_system], ratings, "items", groups=groups)
    return bootstrap_interval(rated, resamples=resamples, seed=seed)


def _tests(name: str, scored: ScoredSet, level: MainLevel, resamples: int, seed: int) -> Tests | None:
    """Whether MARS is better than the metric."""
    if name == MARS or MARS not in scored.metrics:
        return None
    data = scored.data
    first, second = (
        at_level(scored.metrics[metric].scores, data.ratings, level, groups=data.groups) for metric in (MARS, name)
    )
    bootstrap, permutation = (
        compare_correlations(first, second, test=test, resamples=resamples, seed=seed) for test in get_args(Test)
    )
    return Tests(bootstrap, permutation)


def _robustness(scored: ScoredSet, metric: MetricScores, attack: str) -> Robustness:
    attacked = scored.attacks[attack]
    indices = list(attacked.indices)
    before, after = metric.scores[indices], metric.attacked[attack]
    ratings = [scored.data.ratings[index] for index in indices]
    known = bool(indices) and not np.isnan(before).any() and not np.isnan(after).any()
    above = (before > after) & ~np.isclose(before, after, rtol=_TIE, atol=0)
    return Robustness(
        float(above.mean()) if known else math.nan,
        len(indices),
        attacked.skipped,
        correlation(before, ratings),
        correlation(after, ratings),
    )


def share_changed(details: Sequence[RowScore]) -> float:
    """The share of the different augmentations whose text is not that of their reference; NaN without any."""
    different = {
        (reference.augmented.reference, one.mask_ratio, one.text)
        for row in details
        for reference in row.references
        for one in reference.augmented.augmentations
    }
    return sum(text != reference for reference, _, text in different) / len(different) if different else math.nan
