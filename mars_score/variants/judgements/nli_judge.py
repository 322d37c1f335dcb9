"""Judgements: what an NLI model says of each sentence of a candidate, and the verdicts that are reliable.

A summary is judged by its context, any other candidate by its references. The premise is the text as a whole where
it is short enough. Of a longer one, or of several, it is a passage: the sentence that is nearest by the encoder,
with its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Entailment, Judgement, Row, Verdict
from mars_score.sentences import sentences
from mars_score.text import passages_of, plain_words, split_words
from mars_score.variants.judgements.statements import is_question, plain, statement, states

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

Passage = list[str]  # its sentences
# Token recall from which a candidate says nearly all of a reference: only then can it contradict it. A text that
# says something else is none, even where an NLI model takes it for one (research/entailment/measure.md).
CLOSE_RECALL = 0.75
CERTAIN = 0.9  # A verdict needs this probability of a contradiction: eight of ten are then right (the same page).
# A sentence of a summary that the context entails with a lower probability is told as unsupported: of such ones
# eight of ten are, by a context of any length (the same page). No score depends on it.
UNSUPPORTED = 0.05
# A single text of at most this many times the words of a passage is read whole: then a model is more often right
# than by a passage of it. Of longer texts a passage is better (the same page).
WHOLE = 1.5
POSSIBLE = 0.2  # Of a summary close to a reference both are asked: one is certain, the other gives it this much.


# What can be believed


class Reliability(NamedTuple):
    """What can be believed of an NLI model's judgements.

    Attributes:
        support: share of the weight of support that its judgements by a context get.
        by_context: whether it can be certain that the context contradicts a sentence of a summary.
        by_reference: whether it can be certain that a close reference contradicts a sentence.
    """

    support: float = 0.5
    by_context: bool = False
    by_reference: bool = False


# Of the NLI models that ship; how often they are right: research/entailment/measure.md.
SHIPPED = {
    "mini-nli": Reliability(support=0.5, by_reference=True),
    "medium-nli": Reliability(support=1.0, by_context=True, by_reference=True),
}


def reliability_of(model: object) -> Reliability:
    """Return what can be believed of a model; of those that do not ship no verdict is."""
    return SHIPPED.get(model, Reliability()) if isinstance(model, str) else Reliability()


def believed_terms(row: Row, terms: frozenset[str], known: Reliability) -> frozenset[str]:
    """Leave out the terms for which an NLI model cannot be believed."""
    by_reference = known.by_reference and bool(row.references)
    is_believed = {
        "support": known.support > 0,
        "contradiction": by_reference or (known.by_context and row.task == "summary"),
    }
    return frozenset(name for name in terms if is_believed.get(name, True))


def is_checked(row: Row, judgements: Sequence[Judgement], known: Reliability) -> bool:
    """Tell whether verdicts on a row are believed: on a summary far from all references only by its context."""
    return row.task != "summary" or known.by_context or any(one.by_reference for one in judgements)


def is_close(row: Row, recalls: Mapping[tuple[str, str], float]) -> bool:
    """Tell whether a candidate says nearly all of a reference; ``recalls``: token recall by candidate and text."""
    return any(recalls[row.candidate, text] >= CLOSE_RECALL for text in row.references)


def verdicts_on(task: str, judgements: Sequence[Judgement], known: Reliability) -> list[Verdict]:
    """Return the verdicts on the sentences of a row with a term "contradiction"; there is none on a question."""
    told = (_verdict(judgement, task, known) for judgement in judgements)
    return [verdict for verdict in told if verdict and not is_question(statement(verdict.sentence))]


def unsupported_in(judgements: Sequence[Judgement]) -> list[Verdict]:
    """Return the sentences of a summary that its context does not say; a question says nothing."""
    return [
        Verdict(sentence, entailment.entailment, premise, "context")
        for sentence, premise, entailment, _ in judgements
        if entailment.entailment < UNSUPPORTED and not is_question(statement(sentence))
    ]


def _verdict(judgement: Judgement, task: str, known: Reliability) -> Verdict | None:
    """Return the verdict on a sentence that is certainly contradicted, by the surer of two premises; else None."""
    asked = {"context" if task == "summary" else "reference": judgement}
    if judgement.by_reference:
        asked["reference"] = judgement.by_reference
    probabilities = {source: one.entailment.contradiction for source, one in asked.items()}
    believed = {"context": known.by_context, "reference": known.by_reference}
    certain = [source for source in asked if believed[source] and probabilities[source] >= CERTAIN]
    if not certain or min(probabilities.values()) < POSSIBLE:
        return None
    source = max(certain, key=lambda source: probabilities[source])
    return Verdict(judgement.sentence, probabilities[source], asked[source].premise, source)


# Judgements


def judge(rows: Mapping[Row, bool], config: PlusConfig, calls: ModelCalls) -> dict[Row, list[Judgement]]:
    """Judge the first sentences of candidates: of a summary by its context, of others by the references.

    Args:
        rows: prepared, with whether the candidate is close to a reference; a close summary is judged by it, too.
        config: settings of the formula.
        calls: the models.

    Raises:
        ModelUnavailableError: a model cannot be loaded.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    premises = choose_premises(list(rows), config, calls)
    close = [row for row, row_is_close in rows.items() if row_is_close and row.task == "summary"]
    second = dict(
        zip(close, choose_premises([replace(row, task="text") for row in close], config, calls), strict=True)
    )
    read = {
        (sentence, premise): (plain(premise), statement(sentence))
        for of_row in [*premises, *second.values()]
        for sentence, premise in of_row
    }
    entailed = calls.entails(pair for pair in read.values() if not states(*pair))

    def judgement(pair: tuple[str, str], by_reference: tuple[str, str] | None = None) -> Judgement:
        entailment = Entailment(1.0, 0.0) if states(*read[pair]) else entailed[read[pair]]
        return Judgement(*pair, entailment, judgement(by_reference) if by_reference else None)

    return {
        row: list(map(judgement, of_row, second.get(row, [None] * len(of_row))))
        for row, of_row in zip(rows, premises, strict=True)
    }


