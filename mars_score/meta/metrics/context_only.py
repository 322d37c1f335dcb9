"""Metrics that compare a candidate with its context by the preset's models: cosines and perplexities."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from mars_score.meta.metrics.base import Metric
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Row
from mars_score.text import as_prose


class ContextCosine(Metric):
    """Cosine of the candidate with its context; 0 where one of them is blank."""

    title = "cosine with context (cut)"
    note = "the context is one text; the encoder is given the beginning that fits its window"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the cosines of sentence vectors."""
        pairs = [(candidate, as_prose(context)) for candidate, _, context, *_ in rows]
        encodings = self.models.calls.encode([text for pair in pairs if pair[1].strip() for text in pair])
        return [
            float(encodings[candidate].vector @ encodings[context].vector) if context.strip() else 0.0
            for candidate, context in pairs
        ]


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text: -exp(-mean log probability).

    It is at least minus the size of the vocabulary, the perplexity of a uniform guess.
    """

    title = "-perplexity"
    note = "under the preset's language model after begin-of-text alone; at least minus the size of the vocabulary"
    with_context: ClassVar[bool] = False

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """The perplexity of a uniform guess."""
        return -float(self.models.calls.language_model().vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the perplexities."""
        pairs = [(context, candidate) for candidate, _, context, *_ in rows]
        # What variant "plus" computes is in the cache already.
        log_p = self.models.calls.log_probability(pairs, PlusConfig().max_context_tokens)
        return [
            -math.exp(-(log_p[pair].given_context if self.with_context else log_p[pair].alone)) for pair in pairs
        ]


class ContextPerplexity(Perplexity):
    """As :class:`Perplexity`, given the context and a space; the context is cut from its end."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        f"{PlusConfig().max_context_tokens} tokens, or to what the window leaves; at least minus the size of the "
        "vocabulary"
    )
    with_context = True
