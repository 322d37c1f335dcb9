"""Scorers that are shared within a process, so that equal settings load their models once."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from mars_score.fields import unknown
from mars_score.models import loading as models
from mars_score.settings import SETTING_NAMES, resolve_settings

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

_scorers: dict[tuple[Any, ...], MarsScorer] = {}
_lock = threading.Lock()


def check_options(options: Mapping[str, Any]) -> None:
    """Raise unless ``options`` are arguments of MarsScorer with settings in their ranges; loads nothing.

    Raises:
        TypeError: an unknown name.
        ValueError: an unknown preset or variant, or a value out of range.
    """
    known = dict.fromkeys((*_scorer_defaults(), *SETTING_NAMES))
    for name in options:
        if name not in known:
            raise unknown("setting", name, list(known))
    resolve_settings(**_settings_of(options))


def shared_scorer(**options: Any) -> MarsScorer:
    """The process's one scorer for these arguments of MarsScorer, made when it is first asked for.

    Arguments are compared after presets and defaults are filled in; ready-made models by identity. ``progress``
    is not compared: the scorer reports to whoever asked for it last.

    Raises:
        TypeError: an unknown setting.
        ValueError: an unknown preset or variant, or a value out of range.
    """
    from mars_score.scorer import MarsScorer

    check_options(options)
    key = _key(options)
    with _lock:
        if key not in _scorers:
            _scorers[key] = MarsScorer(**options)
        scorer = _scorers[key]
    scorer.progress = options.get("progress")
    return scorer


def free_models() -> None:
    """Release all shared scorers and their models; they are made and loaded again when needed."""
    with _lock:
        scorers = list(_scorers.values())
        _scorers.clear()
    for scorer in scorers:
        scorer.free()
    models.free_models()


def _scorer_defaults() -> dict[str, Any]:
    """The arguments of MarsScorer that are not settings, with their defaults."""
    from mars_score.scorer import MarsScorer

    parameters = inspect.signature(MarsScorer).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is not one.VAR_KEYWORD}


def _settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name == "preset" or name in SETTING_NAMES}


def _key(options: Mapping[str, Any]) -> tuple[Any, ...]:
    how = {name: options.get(name, default) for name, default in _scorer_defaults().items()}
    del how["preset"], how["progress"]  # what a preset stands for is among the settings
    if how["store"] is None:
        how["store"] = os.environ.get("MARS_STORE")
    settings = resolve_settings(**_settings_of(options))
    return tuple((name, _hashable(value)) for name, value in (*settings.items(), *how.items()))


def _hashable(value: Any) -> Any:
    """Something hashable that is equal for equal plain values, and for objects only when they are the same.

    The scorer that is kept under a key holds the objects, so no other object can take their ids meanwhile.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, (str, bool)):
        return type(value).__name__, value
    if isinstance(value, Real):
        return "number", value
    if isinstance(value, Mapping):
        return tuple(sorted((name, _hashable(one)) for name, one in value.items()))
    if isinstance(value, tuple):
        return tuple(_hashable(one) for one in value)
    return "object", id(value)
