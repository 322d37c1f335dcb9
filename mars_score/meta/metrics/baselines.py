"""Baselines that use models: cosine with the context, and perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from mars_score.meta.metrics.base import Metric
from mars_score.metrics.plus import PlusConfig
from mars_score.text import as_prose

if TYPE_CHECKING:
    from mars_score.rows import Row


class ContextCosine(Metric):
    """Cosine of the candidate with its context; 0 if the context is blank."""

    title = "cosine with context (cut)"
    note = "the context is one text; the encoder is given the beginning that fits its window"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the cosines of sentence vectors."""
        pairs = [(row.candidate, as_prose(row.prompt)) for row in rows]
        encodings = self.models.calls.encode([text for pair in pairs if pair[1].strip() for text in pair])
        return [
            float(encodings[candidate].vector @ encodings[context].vector) if context.strip() else 0.0
            for candidate, context in pairs
        ]


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text, -exp(-mean log probability)."""

    title = "-perplexity"
    note = "under the preset's language model after begin-of-text alone; at least minus the size of the vocabulary"
    kind: ClassVar[str] = "alone"  # field of the log probability

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """The perplexity of a uniform guess."""
        return -float(self.models.calls.language_model().vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the perplexities."""
        pairs = [(row.prompt, row.candidate) for row in rows]
        # The limit is that of variant "plus", so that its log probabilities come from the cache.
        log_p = self.models.calls.log_probability(pairs, PlusConfig().max_context_tokens)
        return [-math.exp(-getattr(log_p[pair], self.kind)) for pair in pairs]


class ContextPerplexity(Perplexity):
    """Minus the perplexity of a candidate's tokens after the context and a space."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        f"{PlusConfig().max_context_tokens} tokens, or to what the window leaves; at least minus the size of the "
        "vocabulary"
    )
    kind = "given_context"
