"""Cosine of candidate and context by the sentence encoder; that with the reference is MARS with nothing masked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.scoring.evidence import EMBED


class _ContextCosine(Metric):
    """Cosine of the candidate and the mean of the unit vectors of the context's parts, in [-1, 1].

    A blank candidate gets 0, as from MARS, and so does one without a context.
    """

    family = "context"
    model = "encoder"

    @abstractmethod
    def parts(self, context: str) -> Sequence[str]:
        """The texts into which a context is split; none of a blank one."""

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [-1, 1] up to rounding.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded.
        """
        parts = {context: self.parts(context) for _, _, context in rows}
        compared = [candidate for candidate, _, context in rows if parts[context]]
        found = self.models.reader.read(EMBED, [*compared, *(text for texts in parts.values() for text in texts)])
        means = {
            context: np.mean([found[text].vector for text in texts], axis=0)
            for context, texts in parts.items()
            if texts
        }
        return [
            float(means[context] @ found[candidate].vector / (np.linalg.norm(means[context]) or 1.0))
            if context in means
            else 0.0
            for candidate, _, context in rows
        ]


class ContextCosine(_ContextCosine):
    """Cosine with the context as one text."""

    title = "cosine with context (cut)"
    note = "the context is one text, of which the encoder reads the beginning that fits its window"

    def parts(self, context: str) -> Sequence[str]:
        """The context unless it is blank."""
        return [context] if context.strip() else []


class ContextSentencesCosine(_ContextCosine):
    """Cosine with the mean of the vectors of the context's sentences, each of which counts alike."""

    title = "cosine with context (sentences)"
    packages = (("spacy", "spacy"),)  # decides on the sentences
    note = "the whole context is read: the cosine is with the mean of its sentences' unit vectors"

    def parts(self, context: str) -> Sequence[str]:
        """The context's sentences."""
        return sentences(context)
