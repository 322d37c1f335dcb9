"""Everything that a score depends on besides the texts, and how it follows from preset, variant and arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from dataclasses import fields as fields_of
from typing import Any

from mars_score.settings import stages
from mars_score.settings.language import ENGLISH, check_language
from mars_score.settings.options import NAMED, POSITIVE, Checked, learned_head, setting, settings_of, unknown
from mars_score.settings.presets import DEFAULT_PRESET, DEFAULT_VARIANT, PRESETS, REFERENCE_FREE, VARIANTS, Variant


@dataclass(frozen=True)
class Settings(Checked):
    """All settings of a scorer; make one with :func:`resolve_settings`."""

    variant: Variant = setting(MISSING, "Form of the score with all its constants.")
    use_context: bool = setting(True, "False: no context anywhere.")
    language: str = setting(
        ENGLISH,
        "Language of the texts: a code of spaCy such as de, or the name of an installed spaCy pipeline. Words are "
        "masked by it, and a chat model is told to write in it.",
        convert=check_language,
    )
    learned: str | None = setting(
        None,
        "A learned head, which computes the scores: a folder that `mars train` wrote; settings that it was "
        "trained with follow from it.",
        convert=learned_head,
    )
    masking: stages.MaskingSettings = field(default_factory=stages.MaskingSettings)
    planning: stages.PlanningSettings = field(default_factory=stages.PlanningSettings)
    infilling: stages.InfillingSettings = field(default_factory=stages.InfillingSettings)
    sampling: stages.SamplingSettings = field(default_factory=stages.SamplingSettings)
    similarity: stages.SimilaritySettings = field(default_factory=stages.SimilaritySettings)
    models: stages.ModelSettings = field(default_factory=stages.ModelSettings)

    def given(self, references: Any, samples: Any = None) -> Settings:
        """The settings that count with these references; None: candidates are scored by their contexts alone.

        Raises:
            ValueError: there are no references, and the variant or a setting needs them; there are samples (not
                None), which have no weight.
        """
        if samples is not None and not self.similarity.sample_weight:
            raise ValueError(
                f"samples do not count with variant {self.variant!r} and sample_weight=0; leave them out, or "
                'choose variant="plus" or "fast"'
            )
        if references is not None:
            return self
        if self.variant not in REFERENCE_FREE:
            able = " or ".join(f"variant={name!r}" for name in REFERENCE_FREE)
            raise ValueError(
                f"variant {self.variant!r} needs references; give them, or score by the contexts alone with {able}"
            )
        if not self.use_context:
            raise ValueError(
                "without references a candidate is scored by its context: leave out use_context=False"
            )
        return replace(self, masking=replace(self.masking, max_mask_ratio=0.0))

    def items(self) -> Iterator[tuple[str, Any]]:
        """All settings as flat (name, value) pairs, in pipeline order."""
        for values in (self, *(getattr(self, stage) for stage in STAGES)):
            yield from ((setting.name, getattr(values, setting.name)) for setting in settings_of(type(values)))


STAGES: dict[str, Any] = {  # their dataclasses, in pipeline order
    stage.name: stage.default_factory for stage in fields_of(Settings) if stage.default_factory is not MISSING
}
SETTINGS = {setting.name: setting for cls in (Settings, *STAGES.values()) for setting in settings_of(cls)}
SETTING_NAMES = tuple(SETTINGS)
ARGUMENTS = ("preset", "batch_size", "encoder_batch_size", "device", "store", "progress")  # others of MarsScorer


def resolve_settings(
    preset: str | None = None,
    variant: str | None = None,
    trained: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Settings:
    """Settings from a preset (models), a variant (form and constants) and single settings, in that order.

    Args:
        preset: a name of :data:`mars_score.settings.presets.PRESETS`; None: the environment's ``MARS_PRESET``,
            else ``"base"``.
        variant: a name of :data:`mars_score.settings.presets.VARIANTS`; None: ``"paper"``.
        trained: settings that a learned head was trained with, which come before the variant's.
        overrides: any names of :data:`SETTING_NAMES`.

    Raises:
        ValueError: an unknown preset or variant, a value out of range, or a changed setting that has no effect.
        TypeError: an unknown setting.
    """
    origin = "" if preset else "MARS_PRESET: "
    preset = preset or os.environ.get("MARS_PRESET") or DEFAULT_PRESET
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"{origin}unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    for name in overrides:
        if name not in SETTINGS:
            raise unknown("setting", name, [*ARGUMENTS, *SETTINGS])
    trained = trained or {}
    if variant is None:
        variant = trained.get("variant", DEFAULT_VARIANT)
    if not isinstance(variant, str) or variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}; choose one of {', '.join(VARIANTS)}")
    usual = {**PRESETS[preset], **VARIANTS[variant], **trained}
    values = {**usual, **overrides, "variant": variant}
    parts = {stage: cls(**_of(cls, values)) for stage, cls in STAGES.items()}
    settings = Settings(**_of(Settings, values), **parts)
    _refuse_without_effect(settings, {name: usual.get(name, SETTINGS[name].default) for name in overrides})
    return settings


def _of(cls: type[Checked], values: Mapping[str, Any]) -> dict[str, Any]:
    return {setting.name: values[setting.name] for setting in settings_of(cls) if setting.name in values}


def _refuse_without_effect(settings: Settings, usual: Mapping[str, Any]) -> None:
    """Raise ValueError where a setting differs from its usual value but others leave it without effect."""
    values = dict(settings.items())
    for name, before in usual.items():
        if values[name] != before and (unmet := _unmet_need(name, values)):
            other, remedy = unmet
            effect = f"{name}={values[name]!r:.60} has no effect with {other}={values[other]!r}"
            raise ValueError(f"{effect}; set {other}{remedy} or leave {name} out")


def _unmet_need(name: str, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """The setting that leaves another without effect, and what it must be; None: the other has an effect."""
    if (needs := SETTINGS[name].needs) is None:
        return None
    other, wanted = needs
    if wanted in (POSITIVE, NAMED):
        met, remedy = bool(values[other]), f" {wanted}"
    else:
        met, remedy = values[other] == wanted, f"={wanted!r}"
    return _unmet_need(other, values) if met else (other, remedy)
