"""Meta-evaluation: how well metrics of generated text agree with human ratings.

In the order that data flows: ``items`` (rated candidates), ``attacks`` -> ``metrics`` (one file each),
``scoring`` (kept row by row) -> ``statistics``, ``resampling``, ``williams`` -> ``agreement``, ``sweeps`` ->
``evaluation`` (all of it) -> ``report``, ``plain`` (for people, for programs).

>>> from mars_score.meta import meta_evaluate, read_rated_sets  # doctest: +SKIP
>>> found = meta_evaluate(read_rated_sets(["rated.jsonl"]), ["mars", "bleu1"], preset="mini")  # doctest: +SKIP
>>> found.sets["rated"].pearson("mars")  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mars_score.meta.evaluation import MetaEvaluation, meta_evaluate
    from mars_score.meta.items import read_rated_sets
    from mars_score.meta.metrics.base import Metric, Models

__all__ = ["MetaEvaluation", "Metric", "Models", "meta_evaluate", "read_rated_sets"]

_HOME = {
    "MetaEvaluation": "mars_score.meta.evaluation",
    "meta_evaluate": "mars_score.meta.evaluation",
    "read_rated_sets": "mars_score.meta.items",
    "Metric": "mars_score.meta.metrics.base",
    "Models": "mars_score.meta.metrics.base",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
