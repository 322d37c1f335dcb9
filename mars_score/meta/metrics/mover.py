"""MoverScore (Zhao et al. 2019), unigrams, as in the original's ``moverscore_v2.py``."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Family, Metric
from mars_score.meta.metrics.extras import need
from mars_score.meta.metrics.tokens import TokenEncoder, Tokens, parts, texts_of

_STEPS = 10_000_000  # of the solver, at most; some texts of 500 tokens take more than its own limit
_SAME = 1e-12  # squared distances below this share of the squared lengths are rounding errors of float32


@dataclass(frozen=True)
class Bag:
    """Weighted points.

    Attributes:
        weights: positive, (points,); they sum to 1.
        vectors: (points, dimensions).
    """

    weights: NDArray[np.float64]
    vectors: NDArray[np.float64]

    @classmethod
    def of(cls, weights: NDArray[np.float64], vectors: NDArray[Any]) -> Bag:
        """Without points of weight 0; at least one must weigh more."""
        used = weights > 0
        return cls(weights[used] / weights.sum(), vectors[used].astype(np.float64))


def movers_distance(a: Bag, b: Bag) -> float:
    """The earth mover's distance of two bags over Euclidean distances."""
    squares = (a.vectors**2).sum(1)[:, None] + (b.vectors**2).sum(1)
    apart = squares - 2 * a.vectors @ b.vectors.T
    apart[apart < _SAME * squares] = 0.0
    solve = need("ot").emd2
    return float(solve(a.weights, b.weights, np.sqrt(apart), numItermax=_STEPS, check_marginals=False))


def document_frequencies(documents: Sequence[Sequence[int]]) -> Callable[[int], float]:
    """The original's IDF of a token: log((N + 1) / (df + 1)), df of N documents holding it."""
    counts = Counter(token for document in documents for token in set(document))
    return lambda token: math.log((len(documents) + 1) / (counts[token] + 1))


class MoverScore(Metric):
    """1 - the earth mover's distance of two texts' tokens.

    A text is the bag of its tokens' unit vectors, weighted by IDF; of the pieces of a word only the first
    counts, and punctuation not at all. The original's special tokens weigh 0, since each document has them.
    Unit vectors are at most 2 apart: scores are in [-1, 1].
    """

    title = "MoverScore"
    family: Family = "reference"
    note = (
        "unigrams on the preset's encoder, last layer (as moverscore_v2; the paper pools the last five); IDF of "
        "the data set's references for candidates too (the original: of the candidates, so that other rows would "
        "count); stop words count, as by the original's default; best over the references"
    )
    minimum = -1.0
    uses_corpus = True
    packages = (("ot", "POT"),)
    model = "encoder"

    @cached_property
    def tokens(self) -> TokenEncoder:
        """Reads texts."""
        return TokenEncoder(self.models.encoder(), self.models.runtime.encoder_batch_size)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        idf = document_frequencies(self.tokens.ids(corpus))
        scores = [self.minimum] * len(rows)
        for part in parts(rows):
            read = self.tokens.encode(texts_of(rows, part))
            bags = {text: _bag(tokens, idf) for text, tokens in read.items() if tokens.ids}
            for index in part:
                candidate, references, _ = rows[index]
                pairs = [(bags[candidate], bags[one]) for one in references if candidate in bags and one in bags]
                scores[index] = max((1 - movers_distance(*pair) for pair in pairs), default=self.minimum)
        return scores


def _bag(tokens: Tokens, idf: Callable[[int], float]) -> Bag:
    """A text with nothing but punctuation or tokens that all documents have weighs those equally."""
    counted = [
        begins and word not in string.punctuation for begins, word in zip(tokens.begins, tokens.words, strict=True)
    ]
    kept = np.array(counted, dtype=np.float64)
    rare = kept * [idf(token) for token in tokens.ids]
    weights = next(one for one in (rare, kept, np.ones(len(kept))) if one.any())
    lengths = np.linalg.norm(tokens.vectors.astype(np.float64), axis=1, keepdims=True)
    return Bag.of(weights, tokens.vectors / np.where(lengths > 0, lengths, 1.0))
