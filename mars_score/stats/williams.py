"""Williams' test: does one of two metrics correlate better with the same ratings?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

from mars_score.stats.weighted import ROUNDING

# With no more items the test has no degrees of freedom.
_FEWEST = 3


@dataclass(frozen=True)
class WilliamsTest:
    """Result of ``williams_test``.

    Attributes:
        t: positive where the first correlation is the larger one, or NaN.
        degrees_of_freedom: n - 3.
        p: two-sided, or NaN.
        reason: why t and p are NaN; None otherwise.
    """

    t: float
    degrees_of_freedom: int
    p: float
    reason: str | None = None


def williams_test(r_first: float, r_second: float, r_between: float, n: int) -> WilliamsTest:
    """Williams' test for two dependent Pearson correlations that share a variable (here the ratings).

    With K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23, the determinant of the correlation matrix::

        t = (r12 - r13) sqrt((n-1) (1 + r23) / (2 K (n-1)/(n-3) + ((r12 + r13)/2)^2 (1 - r23)^3))

    has about Student's distribution with n - 3 degrees of freedom (Williams 1959, "The comparison of regression
    variables"; Graham and Baldwin 2014 for metrics). It takes the items to be independent and normal. The items
    of a group are not independent: n is then too large and p too small, and the tests that draw whole groups are
    the ones to trust.

    Args:
        r_first: correlation of the first metric with the ratings.
        r_second: correlation of the second metric with the ratings.
        r_between: correlation of the two metrics with each other, over the same items.
        n: the number of items.

    Returns:
        The test; NaN where a correlation is, for fewer than 4 items, and where the metrics are linear functions
        of each other or the correlations contradict each other.

    Raises:
        ValueError: a correlation outside [-1, 1].
    """
    if any(abs(r) > 1 for r in (r_first, r_second, r_between)):
        raise ValueError(f"a correlation outside [-1, 1]: {r_first}, {r_second}, {r_between}")
    determinant = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    reason = None
    if any(math.isnan(r) for r in (r_first, r_second, r_between)):
        reason = "a correlation is undefined"
    elif n <= _FEWEST:
        reason = f"fewer than {_FEWEST + 1} items"
    elif 1 - abs(r_between) < ROUNDING:
        reason = "the two metrics are linear functions of each other"
    elif determinant < -ROUNDING:
        reason = "no items have these three correlations"
    if reason:
        return WilliamsTest(math.nan, n - 3, math.nan, reason)
    mean = (r_first + r_second) / 2
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    t = (r_first - r_second) * math.sqrt((n - 1) * (1 + r_between) / spread)
    return WilliamsTest(float(t), n - 3, float(2 * stats.t.sf(abs(t), n - 3)))
