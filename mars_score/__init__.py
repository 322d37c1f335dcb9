"""MARS: a context-aware metric for generated text (Liu, Wei, Vosoughi, ACL 2021).

``import mars_score`` is light: torch is imported when a scorer first needs a model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mars_score.settings.version import __version__

if TYPE_CHECKING:
    from mars_score.functions import score, score_iter
    from mars_score.scorer import MarsScorer
    from mars_score.scoring.result import MarsResult

__all__ = ["MarsResult", "MarsScorer", "__version__", "score", "score_iter"]

_HOME = {
    "MarsScorer": "mars_score.scorer",
    "MarsResult": "mars_score.scoring.result",
    "score": "mars_score.functions",
    "score_iter": "mars_score.functions",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
