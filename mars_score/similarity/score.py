"""From what was read of a row to its score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mars_score.result import AugmentedReference, ReferenceScore, RowScore, Term
from mars_score.settings import SimilaritySettings
from mars_score.similarity.aggregation import combine_augmentations, combine_references
from mars_score.similarity.chunks import copied_share, windows
from mars_score.similarity.features import EMBED, LIKELIHOOD, MATCH, Evidence

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
        evidence: at least what :func:`mars_score.similarity.features.needs` names.
        settings: how it becomes a score.
    """
    if not references:
        return RowScore(0.0, ())
    scores = []
    for reference in references:
        similarities = _similarities(candidate, reference.texts, evidence, settings)
        score = combine_augmentations(similarities, settings.augmentation_aggregation, settings.q)
        scores.append(ReferenceScore(reference, similarities, score))
    value = combine_references([one.score for one in scores], settings.reference_aggregation)
    terms = _terms(value, candidate, [one.reference for one in references], context, evidence, settings)
    return RowScore(sum(term.weight * term.value for term in terms), tuple(scores), terms)


def _terms(
    value: float,
    candidate: str,
    references: Sequence[str],
    context: str,
    evidence: Evidence,
    settings: SimilaritySettings,
) -> tuple[Term, ...]:
    """What the score is the weighted sum of; the references alone where nothing else is asked for or there."""
    parts = windows(context) if settings.context_weight > 0 else []
    words = sum(len(one.split()) for one in references) / len(references)
    weight = settings.context_weight * words / (words + CONTEXT_WORDS) if parts else 0.0
    terms = [Term("references", value, 1.0 - weight)]
    credit = 1.0
    if parts:
        credit = _credit(candidate, references, context, parts, evidence, settings)
        terms.append(Term("context", credit * _nearness(candidate, parts, evidence, settings), weight))
    if settings.likelihood_weight > 0:
        read = evidence[LIKELIHOOD][context, candidate]
        share = words**2 / (words**2 + LIKELIHOOD_WORDS**2)
        terms.append(Term("likelihood", read.alone / 2 + credit * read.lift, settings.likelihood_weight * share))
    return tuple(terms)


def _credit(
    candidate: str,
    references: Sequence[str],
    context: str,
    parts: Sequence[str],
    evidence: Evidence,
    settings: SimilaritySettings,
) -> float:
    """What a candidate that is copied from the context keeps of its share: all where a reference is near it."""
    copied = settings.copy_discount * copied_share(candidate, context) if settings.copy_discount else 0.0
    if not copied:
        return 1.0
    nearest = max(_nearness(reference, parts, evidence, settings) for reference in references)
    return 1.0 - copied * max(0.0, 1.0 - 2.0 * nearest)


def _nearness(text: str, parts: Sequence[str], evidence: Evidence, settings: SimilaritySettings) -> float:
    """The largest cosine with a part of the context."""
    vector = evidence[MATCH if settings.matching == "tokens" else EMBED][text].vector
    return max(float(vector @ evidence[EMBED][part].vector) for part in parts)


def _similarities(
    candidate: str, texts: Sequence[str], evidence: Evidence, settings: SimilaritySettings
) -> tuple[float, ...]:
    """With each of some texts; equal texts are compared once."""
    if settings.matching == "tokens":
        read = evidence[MATCH]
        own = read[candidate].tokens
        found = {  # a text is itself even where the tokenizer leaves no token of it
            text: 1.0 if text == candidate else token_recall(own, read[text].tokens)
            for text in dict.fromkeys(texts)
        }
    else:
        read = evidence[EMBED]
        own = read[candidate].vector
        found = {text: float(own @ read[text].vector) for text in dict.fromkeys(texts)}
    return tuple(found[text] for text in texts)


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
