"""The similarity of a candidate and a reference, and its aggregation over references."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Literal

from numpy.typing import NDArray

Aggregation = Literal["max", "mean"]


def token_recall(candidate: NDArray[Any], reference: NDArray[Any]) -> float:
    """Compute the mean, over tokens of the reference, of the largest cosine with a token of the candidate.

    This is the recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr). It is 0 if
    either text has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions). An unknown token has zeros and matches nothing.
        reference: unit vectors, (tokens, dimensions).
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())


def aggregate(values: Sequence[float], how: Aggregation) -> float:
    """Return the maximum or the mean over references."""
    return max(values) if how == "max" else fmean(values)
