"""The score of a row: the values of its terms, from what was read of the row, times their weights."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import RUN_WORDS, copied_share, windows
from mars_score.data.words import plain_words, repetition
from mars_score.scoring.evidence import CONTRADICTION, EMBED, LIKELIHOOD, Evidence, kind_of_texts
from mars_score.scoring.form import Form
from mars_score.scoring.likelihood import Likelihood
from mars_score.scoring.result import ReferenceScore, RowScore, SampleScore
from mars_score.scoring.row import ScorableRow, Term, weighted_sum


class Similarities:
    """Similarities of texts, from what was read of the rows to score; vectors are unpacked once for all rows."""

    def __init__(self, evidence: Evidence, form: Form) -> None:
        texts, parts = evidence[kind_of_texts(form)], evidence[EMBED]
        self.evidence, self.form, self._texts = evidence, form, texts
        self._vector = cache(lambda text: texts[text].vector)
        self._vectors = cache(lambda context: np.stack([parts[part].vector for part in windows(context)]))

    def cosine(self, text: str, other: str) -> float:
        """Of the sentence vectors of two texts: candidates, references or samples."""
        return float(self._vector(text) @ self._vector(other))

    def nearest(self, text: str, context: str) -> float:
        """The largest cosine with a part of a context."""
        return float((self._vectors(context) @ self._vector(text)).max())

    def with_texts(self, candidate: str, texts: Sequence[str]) -> dict[str, float]:
        """Of a candidate with each different text: token recall, or the cosine."""
        if self.form.matching == "sentences":
            return {text: self.cosine(candidate, text) for text in texts}
        own = self._texts[candidate].tokens
        return {  # a text is itself even where the tokenizer leaves no token of it
            text: 1.0 if text == candidate else token_recall(own, self._texts[text].tokens)
            for text in dict.fromkeys(texts)
        }


class Comparison:
    """A candidate beside all that it is compared with; the value of a term is the method with its name."""

    def __init__(self, row: ScorableRow, similarities: Similarities) -> None:
        self.row, self.similarities = row, similarities
        self.form, self.evidence = similarities.form, similarities.evidence
        texts = [text for reference in row.references for text in reference.texts]
        with_text = similarities.with_texts(row.candidate, [*texts, *row.samples])
        self.reference_scores: list[ReferenceScore] = []
        for reference in row.references:
            values = [with_text[text] for text in reference.texts]
            score = combine_augmentations(values, self.form.augmentation_aggregation, self.form.q)
            self.reference_scores.append(ReferenceScore(reference, tuple(values), score))
        self.sample_scores = [SampleScore(text, with_text[text]) for text in row.samples]

    def weights(self) -> dict[str, float]:
        """Of all terms of the row."""
        weights = self.form.weights(self.row)
        if not (self.row.references and "context" in weights):
            return weights
        nearest = [self.similarities.nearest(one.reference, self.row.context) for one in self.row.references]
        return self.form.weights(self.row, closeness=sum(nearest) / len(nearest))

    def references(self) -> float:
        """The score against the best reference, or the mean over references."""
        scores = [one.score for one in self.reference_scores]
        return max(scores) if self.form.reference_aggregation == "max" else sum(scores) / len(scores)

    def sentences(self) -> float:
        """The largest cosine with a reference."""
        return max(self.similarities.cosine(self.row.candidate, one.reference) for one in self.row.references)

    def context(self) -> float:
        """The cosine with the nearest part of the context."""
        return self.similarities.nearest(self.row.candidate, self.row.context)

    def samples(self) -> float:
        """How much nearer the nearest sample is than the references; without references how near it is."""
        nearest = max(sample.similarity for sample in self.sample_scores)
        return max(0.0, nearest - self.references()) if self.row.references else nearest

    def likelihood(self) -> float:
        """Half of the log probability alone and what the context adds, in nats per token."""
        read: Likelihood = self.evidence[LIKELIHOOD][self.row.context, self.row.candidate]
        lift = min(read.lift, self.form.lift_limit) if self.row.references else read.lift
        return self.form.alone * read.alone + lift

    def repetition(self) -> float:
        """The share of words that are repeated or, in a dialogue with references, copied from the context."""
        row = self.row
        repeated = repetition(row.candidate)
        if row.task == "dialogue" and row.references and len(plain_words(row.candidate)) >= RUN_WORDS:
            repeated = min(1.0, repeated + copied_share(row.candidate, row.context))
        return repeated

    def contradiction(self) -> float:
        """How probable its sentences are to contradict their premises, times the square of its similarity.

        That is the similarity with the references or, without, with the context: what a text says in words of its
        own is hard to judge for a small model, and another reply in a dialogue contradicts nothing.
        """
        similarity = self.references() if self.row.references else self.context()
        probable: list[float] = [self.evidence[CONTRADICTION][sentence] for sentence in self.row.premises]
        return max(0.0, similarity) ** 2 * sum(probable) / len(probable)


def score_row(row: ScorableRow, similarities: Similarities) -> RowScore:
    """The score of a candidate: the sum of its terms' values times weights; 0.0 for a blank one."""
    if not row.candidate:
        return RowScore(0.0, ())
    compared = Comparison(row, similarities)
    weights = compared.weights()
    terms = tuple(Term(name, getattr(compared, name)(), weight) for name, weight in weights.items())
    return RowScore(weighted_sum(terms), tuple(compared.reference_scores), terms, tuple(compared.sample_scores))


def combine_augmentations(similarities: Sequence[float], how: str, q: float) -> float:
    """The score against a human reference (section 2.3).

    Args:
        similarities: with the reference, then with its augmentations by rising mask ratio.
        how: ``"weighted"``: the paper's mean with geometric weights. ``"best"``: the mean of the first and the
            largest, so that an augmentation counts where it is what the candidate says, and else does no harm.
        q: the i-th text (0: the reference) has a weight in proportion to q to the power i.
    """
    if how == "best":
        return (similarities[0] + max(similarities)) / 2
    return float(np.average(similarities, weights=q ** np.arange(len(similarities))))


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
