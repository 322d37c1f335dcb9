"""Meta-evaluation: how well metrics of generated text agree with human ratings.

In the order that data flows: rated candidates and attacks (``mars_score.data``) -> ``metrics`` ->
``scoring`` -> ``agreement`` (by ``mars_score.stats``) -> ``evaluation`` (all of it) -> ``report``.
``references`` looks at the references of a data set.

>>> from mars_score.meta import meta_evaluate, read_rated_sets  # doctest: +SKIP
>>> found = meta_evaluate(read_rated_sets(["rated.jsonl"]), ["mars", "bleu1"], preset="mini")  # doctest: +SKIP
>>> found.sets["rated"].pearson("mars")  # doctest: +SKIP

Any object with a ``score`` method is a metric (:class:`Scoring`). It gets rows of candidate, references and
context (no candidate is blank) and all references of the set; it returns one number per row, larger is better:

>>> class Overlap:
...     def score(self, rows, corpus):
...         return [len(set(candidate.split()) & set(references[0].split())) for candidate, references, _ in rows]
>>> found = meta_evaluate(read_rated_sets(["rated.jsonl"]), ["mars", Overlap()])  # doctest: +SKIP
>>> found.sets["rated"].pearson("Overlap")  # doctest: +SKIP

It may also have a ``title``, ``note``, ``minimum`` (the score of a blank candidate), ``uses_corpus``
and ``key``: see :class:`Metric`. With a ``key`` scores are kept in the store.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mars_score.data.rated import read_rated_sets
    from mars_score.meta.evaluation import MetaEvaluation, MetaOptions, meta_evaluate
    from mars_score.meta.metrics.base import Metric, Models, Scoring

__all__ = ["MetaEvaluation", "MetaOptions", "Metric", "Models", "Scoring", "meta_evaluate", "read_rated_sets"]

_HOME = {
    "MetaEvaluation": "mars_score.meta.evaluation",
    "MetaOptions": "mars_score.meta.evaluation",
    "meta_evaluate": "mars_score.meta.evaluation",
    "read_rated_sets": "mars_score.data.rated",
    "Metric": "mars_score.meta.metrics.base",
    "Models": "mars_score.meta.metrics.base",
    "Scoring": "mars_score.meta.metrics.base",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
