"""The formula of `plus` and `fast`, with all its settings and the features that it takes.

    score = (1 - w) R + w C + v S + l (log p / 2 + PMI) - .3 P + s E - k K

R: similarity with the references. C: with the context; for data, cosine of sentence vectors with the references.
S: how much nearer the best sample is. P: repetition. E: support by the context (summaries). K: contradiction. The
weights w, v and l grow with the length n of the references; `fast` has l = 0. Nothing here runs a model;
:mod:`mars_score.features` makes the features.
"""

import math
from collections.abc import Sequence
from statistics import fmean as mean
from typing import Literal, NamedTuple

from pydantic.dataclasses import dataclass

from mars_score.options import STRICT, option
from mars_score.rows import Judgement, LogProbability, Row, Term
from mars_score.text import copied_share, plain_words, repeated_share, split_words


@dataclass(frozen=True, config=STRICT)
class PlusConfig:
    """The settings of the formula; the first eleven, to ``log_p_weight``, were chosen on development sets."""

    context_weight: float = option(0.5, "Largest weight w of the context, reached with long references.", 0, 1)
    sample_weight: float = option(0.2, "Weight of the samples, times the square of w / context_weight.", 0, 10)
    likelihood_weight: float = option(0.15, "Largest weight l of the likelihood; 0 in fast.", 0, 10)
    repetition_penalty: float = option(0.3, "What a candidate of repeated words alone loses.", 0, 10)
    support_weight: float = option(0.1, "Weight of the support by the context in a summary.", 0, 10)
    contradiction_penalty: float = option(0.6, "Weight of contradictions, times the similarity to the 8th.", 0, 10)
    context_words: float = option(3.0, "Words of a reference at which w is half of its largest value.", 0)
    likelihood_words: float = option(20.0, "Words of a reference at which l is half of its largest value.", 0)
    close_context: float = option(0.7, "Cosine of references and context above which w falls.", -1, None, lt=1)
    max_pmi: float = option(2.5, "Cap on the PMI with references; a higher one is a sign of copying.", 0)
    log_p_weight: float = option(0.5, "Weight of log p without the context, beside the PMI.", 0, 10)
    window_words: int = option(100, "Words of a part of the context that is encoded.", 1)
    word_letters: int = option(4, "Letters of a word whose repetition counts, at least.", 1)
    repetition_words: int = option(10, "Such words before a word among which it is a repetition.", 1)
    copied_words: int = option(5, "Words in a row that are copied and no coincidence.", 1)
    premise_words: int = option(150, "Words of the passage by which the NLI model judges a sentence.", 1)
    max_sentences: int = option(20, "Sentences of a candidate that the NLI model reads.", 1)
    max_context_tokens: int | None = option(2048, "Tokens of the context that the language model reads.", 1)
    reference_aggregation: Literal["max", "mean"] = option("max", "Score of a row with several references.")


class Features(NamedTuple):
    """The model outputs of a row; a feature that is None is not needed, and its term is left out."""

    row: Row
    recalls: Sequence[float] = ()  # token recall of each reference
    sample_recalls: Sequence[float] = ()  # token recall of each sample
    reference_cosines: Sequence[float] = ()  # of sentence vectors, with each reference; only for the task data
    context_cosine: float | None = None  # candidate and the nearest window of the context
    reference_context_cosine: float = 0.0  # references and their nearest windows, mean
    log_p: LogProbability | None = None
    # Of the NLI model, for each sentence of the candidate; by the context in a summary, or without references.
    judgements: Sequence[Judgement] = ()


