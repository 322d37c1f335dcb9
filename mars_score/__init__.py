"""MARS: a context-aware metric for generated text (Liu, Wei, Vosoughi, ACL 2021).

``import mars_score`` is light: torch is imported when a scorer first needs a model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mars_score.version import __version__

if TYPE_CHECKING:
    from mars_score.judging import judge
    from mars_score.results import MarsResult
    from mars_score.scorer import MarsScorer, score, score_iter

__all__ = ["MarsResult", "MarsScorer", "__version__", "judge", "score", "score_iter"]
_HOMES = {"MarsResult": "mars_score.results", "judge": "mars_score.judging"}  # others are in mars_score.scorer


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "mars_score.scorer")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
