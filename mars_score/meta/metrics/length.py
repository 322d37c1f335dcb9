"""The candidate's length: a metric that agrees with raters no better than this has measured nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from mars_score.data.validation import Row
from mars_score.data.words import split_words
from mars_score.meta.metrics.base import Metric


class Length(Metric):
    """Number of words, as :func:`mars_score.data.words.split_words` gives them."""

    title = "length"
    family = "trivial"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """1 and more."""
        return [float(len(split_words(candidate))) for candidate, _, _ in rows]
