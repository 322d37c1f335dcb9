"""From what was read of a row to its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import RUN_WORDS, copied_share, windows
from mars_score.data.repetition import repetition
from mars_score.data.words import plain_words, split_words
from mars_score.scoring.aggregation import combine_augmentations, combine_references
from mars_score.scoring.evidence import (
    EMBED,
    LIKELIHOOD,
    MATCH,
    Evidence,
    ScorableRow,
    uses_context,
    uses_likelihood,
)
from mars_score.scoring.result import ReferenceScore, RowScore, SampleScore, Term, weighted_sum
from mars_score.settings import SimilaritySettings

# Chosen on development sets (docs/beyond-the-paper.md).
# Words of a reference at which the context and the samples, and the likelihood, have half of their largest
# weights: a short reference is a fact that has to be met, and a likelihood is a mean over words.
CONTEXT_WORDS = 3
LIKELIHOOD_WORDS = 20
# How far the similarity with the references rises to that with the best sample, and how much of its largest weight
# the mean cosine with the samples has. In a dialogue so many replies fit that what all samples have in common says
# more, and that a single one is less of a reference.
BEST_SAMPLE, BEST_SAMPLE_IN_DIALOGUE = 1.0, 0.5
MEAN_OF_SAMPLES, MEAN_OF_SAMPLES_IN_DIALOGUE = 0.5, 1.0
# Weight of the cosine with the reference where the context is data: what to say is given, the words are free.
SENTENCES_OF_DATA = 0.5
# Nats that the context may add to a likelihood: more is had by copying from it, and is no merit.
LIFT_LIMIT = 2.5
# Mean cosine of the references with the context from which context and samples lose weight, and at which they have
# none: there, the references say the same as the context, and similarity with it does not tell candidates apart.
CLOSE, SAME = 0.7, 0.95


@dataclass(frozen=True)
class Background:
    """What the weights of a row depend on: all of it but the candidate.

    Attributes:
        words: mean number of words of the references.
        references: their number.
        closeness: cosine of each reference with the part of the context that it is closest to; empty without one.
    """

    words: float
    references: int
    closeness: tuple[float, ...]

    @property
    def length_share(self) -> float:
        """Rises with the length of the references, in [0, 1)."""
        return self.words / (self.words + CONTEXT_WORDS)

    @property
    def openness(self) -> float:
        """1 where the references say something else than the context, 0 where they say the same."""
        if not self.closeness:
            return 1.0
        mean = sum(self.closeness) / len(self.closeness)
        return min(1.0, max(0.0, (SAME - mean) / (SAME - CLOSE)))


def background(row: ScorableRow, evidence: Evidence, settings: SimilaritySettings) -> Background:
    """The background of a row, which is the same for all candidates of its context and references.

    Args:
        row: with at least one reference.
        evidence: at least what :func:`mars_score.scoring.evidence.needs` names.
        settings: how it becomes a score.
    """
    references = [one.reference for one in row.references]
    parts = windows(row.context) if uses_context(row, settings) else []
    return Background(
        words=sum(len(split_words(one)) for one in references) / len(references),
        references=len(references),
        closeness=tuple(nearness(one, parts, evidence, settings) for one in references) if parts else (),
    )


def score_row(
    row: ScorableRow, evidence: Evidence, settings: SimilaritySettings, of_row: Background | None = None
) -> RowScore:
    """The score of a candidate; 0.0 without references (a blank candidate).

    Args:
        row: the candidate and what it is compared with.
        evidence: at least what :func:`mars_score.scoring.evidence.needs` names.
        settings: how it becomes a score.
        of_row: its background; None: computed here.
    """
    if not row.references:
        return RowScore(0.0, ())
    scores = []
    for reference in row.references:
        found = similarities(row.candidate, reference.texts, evidence, settings)
        score = combine_augmentations(found, settings.augmentation_aggregation, settings.q)
        scores.append(ReferenceScore(reference, found, score))
    value = combine_references([one.score for one in scores], settings.reference_aggregation)
    of_row = of_row or background(row, evidence, settings)
    of_samples = similarities(row.candidate, row.samples, evidence, settings)
    samples = tuple(map(SampleScore, row.samples, of_samples))
    terms = _terms(value, row, samples, of_row, evidence, settings)
    return RowScore(weighted_sum(terms), tuple(scores), terms, samples)


def _terms(
    value: float,
    row: ScorableRow,
    samples: Sequence[SampleScore],
    of_row: Background,
    evidence: Evidence,
    settings: SimilaritySettings,
) -> tuple[Term, ...]:
    """The terms whose weighted sum is the score; the references alone where there is nothing else."""
    share = of_row.length_share * of_row.openness
    parts = windows(row.context) if of_row.closeness else []
    weight = settings.context_weight * share if parts else 0.0
    terms = []
    if row.context and row.task == "data" and settings.context_weight > 0:
        weight = SENTENCES_OF_DATA
        cosines = [cosine(row.candidate, one.reference, evidence, settings) for one in row.references]
        terms.append(Term("sentences", max(cosines), weight))
    if parts:
        terms.append(Term("context", nearness(row.candidate, parts, evidence, settings), weight))
    if samples:
        share /= of_row.references
        dialogue = row.task == "dialogue"
        of_best = BEST_SAMPLE_IN_DIALOGUE if dialogue else BEST_SAMPLE
        of_mean = MEAN_OF_SAMPLES_IN_DIALOGUE if dialogue else MEAN_OF_SAMPLES
        value += of_best * share * max(0.0, max(one.similarity for one in samples) - value)
        mean = sum(cosine(row.candidate, one.text, evidence, settings) for one in samples) / len(samples)
        terms.append(Term("samples", mean, settings.sample_weight * of_mean * share))
    if uses_likelihood(row, settings):
        read = evidence[LIKELIHOOD][row.context, row.candidate]
        share = of_row.words**2 / (of_row.words**2 + LIKELIHOOD_WORDS**2)
        likelihood = read.alone / 2 + min(read.lift, LIFT_LIMIT)
        terms.append(Term("likelihood", likelihood, settings.likelihood_weight * share))
    return (Term("references", value, 1.0 - weight), *terms, *repetition_term(row, settings))


def repetition_term(row: ScorableRow, settings: SimilaritySettings) -> tuple[Term, ...]:
    """The term that lowers the score of a candidate that repeats words; none where it has no weight.

    In a dialogue the words that it copies from the context are repeated, too; not without references, where the
    form of a context does not tell a dialogue from a transcript to be summarized.
    """
    if not settings.repetition_penalty:
        return ()
    repeated = repetition(row.candidate)
    if row.task == "dialogue" and row.references and len(plain_words(row.candidate)) >= RUN_WORDS:
        repeated = min(1.0, repeated + copied_share(row.candidate, row.context))
    return (Term("repetition", repeated, -settings.repetition_penalty),)


def nearness(text: str, parts: Sequence[str], evidence: Evidence, settings: SimilaritySettings) -> float:
    """The largest cosine with a part of the context."""
    vector = _vector(text, evidence, settings)
    return max(float(vector @ evidence[EMBED][part].vector) for part in parts)


def cosine(text: str, other: str, evidence: Evidence, settings: SimilaritySettings) -> float:
    """Of the sentence vectors of two texts."""
    return float(_vector(text, evidence, settings) @ _vector(other, evidence, settings))


def _vector(text: str, evidence: Evidence, settings: SimilaritySettings) -> NDArray[np.float64]:
    vector: NDArray[np.float64] = evidence[MATCH if settings.matching == "tokens" else EMBED][text].vector
    return vector


def similarities(
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
        candidate: unit vectors, (tokens, dimensions); zeros for an unknown token, which matches nothing.
        reference: likewise.
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())
