"""Perplexity of candidates under the preset's language model, without and with the context before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Family, Metric
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.surprisal import mean_surprisals


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text: -exp(mean surprisal).

    It is at least minus the size of the vocabulary, the perplexity of a uniform guess.
    """

    title = "-perplexity"
    family: Family = "likelihood"
    model = "language_model"
    note = (
        "under the preset's language model after begin-of-text alone, without the context; at least minus the "
        "size of the vocabulary"
    )
    with_context: ClassVar[bool] = False

    @cached_property
    def _model(self) -> CausalLanguageModel:
        return self.models.language_model()

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """A uniform guess."""
        return -float(self._model.vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        pairs = [(context if self.with_context else "", candidate) for candidate, _, context in rows]
        means = mean_surprisals(self._model, pairs, self.models.runtime.batch_size)
        most = math.log(self._model.vocabulary)
        return [self.minimum if mean >= most else -math.exp(mean) for mean in means]


class ContextPerplexity(Perplexity):
    """As :class:`Perplexity`, given the context and a space; the context is cut from its end."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        "what the window leaves; at least minus the size of the vocabulary"
    )
    with_context: ClassVar[bool] = True
