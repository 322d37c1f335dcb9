"""The score of a candidate without references: given its context alone (docs/references.md)."""

from __future__ import annotations

from mars_score.data.overlap import windows
from mars_score.scoring.evidence import LIKELIHOOD, Evidence, ScorableRow, uses_likelihood
from mars_score.scoring.result import RowScore, SampleScore, Term, weighted_sum
from mars_score.scoring.score import cosine, nearness, repetition_term, similarities
from mars_score.settings import SimilaritySettings

# Chosen on development sets (docs/references.md): the similarity with samples that a row has where none are drawn,
# about that of other rows, so that rows with and without samples can be compared.
TYPICAL = 0.3


def score_without_references(row: ScorableRow, evidence: Evidence, settings: SimilaritySettings) -> RowScore:
    """The score of a candidate given its context; 0.0 for a blank candidate.

    The terms are the cosine with the nearest part of the context; the similarity with the samples, which is the
    mean of the mean cosine and of the largest token recall; with a ``likelihood_weight`` the likelihood; and, with
    a negative weight, how much the candidate repeats its words.

    Args:
        row: without references; the context is not blank.
        evidence: at least what :func:`mars_score.scoring.evidence.needs` names.
        settings: how it becomes a score.
    """
    if not row.candidate:
        return RowScore(0.0, ())
    near = nearness(row.candidate, windows(row.context), evidence, settings)
    found = similarities(row.candidate, row.samples, evidence, settings)
    drawn = TYPICAL
    if row.samples:
        mean = sum(cosine(row.candidate, one, evidence, settings) for one in row.samples) / len(row.samples)
        drawn = (mean + max(found)) / 2
    terms = [Term("context", near, settings.context_weight), Term("samples", drawn, settings.sample_weight)]
    if uses_likelihood(row, settings):
        read = evidence[LIKELIHOOD][row.context, row.candidate]
        terms.append(Term("likelihood", read.alone / 2 + read.lift, settings.likelihood_weight))
    terms += repetition_term(row, settings)
    return RowScore(weighted_sum(terms), (), tuple(terms), tuple(map(SampleScore, row.samples, found)))
