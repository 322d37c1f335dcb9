"""Meta-evaluation: how well metrics of generated text agree with human ratings.

Data flows from ``sets`` through ``metrics`` and ``agreement`` (with attacks) to ``report``, all run by
``evaluation``. ``reference_survey`` describes the references of a data set.

>>> from mars_score.meta import meta_evaluate, read_rated_sets  # doctest: +SKIP
>>> result = meta_evaluate(read_rated_sets(["rated.jsonl"]), ["mars", "bleu1"], preset="mini")  # doctest: +SKIP
>>> result.sets["rated"].pearson("mars")  # doctest: +SKIP

Any object with a ``score`` method is a metric, too: see :class:`mars_score.meta.metrics.OwnMetric`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mars_score.meta.evaluation import meta_evaluate
    from mars_score.meta.sets import read_rated_sets

__all__ = ["meta_evaluate", "read_rated_sets"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "mars_score.meta.sets" if name == "read_rated_sets" else "mars_score.meta.evaluation"
    return getattr(import_module(home), name)