def term_names(row: Row, config: PlusConfig, *, reads_language: bool = True) -> set[str]:
    """Return the terms that a row's score has, and so the features that it needs; none for a blank candidate.

    A term of weight 0 is left out; ``reads_language``: whether there is an NLI model for the row's language.
    """
    is_summary = row.task == "summary" and bool(row.context)
    has_terms = {
        "references": bool(row.references),
        "context": bool(row.context) and config.context_weight > 0,
        "samples": bool(row.samples) and config.sample_weight > 0,
        "likelihood": config.likelihood_weight > 0 and row.task != "dialogue",  # dull replies are the likely ones
        "repetition": config.repetition_penalty > 0,
        "support": config.support_weight > 0 and reads_language and is_summary,
        "contradiction": config.contradiction_penalty > 0 and reads_language and row.task != "data",
    }
    names = {name for name, has_term in has_terms.items() if has_term and row.candidate}
    if row.task == "data" and {"references", "context"} <= names:  # the record gives the content, not the words
        return (names - {"context"}) | {"sentences"}
    return names


def plus(features: Features, config: PlusConfig) -> tuple[Term, ...]:
    """Return the terms of a candidate's score, which is the sum of value times weight.

    Args:
        features: of a row with a candidate, and with references of n words in the mean, or a context alone.
        config: settings of the formula.
    """
    row, c = features.row, config
    n = mean(map(len, map(split_words, row.references))) if row.references else math.inf
    # 1 if the references are far from the context, 0 if they repeat it.
    novelty = min(1.0, max(0.0, (1 - features.reference_context_cosine) / (1 - c.close_context)))
    context_share = novelty / (1 + c.context_words / n)
    recall = aggregate(features.recalls, c) if row.references else 0.0
    terms = []
    w = 0.0
    if features.reference_cosines:
        w = c.context_weight
        terms.append(Term("sentences", max(features.reference_cosines), w))
    elif features.context_cosine is not None:
        w = c.context_weight * context_share
        terms.append(Term("context", features.context_cosine, w))
    if row.references:
        terms.insert(0, Term("references", recall, 1 - w))
    if features.sample_recalls:
        nearer = max(0.0, max(features.sample_recalls) - recall)
        terms.append(Term("samples", nearer, c.sample_weight * context_share**2))
    if features.log_p is not None:
        pmi = min(features.log_p.pmi, c.max_pmi if row.references else math.inf)
        weight = c.likelihood_weight / (1 + (c.likelihood_words / n) ** 2)
        terms.append(Term("likelihood", c.log_p_weight * features.log_p.alone + pmi, weight))
    if c.repetition_penalty:
        terms.append(Term("repetition", repetition(row, c), -c.repetition_penalty))
    if features.judgements and c.support_weight and row.task == "summary" and row.context:
        entailed = [one.by_context.entailment for one in features.judgements if one.by_context]
        terms.append(Term("support", mean(entailed), c.support_weight))
    if features.judgements and c.contradiction_penalty:
        # A text that is unlike the reference seldom denies it, whatever an NLI model says.
        similarity = max(0.0, recall if row.references else features.context_cosine or 0.0)
        contradicted = mean(map(contradiction, features.judgements))
        terms.append(Term("contradiction", similarity**8 * contradicted, -c.contradiction_penalty))
    return tuple(terms)


def aggregate(values: Sequence[float], config: PlusConfig) -> float:
    """Return the value of the best reference, or the mean over references."""
    return max(values) if config.reference_aggregation == "max" else mean(values)


def repetition(row: Row, config: PlusConfig) -> float:
    """Return the share of words that are repeated or, in a dialogue with references, copied from the context."""
    share = repeated_share(row.candidate, config.word_letters, config.repetition_words)
    if row.task == "dialogue" and row.references and len(plain_words(row.candidate)) >= config.copied_words:
        share = min(1.0, share + copied_share(row.candidate, row.context, config.copied_words))
    return share


def contradiction(judgement: Judgement) -> float:
    """Return the probability that a reference contradicts a sentence, and that the context does not entail it.

    The latter is left out where the sentence is not judged by the context. Without references the context is taken
    in their place.
    """
    by_reference, by_context = judgement.by_reference, judgement.by_context
    if by_reference is None:
        return by_context.contradiction if by_context else 0.0
    return by_reference.contradiction * (1 - (by_context.entailment if by_context else 0.0))
