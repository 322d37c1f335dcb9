"""MARS: a context-aware metric for generated text (Liu, Wei, Vosoughi, ACL 2021).

``import mars_score`` is light: torch is imported when a scorer first needs a model.
"""

from mars_score.judging import judge
from mars_score.results import MarsResult
from mars_score.scorer import MarsScorer, score, score_iter
from mars_score.version import __version__

__all__ = ["MarsResult", "MarsScorer", "__version__", "judge", "score", "score_iter"]
