"""How much of a reference a candidate holds, and the value of several references."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Literal

from numpy.typing import NDArray

Aggregation = Literal["max", "mean"]


def token_recall(candidate: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the mean over the reference's tokens of their largest cosine with a token of the candidate.

    The recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr); 0 where one of them
    has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions); zeros for an unknown token, which matches nothing.
        reference: unit vectors, (tokens, dimensions).
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())


def aggregate(values: Sequence[float], how: Aggregation) -> float:
    """Return the value of the best reference, or the mean over references."""
    return max(values) if how == "max" else fmean(values)
