"""From vectors to the score of a row (section 2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from mars_score.result import AugmentedReference, ReferenceScore, RowScore
from mars_score.settings import SimilaritySettings
from mars_score.similarity.aggregation import combine_augmentations, combine_references


def score_row(
    candidate: str,
    references: Sequence[AugmentedReference],
    vectors: Mapping[str, NDArray[Any]],
    settings: SimilaritySettings,
) -> RowScore:
    """The score of a candidate; 0.0 without references (a blank candidate).

    Args:
        candidate: without outer whitespace.
        references: of its row, augmented.
        vectors: of the candidate and of all texts of its references: (dimensions,), of length 1.
        settings: how similarities become a score.
    """
    scores = []
    for reference in references:
        similarities = tuple(float(vectors[candidate] @ vectors[text]) for text in reference.texts)
        score = combine_augmentations(similarities, settings.augmentation_aggregation, settings.q)
        scores.append(ReferenceScore(reference, similarities, score))
    if not scores:
        return RowScore(0.0, ())
    return RowScore(
        combine_references([one.score for one in scores], settings.reference_aggregation), tuple(scores)
    )
