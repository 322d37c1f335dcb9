"""The types of the settings, for editors and type checkers; made by ``python -m docs.settings``."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from mars_score.cache import Store
from mars_score.progress import Progress


class SettingsDict(TypedDict, total=False):
    """The settings, by name."""

    variant: Literal["paper", "plus", "fast"]
    use_context: bool
    task: Literal["text", "summary", "dialogue", "data"] | None
    clean: bool
    language: str
    learned: str | os.PathLike[str] | None
    language_model: Any
    encoder: Any
    entailment_model: Any
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"]
    context_weight: float
    sample_weight: float
    likelihood_weight: float
    repetition_penalty: float
    support_weight: float
    contradiction_penalty: float
    context_words: float
    likelihood_words: float
    close_context: float
    max_pmi: float
    log_p_weight: float
    window_words: int
    word_letters: int
    repetition_words: int
    copied_words: int
    premise_words: int
    max_sentences: int
    max_context_tokens: int | None
    reference_aggregation: Literal["max", "mean"]
    max_mask_ratio: float
    mask_ratio_step: float
    pos_weights: Mapping[str, float]
    idf_corpus: str | os.PathLike[str] | Iterable[str] | None
    lower_words: bool
    strip_urls_hashtags: bool
    sigma: int
    planner: Literal["none", "self"]
    plan_step: float
    plan_iterations: int
    plan_temperature: float
    plan_norm_exponent: float
    plan_fusion: float
    q: float


class ScorerDict(SettingsDict, total=False):
    """The settings and the other arguments of :class:`mars_score.MarsScorer`, by name."""

    preset: str | None
    batch_size: int | None
    encoder_batch_size: int | None
    device: str | None
    store: Store
    progress: Progress | bool | None
