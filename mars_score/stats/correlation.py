"""How well metric scores agree with human ratings (how surely, and which metric agrees better: resampling.py).

An item is one rated text; a group holds the items that share a source (one context, the texts of all systems),
which are not independent of each other; a system wrote some of the items. Coefficients are Pearson's r,
Spearman's rho and Kendall's tau-b. What is undefined is NaN with a reason, never an exception. Items without a
rating are to be left out by the caller: a missing rating (NaN) makes a result undefined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mars_score.stats.levels import pooled, system_means, within
from mars_score.stats.rated import Coefficient, Labels, Level, Rated, Values, check_known, codes_of
from mars_score.stats.weighted import scaled

# With fewer, a coefficient can only be +-1 (or 0).
_FEWEST = 3
_COEFFICIENTS: dict[Coefficient, Any] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}


@dataclass(frozen=True)
class Estimate:
    """A correlation coefficient.

    Attributes:
        value: -1 to 1, or NaN.
        n: the items it rests on (at level "systems": the systems).
        reason: why the value is NaN; None otherwise.
    """

    value: float
    n: int
    reason: str | None = None


def correlation(
    scores: Values,
    ratings: Values,
    *,
    coefficient: Coefficient = "pearson",
    level: Level = "items",
    groups: Labels | None = None,
    systems: Labels | None = None,
) -> Estimate:
    """The correlation of a metric's scores with human ratings.

    Level "items": over all items. Level "systems": over the systems, each with the means of its items. Level
    "within_groups": over all items, but items are compared with items of their own group only, so that a group
    that is easy for every system counts neither for nor against the metric:

    - Pearson: values are centred by the mean of their group, then pooled.
    - Spearman: values are replaced by their ranks within the group, as fractions (rank - 1/2) / size, centred
      and pooled. Ranking the centred values instead would compare differences between groups again, and a
      monotone transform of the scores would change the result.
    - Kendall: concordant, discordant and tied pairs are counted within groups and summed, then put into the
      formula of tau-b. A group counts by its number of pairs.

    A group of one item says nothing there and is not in ``n``.

    Args:
        scores: (items,) of the metric, larger is better.
        ratings: (items,) by people, larger is better.
        coefficient: "pearson", "spearman" or "kendall" (tau-b).
        level: see above.
        groups: (items,) labels, strings or integers; needed at level "within_groups".
        systems: (items,) labels, strings or integers; needed at level "systems".

    Returns:
        The coefficient; NaN where scores or ratings are not finite or do not vary, or for fewer than 3 items
        (systems).

    Raises:
        ValueError: lengths differ, labels are missing, or a name is unknown.
    """
    check_known("coefficient", coefficient, tuple(_COEFFICIENTS))
    return estimate(Rated.of(scores, ratings, level, groups, systems), coefficient)


def correlation_per_system(scores: Values, ratings: Values, systems: Labels) -> dict[str | int, Estimate]:
    """Pearson's r over the items of each system, one per system (the paper's Table 3).

    Args:
        scores: (items,).
        ratings: (items,).
        systems: (items,) labels, strings or integers.

    Returns:
        By system, sorted; a system whose coefficient is undefined is there with its reason.

    Raises:
        ValueError: as ``correlation``.
    """
    items = Rated.of(scores, ratings, "systems", None, systems)
    names, codes = codes_of("systems", systems, len(items.scores))
    return {
        name: correlation(items.scores[codes == code], items.ratings[codes == code])
        for code, name in enumerate(names)
    }


def estimate(items: Rated, coefficient: Coefficient = "pearson") -> Estimate:
    """The coefficient over all groups, or why there is none."""
    n = _size(items)
    reason = _why_undefined(items, n, coefficient)
    if reason:
        return Estimate(math.nan, n, reason)
    if items.level == "within_groups":
        return Estimate(float(pooled(items, coefficient)(np.ones((1, items.group_count)))[0]), n)
    pair = items.scores, items.ratings
    if items.level == "systems":
        pair = system_means(scaled(items.scores), items), system_means(scaled(items.ratings), items)
    elif coefficient == "pearson":
        pair = scaled(items.scores), scaled(items.ratings)
    return Estimate(float(_COEFFICIENTS[coefficient](*pair).statistic), n)


def _size(items: Rated) -> int:
    """How many items (systems) a coefficient rests on."""
    if items.level == "systems":
        return items.system_count
    if items.level == "within_groups":
        sizes = np.bincount(items.groups)
        return int(sizes[sizes > 1].sum())
    return len(items.scores)


def _why_undefined(items: Rated, n: int, coefficient: Coefficient) -> str | None:
    """The reason why a coefficient is undefined, or None."""
    for name, values in (("ratings", items.ratings), ("scores", items.scores)):
        bad = int((~np.isfinite(values)).sum())
        if bad:
            return f"{bad} of {len(values)} {name} are missing or not finite"
    where = {"items": "items", "within_groups": "items in groups of two or more", "systems": "systems"}
    if n < _FEWEST:
        return f"{n} {where[items.level]}, fewer than {_FEWEST}"
    for name, values in (("ratings", items.ratings), ("scores", items.scores)):
        if items.level == "systems":
            spread, of = system_means(scaled(values), items), "the systems' mean "
        elif items.level == "within_groups":
            spread, of = within(values, items.groups, coefficient), "within every group all "
        else:
            spread, of = scaled(values), "all "
        if np.ptp(spread) == 0:
            return f"{of}{name} are equal"
    return None
