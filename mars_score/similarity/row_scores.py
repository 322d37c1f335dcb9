"""From what was read of a row to its score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mars_score.result import AugmentedReference, ReferenceScore, RowScore, Term
from mars_score.settings import SimilaritySettings
from mars_score.similarity.aggregation import combine_augmentations, combine_references
from mars_score.similarity.evidence import EMBED, LIKELIHOOD, MATCH, Evidence
from mars_score.similarity.windows import windows

# Words of a reference at which the context, and the likelihood, have half of their weights: what a short answer
# must say its reference tells, and a likelihood is a mean over words. Chosen on development sets
# (docs/beyond-the-paper.md).
CONTEXT_WORDS = 3
LIKELIHOOD_WORDS = 20


def score_row(
    candidate: str,
    references: Sequence[AugmentedReference],
    context: str,
    evidence: Evidence,
    settings: SimilaritySettings,
) -> RowScore:
    """The score of a candidate; 0.0 without references (a blank candidate).

    Args:
        candidate: without outer whitespace.
        references: of its row, augmented.
        context: of its row.
        evidence: at least what :func:`mars_score.similarity.evidence.needs` names.
        settings: how it becomes a score.
    """
    if not references:
        return RowScore(0.0, ())
    scores = []
    for reference in references:
        similarities = tuple(_similarity(candidate, text, evidence, settings) for text in reference.texts)
        score = combine_augmentations(similarities, settings.augmentation_aggregation, settings.q)
        scores.append(ReferenceScore(reference, similarities, score))
    value = combine_references([one.score for one in scores], settings.reference_aggregation)
    words = sum(len(one.reference.split()) for one in references) / len(references)
    terms = _terms(value, candidate, context, words, evidence, settings)
    return RowScore(sum(term.weight * term.value for term in terms), tuple(scores), terms)


def _terms(
    references: float, candidate: str, context: str, words: float, evidence: Evidence, settings: SimilaritySettings
) -> tuple[Term, ...]:
    """What the score is the weighted sum of; the references alone where nothing else is asked for or there."""
    parts = windows(context) if settings.context_weight > 0 else []
    weight = settings.context_weight * words / (words + CONTEXT_WORDS) if parts else 0.0
    terms = [Term("references", references, 1.0 - weight)]
    if parts:
        of_candidate = evidence[MATCH if settings.matching == "tokens" else EMBED][candidate].vector
        nearest = max(float(of_candidate @ evidence[EMBED][part].vector) for part in parts)
        terms.append(Term("context", nearest, weight))
    if settings.likelihood_weight > 0:
        read = evidence[LIKELIHOOD][context, candidate]
        share = words**2 / (words**2 + LIKELIHOOD_WORDS**2)
        terms.append(Term("likelihood", (read.given_context + read.lift) / 2, settings.likelihood_weight * share))
    return tuple(terms)


def _similarity(candidate: str, text: str, evidence: Evidence, settings: SimilaritySettings) -> float:
    if settings.matching == "tokens":
        if candidate == text:  # even where the tokenizer leaves no token of them
            return 1.0
        return token_recall(evidence[MATCH][candidate].tokens, evidence[MATCH][text].tokens)
    return float(evidence[EMBED][candidate].vector @ evidence[EMBED][text].vector)


def token_recall(candidate: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """The mean over the reference's tokens of their largest cosine with a token of the candidate.

    The recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr); 0 where one of them
    has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions).
        reference: unit vectors, (tokens, dimensions).
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())
