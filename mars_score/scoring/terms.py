"""The terms of a row's score: their values, from what was read of the row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import RUN_WORDS, copied_share, windows
from mars_score.data.repetition import repetition
from mars_score.data.words import plain_words
from mars_score.scoring.evidence import CONTRADICTION, EMBED, LIKELIHOOD, MATCH, Evidence
from mars_score.scoring.form import Form, Weights
from mars_score.scoring.result import ReferenceScore, RowScore, SampleScore
from mars_score.scoring.row import ScorableRow, Term, weighted_sum


class Similarities:
    """Similarities of texts, from what was read of them; vectors are unpacked once for all rows.

    Args:
        evidence: at least what :func:`mars_score.scoring.evidence.needs` names of the rows to score.
        form: how it becomes scores.
    """

    def __init__(self, evidence: Evidence, form: Form) -> None:
        self.evidence, self.form = evidence, form
        self._embeddings = evidence[MATCH if form.matching == "tokens" else EMBED]
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._contexts: dict[str, NDArray[np.float64]] = {}

    def vector(self, text: str) -> NDArray[np.float64]:
        """The sentence vector of a candidate, a reference or a sample, (dimensions,)."""
        if text not in self._vectors:
            self._vectors[text] = self._embeddings[text].vector
        return self._vectors[text]

    def cosine(self, text: str, other: str) -> float:
        """Of the sentence vectors of two texts."""
        return float(self.vector(text) @ self.vector(other))

    def nearest(self, text: str, context: str) -> float:
        """The largest cosine with a part of a context."""
        if context not in self._contexts:
            self._contexts[context] = np.stack([self.evidence[EMBED][part].vector for part in windows(context)])
        return float((self._contexts[context] @ self.vector(text)).max())

    def closeness(self, row: ScorableRow) -> float:
        """The mean over the references of the largest cosine with a part of the context."""
        nearest = [self.nearest(one.reference, row.context) for one in row.references]
        return sum(nearest) / len(nearest)

    def with_texts(self, candidate: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Of a candidate with each of some texts: token recall, or the cosine; equal texts are compared once."""
        if self.form.matching == "sentences":
            found = {text: self.cosine(candidate, text) for text in dict.fromkeys(texts)}
        elif texts:
            own = self._embeddings[candidate].tokens
            found = {  # a text is itself even where the tokenizer leaves no token of it
                text: 1.0 if text == candidate else token_recall(own, self._embeddings[text].tokens)
                for text in dict.fromkeys(texts)
            }
        return tuple(found[text] for text in texts)


@dataclass(frozen=True)
class Compared:
    """A candidate beside its references and samples, of which the values of its terms follow."""

    row: ScorableRow
    references: Sequence[ReferenceScore]
    samples: Sequence[SampleScore]
    weights: Weights
    similarities: Similarities


def score_row(row: ScorableRow, similarities: Similarities) -> RowScore:
    """The score of a candidate: the sum of its terms' values times weights; 0.0 for a blank one."""
    if not row.candidate:
        return RowScore(0.0, ())
    form = similarities.form
    weights = form.weights(row)
    if row.references and weights.context is not None:
        weights = form.weights(row, similarities.closeness(row))
    references = []
    for reference in row.references:
        found = similarities.with_texts(row.candidate, reference.texts)
        references.append(
            ReferenceScore(reference, found, combine_augmentations(found, form.augmentation_aggregation, form.q))
        )
    samples = tuple(map(SampleScore, row.samples, similarities.with_texts(row.candidate, row.samples)))
    compared = Compared(row, references, samples, weights, similarities)
    by_name = {name: getattr(weights, name) for name in VALUES}
    terms = tuple(Term(name, VALUES[name](compared), one) for name, one in by_name.items() if one is not None)
    return RowScore(weighted_sum(terms), tuple(references), terms, samples)


def combine_augmentations(similarities: Sequence[float], how: str, q: float) -> float:
    """The score against a human reference (section 2.3).

    Args:
        similarities: with the reference, then with its augmentations by rising mask ratio.
        how: ``"weighted"``: the paper's mean with geometric weights. ``"best"``: the mean of the first and the
            largest, so that an augmentation counts where it is what the candidate says, and else does no harm.
        q: of the geometric weights.
    """
    if how == "best":
        return (similarities[0] + max(similarities)) / 2
    return float(np.dot(geometric_weights(len(similarities), q), similarities))


@cache
def geometric_weights(count: int, q: float) -> NDArray[np.float64]:
    """Weights a * q**i for i = 0 (the human reference), 1, ..., summing to 1; shape (count,)."""
    weights = q ** np.arange(count, dtype=np.float64)
    weights /= weights.sum()
    weights.setflags(write=False)
    return weights


def combine_references(scores: Sequence[float], how: str) -> float:
    """The score against several human references: the ``"max"`` or the ``"mean"``."""
    return max(scores) if how == "max" else sum(scores) / len(scores)


def _references(one: Compared) -> float:
    """The score against the references."""
    return combine_references([each.score for each in one.references], one.similarities.form.reference_aggregation)


def _sentences(one: Compared) -> float:
    """The largest cosine with a reference."""
    cosines = (one.similarities.cosine(one.row.candidate, each.reference) for each in one.row.references)
    return max(cosines)


def _context(one: Compared) -> float:
    """The cosine with the nearest part of the context."""
    return one.similarities.nearest(one.row.candidate, one.row.context)


def _samples(one: Compared) -> float:
    """How much nearer the nearest sample is than the references; without references how near it is."""
    nearest = max(sample.similarity for sample in one.samples)
    return max(0.0, nearest - _references(one)) if one.references else nearest


def _likelihood(one: Compared) -> float:
    """Half of the log probability alone and what the context adds, in nats per token."""
    form = one.similarities.form
    read = one.similarities.evidence[LIKELIHOOD][one.row.context, one.row.candidate]
    lift: float = min(read.lift, form.lift_limit) if one.references else read.lift
    return form.alone * float(read.alone) + lift


def _repetition(one: Compared) -> float:
    """The share of words that are repeated or, in a dialogue, copied from the context."""
    candidate, repeated = one.row.candidate, repetition(one.row.candidate)
    if one.weights.copying and len(plain_words(candidate)) >= RUN_WORDS:
        repeated = min(1.0, repeated + copied_share(candidate, one.row.context))
    return repeated


def _contradiction(one: Compared) -> float:
    """How probable its sentences are to contradict their premises, times the square of its similarity with them.

    That is the similarity with the references or, without, with the context: what a text says in words of its own
    is hard to judge for a small model, and another reply in a dialogue contradicts nothing.
    """
    similarity = _references(one) if one.references else _context(one)
    read = one.similarities.evidence[CONTRADICTION]
    probable = [float(read[each]) for each in one.row.premises]
    return max(0.0, similarity) ** 2 * sum(probable) / len(probable)


VALUES: Mapping[str, Callable[[Compared], float]] = {
    "references": _references,
    "sentences": _sentences,
    "context": _context,
    "samples": _samples,
    "likelihood": _likelihood,
    "repetition": _repetition,
    "contradiction": _contradiction,
}
assert [one.name for one in fields(Weights)][: len(VALUES)] == list(VALUES)


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
