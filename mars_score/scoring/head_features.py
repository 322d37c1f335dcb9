"""What a head may learn from besides MARS's terms: a few properties of a row, from what was read to score it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mars_score.data.overlap import copied_share
from mars_score.data.repetition import repetition
from mars_score.data.words import split_words
from mars_score.models.threads import one_blas_thread
from mars_score.scoring.evidence import LIKELIHOOD, Evidence
from mars_score.scoring.form import Form
from mars_score.scoring.heads import LearnedHead
from mars_score.scoring.result import RowScore
from mars_score.scoring.row import Example, ScorableRow, weighted_sum


@one_blas_thread()
def make_example(row: ScorableRow, score: RowScore, evidence: Evidence, form: Form) -> Example:
    """A scored row as heads see it.

    Features, each left out where it is not known:

    - ``repetition``: see :func:`mars_score.data.repetition.repetition`; left out where it is a term.
    - ``copied``: see :func:`mars_score.data.overlap.copied_share`.
    - ``length``: log of the candidate's words by those of a reference (their mean).
    - ``log_probability``, ``lift``: of the candidate, alone and what the context adds to it, in nats per token.

    Args:
        row: whose candidate is not blank.
        score: of the row.
        evidence: that it was computed from.
        form: with which.
    """
    references = tuple(one.reference for one in row.references)
    features = {"copied": copied_share(row.candidate, row.context)}
    if references:
        of_references = max(1, sum(len(split_words(text)) for text in references)) / len(references)
        features["length"] = math.log(max(1, len(split_words(row.candidate))) / of_references)
    if not form.repetition_penalty:
        features["repetition"] = repetition(row.candidate)
    if likelihood := evidence.get(LIKELIHOOD, {}).get((row.context, row.candidate)):
        features |= {"log_probability": likelihood.alone, "lift": likelihood.lift}
    return Example(row.candidate, references, row.context, score.terms, features)


def rescored(
    rows: Sequence[ScorableRow],
    scores: Sequence[RowScore],
    head: LearnedHead,
    evidence: Evidence,
    form: Form,
) -> list[RowScore]:
    """Scores by a learned head; those of blank candidates stay 0."""
    written = [place for place, row in enumerate(rows) if row.candidate]
    examples = [make_example(rows[place], scores[place], evidence, form) for place in written]
    new = list(scores)
    for place, terms in zip(written, head.score(examples) if examples else [], strict=True):
        new[place] = replace(scores[place], score=weighted_sum(terms), terms=terms)
    return new
