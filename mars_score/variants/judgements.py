"""Judgements: what an NLI model says of each sentence of a candidate, and the verdicts reliable enough to show.

A premise is a reference or the context, as a whole where it is short enough. Of a longer one, or of several, it is
the sentence that is nearest by the encoder, with its neighbours; in a dialogue turns take the place of sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Entailment, Judgement, Row, Verdict
from mars_score.text import passages_of, sentences, split_words

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

Passage = list[str]  # its sentences or turns
Texts = tuple[tuple[str, ...], str]  # that premises are taken from, and the task that says how to split them


# Judgements and verdicts


class Calibration(NamedTuple):
    """Temperature and verdict thresholds of a model for one kind of premise.

    Attributes:
        temperature: the logits are divided by it.
        supported: least probability of entailment at which a sentence is called supported; None: never.
        contradicted: least probability of contradiction at which it is called contradicted; None: never.
    """

    temperature: float = 1.0
    supported: float | None = None
    contradicted: float | None = None

    def apply(self, entailment: Entailment) -> Entailment:
        """Divide the logits by the temperature."""
        neutral = max(0.0, 1 - entailment.entailment - entailment.contradiction)
        powers = [share ** (1 / self.temperature) for share in (*entailment, neutral)]
        return Entailment(powers[0] / sum(powers), powers[1] / sum(powers))


class Calibrations(NamedTuple):
    """A model's calibrations by kind of premise."""

    by_reference: Calibration = Calibration()
    by_context: Calibration = Calibration()


# Of the NLI models that ship; how often verdicts from these thresholds are right: research/entailment/measure.md.
SHIPPED = {
    "mini-nli": Calibrations(by_reference=Calibration(contradicted=0.94)),
    "medium-nli": Calibrations(by_reference=Calibration(contradicted=0.94)),
}


def calibration_of(model: object) -> Calibrations:
    """Return the calibrations of a model; those that do not ship have none."""
    return SHIPPED.get(model, Calibrations()) if isinstance(model, str) else Calibrations()


def judge(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[list[Judgement]]:
    """Judge the first sentences of each candidate, none of which is blank, by its references and its context.

    Raises:
        ModelUnavailableError: a model cannot be loaded.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    premises = choose_premises(rows, config, calls)
    chosen = [sentence for of_row in premises for sentence in of_row]
    pairs = [(premise, item.sentence) for item in chosen for premise in (item.reference, item.context)]
    entailed = calls.entails(
        (premise, sentence) for premise, sentence in pairs if sentence not in premise and premise
    )
    by_reference, by_context = calibration_of(calls.models.entailment_model)

    def entailment(premise: str, sentence: str, calibration: Calibration) -> Entailment | None:
        if not premise:
            return None
        if sentence in premise:  # word for word
            return Entailment(1.0, 0.0)
        return calibration.apply(entailed[premise, sentence])

    return [
        [
            Judgement(
                item.sentence,
                item.reference,
                item.context,
                entailment(item.reference, item.sentence, by_reference),
                entailment(item.context, item.sentence, by_context),
            )
            for item in of_row
        ]
        for of_row in premises
    ]


def verdict_on(judgement: Judgement, row: Row, model: object) -> Verdict | None:
    """Return the verdict on a sentence, if its probability reaches the threshold of the NLI model (precision .8).

    There is none on questions, none on replies in a dialogue, and none where context and reference disagree.
    """
    sentence = judgement.sentence
    if row.task == "dialogue" or sentence.rstrip("\"')\u201d\u2019").endswith(("?", "\uff1f")):
        return None
    by_reference, by_context = calibration_of(model)
    verdicts = [
        Verdict(sentence, name, probability, premise)
        for premise, entailment, calibration in (
            (judgement.context_premise, judgement.by_context, by_context),
            (judgement.reference_premise, judgement.by_reference, by_reference),
        )
        if entailment is not None
        for name, probability, threshold in (
            ("supported", entailment.entailment, calibration.supported),
            ("contradicted", entailment.contradiction, calibration.contradicted),
        )
        if threshold is not None and probability >= threshold
    ]
    return verdicts[0] if len({verdict.verdict for verdict in verdicts}) == 1 else None


# Premises


class Premises(NamedTuple):
    """A sentence of a candidate, and the premises of its references and its context; "" where there is none."""

    sentence: str
    reference: str
    context: str


def choose_premises(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[list[Premises]]:
    """Choose the premises of the first sentences of each candidate.

    Raises:
        ModelUnavailableError: the encoder is needed and cannot be loaded.
    """
    judged = [sentences(row.candidate)[: config.max_sentences] or [row.candidate] for row in rows]
    sources = [_sources_of(row) for row in rows]
    passages = {source: _passages(*source) for both in sources for source in both}
    # Only of these there is a choice: the others are premises as a whole.
    long_passages = {source: parts for source, parts in passages.items() if not _fits(parts, config.premise_words)}
    texts = [part for parts in long_passages.values() for passage in parts for part in passage]
    for row_sentences, both in zip(judged, sources, strict=True):
        texts += row_sentences if long_passages.keys() & both else []
    encodings = calls.encode(texts)

    def premise(sentence: str, source: Texts) -> str:
        if source in long_passages:
            return _nearest(sentence, long_passages[source], encodings, config.premise_words)
        return " ".join(part for passage in passages[source] for part in passage)

    return [
        [Premises(text, *(premise(text, source) for source in both)) for text in row_sentences]
        for row_sentences, both in zip(judged, sources, strict=True)
    ]


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


def _sources_of(row: Row) -> tuple[Texts, Texts]:
    """Return what the premises of a row are taken from: its references, and its context.

    The context counts in a summary, which is to follow from it, and in the place of references.
    """
    counts = row.context and (row.task == "summary" or not row.references)
    return (row.references, "text"), (tuple(passages_of(row.context)) if counts else (), row.task)


def _passages(texts: Sequence[str], task: str) -> list[Passage]:
    split = str.splitlines if task == "dialogue" else sentences
    return [parts for text in texts if (parts := [part for part in split(text) if part.strip()])]


def _fits(passages: Sequence[Passage], words: int) -> bool:
    """Tell whether there is no choice: one passage at most, which is short."""
    return len(passages) <= 1 and sum(len(split_words(part)) for parts in passages for part in parts) <= words