# Premises


def choose_premises(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[list[tuple[str, str]]]:
    """Return the first sentences of each candidate, each with its premise.

    Raises:
        ModelUnavailableError: the encoder is needed and cannot be loaded.
    """
    judged = [judged_sentences(row.candidate)[: config.max_sentences] for row in rows]
    sources = [tuple(passages_of(row.context)) if row.task == "summary" else row.references for row in rows]
    passages = {texts: [sentences(text) for text in texts if text.strip()] for texts in sources}
    # Only of these there is a choice: the others are premises as a whole.
    long_passages = {texts: parts for texts, parts in passages.items() if not _fits(parts, config.premise_words)}
    texts = [part for parts in long_passages.values() for passage in parts for part in passage]
    for row_sentences, source in zip(judged, sources, strict=True):
        texts += row_sentences if source in long_passages else []
    encodings = calls.encode(texts)

    def premise(sentence: str, source: tuple[str, ...]) -> str:
        if source in long_passages:
            return _nearest(sentence, long_passages[source], encodings, config.premise_words)
        return " ".join(part for passage in passages[source] for part in passage)

    return [
        [(text, premise(text, source)) for text in row_sentences]
        for row_sentences, source in zip(judged, sources, strict=True)
    ]


def judged_sentences(candidate: str) -> list[str]:
    """Return the sentences of a candidate that state something; one word beside them ("Thanks!") does not."""
    parts = [part for line in candidate.splitlines() for part in sentences(plain(line))]
    words = [len(plain_words(statement(part))) for part in parts]
    return [part for part, count in zip(parts, words, strict=True) if count and count >= min(2, max(words))]


def _nearest(sentence: str, passages: Sequence[Passage], encodings: Mapping[str, Encoding], words: int) -> str:
    """Return the part of the passages that is nearest to a sentence, with its neighbours up to ``words`` words."""
    vector = encodings[sentence].vector
    cosines = [np.array([vector @ encodings[part].vector for part in passage]) for passage in passages]
    best = max(range(len(passages)), key=lambda number: float(cosines[number].max()))
    return neighbourhood(passages[best], int(cosines[best].argmax()), words)


def neighbourhood(parts: Sequence[str], centre: int, words: int) -> str:
    """Join a part and the parts around it while they have at most ``words`` words; a longer part stands alone."""
    sizes = [len(split_words(part)) for part in parts]
    first, last, room = centre, centre, words - sizes[centre]
    while True:
        before = sizes[first - 1] if first > 0 else room + 1
        after = sizes[last + 1] if last + 1 < len(parts) else room + 1
        if min(before, after) > room:
            return " ".join(parts[first : last + 1])
        if after <= room and (before > room or last - centre <= centre - first):
            last, room = last + 1, room - after
        else:
            first, room = first - 1, room - before


def _fits(passages: Sequence[Passage], words: int) -> bool:
    """Tell whether there is no choice: one text at most, of at most :data:`WHOLE` times ``words`` words."""
    return (
        len(passages) <= 1 and sum(len(split_words(part)) for parts in passages for part in parts) <= WHOLE * words
    )
