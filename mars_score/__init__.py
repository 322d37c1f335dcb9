"""MARS: a context-aware metric for generated text (Liu, Wei, Vosoughi, ACL 2021).

``import mars_score`` does not import torch. A scorer imports it when it first needs a model.
"""

from typing import Any

from mars_score.judging import judge
from mars_score.results import MarsResult
from mars_score.scorer import MarsScorer, score, score_iter, score_table
from mars_score.version import __version__

__all__ = ["MarsResult", "MarsScorer", "__version__", "judge", "load", "score", "score_iter", "score_table"]


def load(variant: str | None = None, **settings: Any) -> Any:
    """Return the metric of Hugging Face evaluate, as ``evaluate.load("mars", variant)`` does in a checkout.

    ``evaluate.load`` finds a metric only in the working folder, by the path of its script, or on the Hub.

    Args:
        variant: ``"paper"`` (default), ``"plus"`` or ``"fast"``.
        settings: arguments of ``evaluate.Metric``, and settings and arguments of :class:`MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown variant or setting, or a value out of range.
    """
    from mars_metric import Mars

    return Mars(variant, **settings)
