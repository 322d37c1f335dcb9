"""The formula of `plus` and `fast`, with its settings and features.

    score = ((1 - w) R + w C + v S + l (log p / 2 + PMI) - .3 P + s E) (1 - .5 F)

R: token recall of the references. C: cosine with the context, or for data with the references (sentence vectors).
S: token recall of the best sample minus R. P: share of repeated words minus that of the references. E: mean
probability that the context entails a sentence of a summary, with 0 for contradicted sentences. F: share of
contradicted sentences, for summaries mostly those with another number. The weights w, v and l grow with the mean
length n of the references. `fast` has l = 0. Only summaries have s.

This module runs no model. :mod:`mars_score.variants.plus_variant` gets the features from the models, and
:mod:`mars_score.variants.judgements.nli_judge` has the rules for the NLI model.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean as mean
from typing import Any, NamedTuple

from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from mars_score.options import STRICT, option
from mars_score.rows import Aggregation, LogProbability, Row, Term, aggregate, weighted_sum
from mars_score.text import copied_share, plain_words, repeated_share, split_words


class TermText(NamedTuple):
    """Describes a term of the score.

    Attributes:
        meaning: what its value measures.
        adds: subject of a sentence "... add 0.10", or "".
        costs: subject of a sentence "... cost 0.10", or "".
    """

    meaning: str
    adds: str = ""
    costs: str = ""


TERMS = {  # in the order of the formula
    "references": TermText("how much of the reference the candidate holds"),
    "sentences": TermText("how near its meaning is to that of a reference, where the context is data"),
    "context": TermText("how near it is to the nearest part of the context"),
    "samples": TermText("how much nearer it is to a sample than to the references", "words of a sample"),
    "likelihood": TermText(
        "its log probability per token (half of it), and what the context adds to that",
        "words that the language model expects",
        "words that the language model does not expect",
    ),
    "repetition": TermText(
        "the share of its words that repeat others nearby; in a dialogue, also of those copied from it",
        costs="repeated words",
    ),
    "support": TermText(
        "how probable it is that the context says what its sentences say", "sentences that follow from the context"
    ),
    "contradiction": TermText(
        "the share of its sentences that a reference contradicts, or of a summary those with another number; "
        "its weight is a part of the other points",
        costs="contradicted sentences",
    ),
}


@dataclass(frozen=True, config=STRICT)
class PlusConfig:
    """The settings of the formula. Those up to ``log_p_weight`` were chosen on development sets."""

    context_weight: float = option(
        0.5, "Largest weight w of the context, for long references.", 0, 1, needs=["use_context"]
    )
    sample_weight: float = option(0.2, "Weight of the samples, times the square of w / context_weight.", 0, 10)
    likelihood_weight: float = option(0.15, "Largest weight l of the likelihood; 0 in fast.", 0, 10)
    repetition_penalty: float = option(
        0.3, "Loss of a candidate that only repeats words, as no reference does.", 0, 10
    )
    support_weight: float = option(
        0.2, "Largest weight s of the support by the context, in a summary.", 0, 10, needs=["entailment_model"]
    )
    contradiction_penalty: float = option(
        0.5,
        "Share of the score that is lost if all sentences are contradicted, of a summary by a number.",
        0,
        1,
        needs=["entailment_model"],
    )
    context_words: float = option(
        3.0, "Words of a reference at which w is half its largest.", 0, needs=[("context_weight", "sample_weight")]
    )
    likelihood_words: float = option(
        20.0, "Words of a reference at which l is half its largest.", 0, needs=["likelihood_weight"]
    )
    close_context: float = option(
        0.7, "Cosine of references and context above which w falls.", -1, None, lt=1, needs=["context_weight"]
    )
    max_pmi: float = option(
        2.5, "Largest PMI that counts where there are references.", 0, needs=["likelihood_weight"]
    )
    log_p_weight: float = option(
        0.5, "Weight of log p without the context, beside the PMI.", 0, 10, needs=["likelihood_weight"]
    )
    window_words: int = option(100, "Words of a window of the context.", 1, needs=["context_weight"])
    word_letters: int = option(
        4, "Fewest letters of a word whose repetition counts.", 1, needs=["repetition_penalty"]
    )
    repetition_words: int = option(
        10, "Words before a word among which it is a repetition.", 1, needs=["repetition_penalty"]
    )
    copied_words: int = option(5, "Words in a row that count as copied.", 1, needs=["repetition_penalty"])
    premise_words: int = option(
        100,
        "Words of an excerpt that the NLI model reads; a single text of up to half as many more is read whole.",
        1,
        needs=[("support_weight", "contradiction_penalty")],
    )
    max_sentences: int = option(
        20,
        "Sentences of a candidate that the NLI model judges.",
        1,
        needs=[("support_weight", "contradiction_penalty")],
    )
    max_context_tokens: int | None = option(
        2048, "Tokens of the context that the language model reads.", 1, needs=["use_context", "likelihood_weight"]
    )
    reference_aggregation: Aggregation = option("max", "Score of a row with several references.")

    @property
    def used_models(self) -> Mapping[str, bool]:
        """Tell which models scores depend on, by the names of their settings."""
        return {
            "language_model": self.likelihood_weight > 0,
            "encoder": True,
            "entailment_model": self.contradiction_penalty > 0 or self.support_weight > 0,
        }


class Features(NamedTuple):
    """The model outputs that the terms of a row need."""

    row: Row
    terms: frozenset[str] = frozenset()  # the output of term_names
    recalls: Sequence[float] = ()  # token recall of each reference
    sample_recalls: Sequence[float] = ()  # token recall of each sample
    reference_cosines: Sequence[float] = ()  # cosine of sentence vectors with each reference
    context_cosine: float | None = None  # largest cosine with a window of the context
    reference_context_cosine: float = 0.0  # the same of the references, as a mean
    log_p: LogProbability | None = None
    support: float | None = None  # mean probability that the context entails a sentence
    support_reliability: float = 1.0  # factor of the weight of support
    contradicted_share: float | None = None  # share of contradicted sentences


def token_recall(candidate: NDArray[Any], reference: NDArray[Any]) -> float:
    """Compute the mean, over tokens of the reference, of the largest cosine with a token of the candidate.

    This is the recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr). It is 0 if
    either text has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions). An unknown token has zeros and matches nothing.
        reference: unit vectors, (tokens, dimensions).
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())


