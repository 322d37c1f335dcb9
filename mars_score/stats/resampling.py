"""Confidence intervals and tests of means by resampling groups of rows that are not independent."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Values = Sequence[float] | NDArray[np.floating]
Labels = Sequence[str] | Sequence[int] | NDArray[np.generic]

# With fewer groups there are no intervals and no p-values. The 95 % interval of a mean of normal groups covers it
# in 46 % of cases with 2 groups, 73 % with 3, 87 % with 5 and 90 % with 10.
_FEWEST_GROUPS = 10
SAME = 1e-9  # statistics that differ by less are equal
_CHUNK_SIZE = 1_000_000  # maximum numbers per array, as resamples are drawn in chunks


# Groups


def label_codes(name: str, labels: Labels | None, count: int) -> Codes:
    """Return the index of each item's label among the sorted different labels, (items,).

    Args:
        name: name of the labels in errors.
        labels: (items,), strings or integers, or None if each item has a different label.
        count: number of items.

    Raises:
        ValueError: the number of labels or their type is wrong.
    """
    if labels is None:
        return np.arange(count)
    labels = list(labels)
    if len(labels) != count:
        raise ValueError(f"{name} must be one label per item, got {len(labels)} for {count} items")
    # NumPy would turn a missing label (None, NaN) among strings into the string "nan".
    if not any(all(isinstance(label, kind) for label in labels) for kind in (str, int | np.integer)):
        raise ValueError(f"{name} must be all strings or all integers")
    return np.unique(np.array(labels, dtype=None if labels else np.int64), return_inverse=True)[1].astype(np.int64)


class ContextLabels:
    """Labels rows by their contexts. A row without a context has a label of its own.

    Only hashes of the contexts are kept, so the rows of a long file can come in chunks.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes | int, int] = {}

    def of(self, contexts: Iterable[str]) -> list[int]:
        """Return the labels of the next rows."""
        return [self._numbers.setdefault(self._key(context), len(self._numbers)) for context in contexts]

    def _key(self, context: str) -> bytes | int:
        if not context.strip():
            return len(self._numbers)
        return blake2b(context.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# Intervals


@dataclass(frozen=True)
class Interval:
    """A confidence interval, or NaN with the reason."""

    low: float = math.nan
    high: float = math.nan
    reason: str | None = None

    @classmethod
    def percentile(cls, values: Floats, confidence: float = 0.95) -> Self:
        """Return the percentile interval of a statistic in resamples, or NaN if most of its values are NaN."""
        defined = values[~np.isnan(values)]
        if 2 * len(defined) < len(values):
            return cls(reason=f"undefined in {len(values) - len(defined)} of {len(values)} resamples")
        return cls(*np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist())

    @property
    def ends(self) -> list[float] | None:
        """Return both ends, or None if they are NaN."""
        return None if self.reason else [self.low, self.high]


def check_resampling(resamples: int = 1, confidence: float = 0.95) -> None:
    """Raise ValueError unless resamples is positive and confidence lies between 0 and 1."""
    if resamples < 1:
        raise ValueError(f"resamples must be positive, got {resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


def too_few(groups: int, name: str = "groups") -> str | None:
    """Return why there are no intervals and no p-values, or None."""
    return f"{groups} {name}, fewer than {_FEWEST_GROUPS}" if groups < _FEWEST_GROUPS else None


def bootstrap(
    statistic: Callable[..., Floats], group_sums: Sequence[Floats], *, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Compute a statistic in resamples of groups with replacement, (resamples,).

    Args:
        statistic: a function of the sums over groups, with an array (resamples,) for each of ``group_sums``.
        group_sums: sums within each group, (groups,) each.
        resamples: number of resamples, at least 1.
        seed: seed of the resamples.
    """
    from scipy import stats  # takes a second

    check_resampling(resamples)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", stats.DegenerateDataWarning
        )  # Interval.percentile handles undefined values.
        result = stats.bootstrap(
            group_sums,
            lambda *drawn, axis: statistic(*(values.sum(axis) for values in drawn)),
            paired=True,
            method="percentile",
            n_resamples=resamples,
            batch=max(1, _CHUNK_SIZE // len(group_sums[0])),
            rng=seed,
        )
    return np.asarray(result.bootstrap_distribution)


def mean_interval(scores: Values, groups: Labels | None = None, *, confidence: float = 0.95) -> Interval:
    """Compute the percentile bootstrap interval of a mean (Koehn 2004) from resamples of groups.

    Args:
        scores: (rows,). Differences of paired scores give the interval of the difference of means.
        groups: labels, (rows,), strings or integers, or None if all rows are independent.
        confidence: coverage of the interval.

    Returns:
        The interval, or NaN with fewer than ten groups.

    Raises:
        ValueError: lengths differ, or confidence is not between 0 and 1.
    """
    check_resampling(confidence=confidence)
    sums, sizes = _sums_and_sizes(scores, groups)
    if reason := too_few(len(sums)):
        return Interval(reason=reason)
    return Interval.percentile(bootstrap(np.divide, (sums, sizes)), confidence)


# Tests


def randomise(
    statistic: Callable[[Floats], Floats], groups: int, *, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Compute a statistic under random swaps of groups, (resamples,).

    Args:
        statistic: a function of signs, (resamples, groups): -1 for a swapped group and otherwise 1.
        groups: number of groups.
        resamples: number of resamples, at least 1.
        seed: seed of the signs.
    """
    check_resampling(resamples)
    rng = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_SIZE // max(groups, 1))
    sizes = [min(chunk, resamples - start) for start in range(0, resamples, chunk)]
    return np.concatenate(
        [statistic(np.where(rng.integers(0, 2, (size, groups)) > 0, 1.0, -1.0)) for size in sizes]
    )


def permutation_p(permuted: Floats, observed: float) -> float:
    """Compute p = (count + 1) / (resamples + 1), counting the values that are NaN or at least the observed one.

    ``scipy.stats.permutation_test(permutation_type="samples")`` computes the same, but takes 4 to 6 times as long
    and does not count NaN.
    """
    return float(((~(permuted < observed - SAME)).sum() + 1) / (len(permuted) + 1))


def mean_p(differences: Values, groups: Labels | None = None, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Compute the two-sided p-value of the difference of two means by approximate randomisation (Noreen 1989).

    In each resample, the two scores of all rows of a group are swapped or not, at random. See
    :func:`permutation_p`.

    Args:
        differences: of paired scores, (rows,).
        groups: as for :func:`mean_interval`.
        resamples: number of resamples, at least 1.
        seed: seed of the swaps.

    Returns:
        The p-value, or NaN with fewer than ten groups.

    Raises:
        ValueError: lengths differ, or resamples is not positive.
    """
    sums, sizes = _sums_and_sizes(differences, groups)
    if too_few(len(sums)):
        return math.nan
    shares = sums / sizes.sum()
    swapped = randomise(lambda signs: np.abs(signs @ shares), len(sums), resamples=resamples, seed=seed)
    return permutation_p(swapped, abs(float(shares.sum())))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests, controlling the family-wise error rate (Holm 1979).

    The p-value of rank i (from 0) of m becomes the largest of (m - k) p_k over the ranks k up to i, at most 1. All
    become NaN if one is NaN.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.arange(len(values), 0, -1) * values[order]).clip(max=1)
    return list(map(float, adjusted))


def _sums_and_sizes(scores: Values, groups: Labels | None) -> tuple[Floats, Floats]:
    """Return the sum of the scores of each group, and its number of rows."""
    values = np.asarray(scores, dtype=np.float64)
    codes = label_codes("groups", groups, len(values))
    return np.bincount(codes, values).astype(np.float64), np.bincount(codes).astype(np.float64)
