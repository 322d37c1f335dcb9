"""From similarities to a score (section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def geometric_weights(count: int, q: float) -> NDArray[np.float64]:
    """Weights a * q**i for i = 0 (the human reference), 1, ..., summing to 1; shape (count,)."""
    weights = q ** np.arange(count, dtype=np.float64)
    weights /= weights.sum()
    weights.setflags(write=False)
    return weights


def combine_augmentations(similarities: Sequence[float], how: str, q: float) -> float:
    """Score against one human reference.

    Args:
        similarities: with the human reference, then with its augmentations by rising mask ratio.
        how: ``"weighted"``: the mean with geometric weights (section 2.3). ``"best"``: the mean of the first and
            the largest, so that an augmentation counts where it is what the candidate says, and otherwise does
            no harm; chosen on development sets (see docs/results.md).
        q: of the geometric weights.
    """
    if how == "best":
        return (similarities[0] + max(similarities)) / 2
    return float(np.dot(geometric_weights(len(similarities), q), similarities))


def combine_references(scores: Sequence[float], how: str) -> float:
    """Score of a row with several human references: the ``"max"`` or the ``"mean"``."""
    return max(scores) if how == "max" else sum(scores) / len(scores)
