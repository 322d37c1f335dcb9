"""The settings that scores depend on, resolved from preset, variant and arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from mars_score.language import ENGLISH, check_language
from mars_score.metrics.paper import PaperConfig
from mars_score.metrics.plus import PlusConfig
from mars_score.options import STRICT, Folder, Needs, make_config, option, options_of, unknown_name
from mars_score.presets import DEFAULT_PRESETS, PRESETS, ModelSettings, NumberType

VariantName = Literal["paper", "plus", "fast"]
DEFAULT_VARIANT: VariantName = "plus"
CONFIGS: dict[str, type[PaperConfig | PlusConfig]] = {"paper": PaperConfig, "plus": PlusConfig, "fast": PlusConfig}
# Defaults of a variant that differ from those of the fields.
CHANGES: dict[str, dict[str, object]] = {
    "paper": {},
    "plus": {"dtype": "auto"},
    "fast": {"dtype": "auto", "likelihood_weight": 0.0},
}


@dataclass(frozen=True, config=STRICT)
class Settings:
    """All settings of a scorer. :func:`resolve_settings` makes them."""

    variant: VariantName = option(DEFAULT_VARIANT, "Formula and constants.")
    use_context: bool = option(True, "False: scores ignore the context.")
    task: Literal["text", "summary", "dialogue", "data"] | None = option(
        None,
        "What the contexts are: text; summary (a text from which the candidate has to follow); dialogue (in a "
        "string, each line is a turn); or data (records). None: by type: passages are summary, lists dialogue, "
        "other dicts data, strings text.",
    )
    clean: bool = option(
        False,
        "Remove reasoning such as <think> and special tokens such as <|im_end|> from candidates and samples.",
    )
    language: Annotated[str, AfterValidator(check_language)] = option(
        ENGLISH, "Language of the texts: a code of spaCy such as de, or the name of an installed spaCy pipeline."
    )
    learned: Folder = option(
        None, "Folder of a learned head (mars train), which corrects the scores and brings its own settings."
    )
    models: ModelSettings = ModelSettings()
    config: PlusConfig | PaperConfig = PlusConfig()

    @property
    def used_models(self) -> tuple[str, ...]:
        """Return the settings of the models that scores depend on."""
        used = self.config.used_models
        return tuple(name for name in used if used[name] and getattr(self.models, name) is not None)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all settings as (name, value) pairs."""
        for values in (self, self.models, self.config):
            for field in fields(values):
                if field.name not in ("models", "config"):
                    yield field.name, getattr(values, field.name)


GROUPS: dict[str, Any] = {  # groups of settings on command lines and in documents
    "settings": Settings,
    "models": ModelSettings,
    "plus and fast": PlusConfig,
    "paper": PaperConfig,
}
SETTING_NAMES = tuple(dict.fromkeys(setting.name for group in GROUPS.values() for setting in options_of(group)))
ARGUMENTS = ("preset", "batch_size", "encoder_batch_size", "device", "store", "progress")  # of MarsScorer


def resolve_settings(
    preset: str | None = None,
    variant: str | None = None,
    trained: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Settings:
    """Resolve the settings. Overrides come before those of a learned head, then preset and variant.

    Args:
        preset: the models, by a name of :data:`mars_score.presets.PRESETS`. None: the environment variable
            ``MARS_PRESET``, or :data:`mars_score.presets.DEFAULT_PRESETS`.
        variant: formula and constants: ``"paper"``, ``"plus"`` (None) or ``"fast"``. The environment variable
            ``MARS_DTYPE`` sets the default of ``dtype`` for all three.
        trained: settings that a learned head was trained with.
        overrides: single settings, by names of :data:`SETTING_NAMES`.

    Raises:
        ValueError: an unknown preset or variant, a value out of range, or a setting without effect.
        TypeError: an unknown setting.
    """
    for name in overrides:
        if name not in SETTING_NAMES:
            raise unknown_name("setting", name, [*ARGUMENTS, *SETTING_NAMES])
    trained = trained or {}
    variant = variant if variant is not None else trained.get("variant", DEFAULT_VARIANT)
    if not isinstance(variant, str) or variant not in CONFIGS:
        raise ValueError(f"unknown variant {variant!r}; choose one of {', '.join(CONFIGS)}")
    origin = "" if preset else "MARS_PRESET: "
    preset = preset or os.environ.get("MARS_PRESET") or DEFAULT_PRESETS[variant]
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"{origin}unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    defaults = {
        **dict(Settings(config=CONFIGS[variant]()).items()),
        **PRESETS[preset],
        **CHANGES[variant],
        **trained,
    }
    if dtype := os.environ.get("MARS_DTYPE"):
        if dtype not in get_args(NumberType):
            known = ", ".join(get_args(NumberType))
            raise ValueError(f"MARS_DTYPE: unknown number type {dtype!r}; choose one of {known}")
        defaults["dtype"] = dtype
    values = {**defaults, **overrides, "variant": variant}
    config = make_config(CONFIGS[variant], values)
    models = make_config(ModelSettings, values)
    settings = make_config(Settings, {**values, "models": models, "config": config})
    _refuse_without_effect(settings, {name: defaults.get(name) for name in overrides})
    if models.entailment_model is None and isinstance(config, PlusConfig):
        settings = replace(settings, config=replace(config, support_weight=0.0, contradiction_penalty=0.0))
    return settings


def _refuse_without_effect(settings: Settings, defaults: Mapping[str, object]) -> None:
    """Raise ValueError for a setting that belongs to another variant, or that others leave without effect.

    Args:
        settings: all settings.
        defaults: default values of the settings to check.
    """
    values = dict(settings.items())
    groups = (settings, settings.models, settings.config)
    needs = {setting.name: setting.needs for group in groups for setting in options_of(type(group))}
    for name, default in defaults.items():
        if name not in values:
            able = " or ".join(
                repr(variant)
                for variant, config in CONFIGS.items()
                if name in {field.name for field in fields(config)}
            )
            raise ValueError(
                f"{name} has no effect with variant {settings.variant!r}; it belongs to variant {able}"
            )
        is_off = name.endswith(("_weight", "_penalty")) and values[name] == 0
        if values[name] == default or is_off:
            continue
        if causes := _causes_of_no_effect(name, values, needs):
            others = " and ".join(f"{other}={values[other]!r}" for other in causes)
            raise ValueError(
                f"{name}={values[name]!r:.60} has no effect with {others}; change {' or '.join(causes)}, or leave "
                f"{name} out"
            )


def _causes_of_no_effect(name: str, values: Mapping[str, object], needs: Mapping[str, Needs]) -> list[str]:
    """Return the settings whose values leave a setting without effect, if any."""
    for group in needs[name]:
        causes = [
            [other] if values[other] in (0, None, "none") else _causes_of_no_effect(other, values, needs)
            for other in group
        ]
        if all(causes):
            return list(dict.fromkeys(setting for cause in causes for setting in cause))
    return []
