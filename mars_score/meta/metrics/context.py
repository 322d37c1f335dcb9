"""Metrics that compare a candidate with its context by the preset's models: cosines and perplexities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.scoring.evidence import EMBED, LIKELIHOOD


class ContextCosine(Metric):
    """Cosine of the candidate with the mean of the unit vectors of the context's parts; here the context is one.

    A blank candidate gets 0, as from MARS, and so does one without a context.
    """

    title = "cosine with context (cut)"
    model = "encoder"
    note = "the context is one text, of which the encoder reads the beginning that fits its window"

    def parts(self, context: str) -> Sequence[str]:
        """The texts into which a context is split; none of a blank one."""
        return [context] if context.strip() else []

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        parts = {context: self.parts(context) for _, _, context, *_ in rows}
        candidates = [candidate for candidate, _, context, *_ in rows if parts[context]]
        read = self.models.reader.read(EMBED, [*candidates, *(part for texts in parts.values() for part in texts)])
        scores = []
        for candidate, _, context, *_ in rows:
            mean = (
                np.mean([read[part].vector for part in parts[context]], axis=0) if parts[context] else np.zeros(1)
            )
            length = np.linalg.norm(mean)
            scores.append(float(mean @ read[candidate].vector / length) if length else 0.0)
        return scores


class ContextSentencesCosine(ContextCosine):
    """As :class:`ContextCosine`, with the context's sentences, each of which counts alike."""

    title = "cosine with context (sentences)"
    packages = ("spacy",)  # decides on the sentences
    note = "the whole context is read: the cosine is with the mean of its sentences' unit vectors"

    def parts(self, context: str) -> Sequence[str]:
        """The context's sentences."""
        return sentences(context)


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text: -exp(mean surprisal).

    It is at least minus the size of the vocabulary, the perplexity of a uniform guess.
    """

    title = "-perplexity"
    model = "language_model"
    note = (
        "under the preset's language model after begin-of-text alone, without the context; at least minus the "
        "size of the vocabulary"
    )
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