def term_names(row: Row, config: PlusConfig) -> frozenset[str]:
    """Return the names of a row's terms with a weight above 0, except those by the NLI model.

    A blank candidate has none. The terms by the NLI model depend on the features.
    """
    names = {
        "references": bool(row.references),
        "context": bool(row.context) and config.context_weight > 0,
        "samples": bool(row.samples) and config.sample_weight > 0,
        "likelihood": config.likelihood_weight > 0 and row.task != "dialogue",  # Likely replies are dull.
        "repetition": config.repetition_penalty > 0,
    }
    if row.task == "data" and names["references"] and names["context"]:
        names |= {"sentences": True, "context": False}  # Structured data give the content, not the words.
    return frozenset(name for name, has_term in names.items() if has_term and row.candidate)


def plus(features: Features, config: PlusConfig) -> tuple[Term, ...]:
    """Return the terms of a score. The features are those of a candidate that is not blank."""
    row, names = features.row, features.terms
    n = mean(map(len, map(split_words, row.references))) if row.references else math.inf
    share = context_share(n, features.reference_context_cosine, config)
    w = config.context_weight * (1.0 if "sentences" in names else share if "context" in names else 0.0)
    recall = aggregate(features.recalls, config.reference_aggregation) if row.references else 0.0
    terms = []
    if "references" in names:
        terms.append(Term("references", recall, 1 - w))
    if "sentences" in names:
        value = aggregate(features.reference_cosines, config.reference_aggregation)
        terms.append(Term("sentences", value, w))
    if "context" in names:
        assert features.context_cosine is not None
        terms.append(Term("context", features.context_cosine, w))
    if "samples" in names:
        value = max(0.0, max(features.sample_recalls) - recall)
        terms.append(Term("samples", value, config.sample_weight * share**2))
    if "likelihood" in names:
        assert features.log_p is not None
        pmi = min(features.log_p.pmi, config.max_pmi if row.references else math.inf)
        value = config.log_p_weight * features.log_p.alone + pmi
        terms.append(
            Term("likelihood", value, config.likelihood_weight / (1 + (config.likelihood_words / n) ** 2))
        )
    if "repetition" in names:
        terms.append(Term("repetition", repetition(row, config), -config.repetition_penalty))
    if features.support is not None and config.support_weight:
        weight = config.support_weight * features.support_reliability
        terms.append(Term("support", features.support, weight))
    if features.contradicted_share is not None and config.contradiction_penalty:
        weight = -config.contradiction_penalty * max(0.0, weighted_sum(terms))
        terms.append(Term("contradiction", features.contradicted_share, weight))
    return tuple(terms)


def context_share(n: float, reference_context_cosine: float, config: PlusConfig) -> float:
    """Return the share of ``context_weight`` that the context gets.

    It is larger for long references that do not repeat the context: a half if ``context_words`` = n, and less
    above a cosine of ``close_context``. ``n`` is the mean number of words of the references, infinite without any.
    """
    novelty = min(1.0, max(0.0, (1 - reference_context_cosine) / (1 - config.close_context)))
    return novelty / (1 + config.context_words / n)


def repetition(row: Row, config: PlusConfig) -> float:
    """Return the share of repeated words minus the largest such share of a reference, but at least 0."""
    shares = [_repetition(text, row, config) for text in (row.candidate, *row.references)]
    return max(0.0, shares[0] - max(shares[1:], default=0.0))


def _repetition(text: str, row: Row, config: PlusConfig) -> float:
    """Return the share of repeated words, plus that of words copied from a dialogue if there are references."""
    share = repeated_share(text, config.word_letters, config.repetition_words)
    if row.task == "dialogue" and row.references and len(plain_words(text)) >= config.copied_words:
        share = min(1.0, share + copied_share(text, row.context, config.copied_words))
    return share
