"""Metrics that compare a candidate with its context by the preset's models: cosines and perplexities."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.scoring.evidence import EMBED, LIKELIHOOD


class ContextCosine(Metric):
    """Cosine of the candidate with its context; 0 where one of them is blank."""

    title = "cosine with context (cut)"
    model = "encoder"
    note = "the context is one text, of which the encoder reads the beginning that fits its window"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        pairs = [(candidate, context) for candidate, _, context, *_ in rows]
        read = self.models.reader.read(EMBED, [text for pair in pairs if pair[1].strip() for text in pair])
        return [
            float(read[candidate].vector @ read[context].vector) if context.strip() else 0.0
            for candidate, context in pairs
        ]


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text: -exp(mean surprisal).

    It is at least minus the size of the vocabulary, the perplexity of a uniform guess.
    """

    title = "-perplexity"
    model = "language_model"
    note = "under the preset's language model after begin-of-text alone; at least minus the size of the vocabulary"
    with_context: ClassVar[bool] = False

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """A uniform guess."""
        return -float(self.models.language_model().vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        pairs = [(context, candidate) for candidate, _, context, *_ in rows]
        read = self.models.reader.read(LIKELIHOOD, pairs)
        return [
            -math.exp(-(read[pair].given_context if self.with_context else read[pair].alone)) for pair in pairs
        ]


class ContextPerplexity(Perplexity):
    """As :class:`Perplexity`, given the context and a space; the context is cut from its end."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        "what the window leaves; at least minus the size of the vocabulary"
    )
    with_context = True
