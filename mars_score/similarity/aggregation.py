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


def weighted_similarity(similarities: Sequence[float], q: float) -> float:
    """Score against one human reference: the weighted mean over it and its augmentations."""
    return float(np.dot(geometric_weights(len(similarities), q), similarities))


def combine_references(scores: Sequence[float], how: str) -> float:
    """Score of a row with several human references: the ``"max"`` or the ``"mean"``."""
    return max(scores) if how == "max" else sum(scores) / len(scores)
