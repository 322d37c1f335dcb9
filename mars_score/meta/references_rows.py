"""The references of one row in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import copied_share, windows
from mars_score.data.words import plain_words, split_words

Vectors = Mapping[str, NDArray[np.float64]]  # text -> unit sentence vector
NAN = math.nan


@dataclass(frozen=True)
class ReferenceRow:
    """A row's references; what is undefined is NaN.

    Attributes:
        row: counted from 0.
        references: as given.
        words: mean number of words.
        copied: mean share of words in runs of five or more that the context has, too.
        closeness: mean cosine with the nearest part of the context.
        lexical: diversity of words, in [0, 1]: one minus the mean share of words that two references have in
            common (Jaccard's index).
        embedding: diversity in embedding: one minus the mean cosine of two references.
        agreement: the smallest cosine of two references.
        duplicates: pairs of references, by number, whose cosine is at least ``DUPLICATE``.
        openness: one minus the mean cosine of two samples: how much else could be said.
        nearest: mean over references of the largest cosine with a sample.
        stranger: references, by number, whose log probability given the context is below that of every sample.
        samples: drawn given the context, the farthest from all references first.
    """

    row: int
    references: tuple[str, ...]
    words: float
    copied: float
    closeness: float
    lexical: float
    embedding: float
    agreement: float
    duplicates: tuple[tuple[int, int], ...]
    openness: float
    nearest: float
    stranger: tuple[int, ...]
    samples: tuple[str, ...]

    @property
    def need(self) -> float:
        """How much one more reference would help: openness by number of references; 0 where it is not known."""
        return 0.0 if math.isnan(self.openness) else self.openness / len(self.references)


DUPLICATE = 0.95


def reference_row(
    row: int,
    references: Sequence[str],
    context: str,
    samples: Sequence[str],
    vectors: Vectors,
    likelihoods: Mapping[str, float] | None = None,
) -> ReferenceRow:
    """The numbers of a row.

    Args:
        row: counted from 0.
        references: at least one.
        context: blank for none.
        samples: drawn given the context.
        vectors: of references, samples and the parts of the context.
        likelihoods: mean log probability of each reference and sample given the context, in nats; None: not known.
    """
    parts = windows(context)
    pairs = list(combinations(range(len(references)), 2))
    cosines = {pair: _cosine(*(vectors[references[one]] for one in pair)) for pair in pairs}
    of_samples = [_cosine(vectors[one], vectors[other]) for one, other in combinations(samples, 2)]
    nearest = {one: [_cosine(vectors[one], vectors[text]) for text in references] for one in samples}
    stranger: tuple[int, ...] = ()
    if likelihoods and samples:
        least = min(likelihoods[one] for one in samples)
        stranger = tuple(number for number, text in enumerate(references) if likelihoods[text] < least)
    return ReferenceRow(
        row,
        tuple(references),
        words=_mean([float(len(split_words(text))) for text in references]),
        copied=_mean([copied_share(text, context) for text in references]) if context else NAN,
        closeness=_mean([max(_cosine(vectors[text], vectors[part]) for part in parts) for text in references])
        if parts
        else NAN,
        lexical=1 - _mean([_shared(references[one], references[other]) for one, other in pairs]),
        embedding=1 - _mean(list(cosines.values())),
        agreement=min(cosines.values(), default=NAN),
        duplicates=tuple(pair for pair in pairs if cosines[pair] >= DUPLICATE),
        openness=1 - _mean(of_samples),
        nearest=_mean([max(of_reference) for of_reference in zip(*nearest.values(), strict=True)]),
        stranger=stranger,
        samples=tuple(sorted(samples, key=lambda one: max(nearest[one]))),
    )


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other)


def _shared(one: str, other: str) -> float:
    """Jaccard's index of two texts' words."""
    first, second = (set(plain_words(text)) for text in (one, other))
    return len(first & second) / len(first | second) if first | second else 1.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else NAN
