"""What an NLI model says of the sentences of candidates, and the verdicts on them that can be believed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mars_score.explanation import Verdict
from mars_score.metrics.plus import PlusConfig
from mars_score.models.shipped_nli import calibration_of
from mars_score.premises import choose_premises
from mars_score.rows import Entailment, Judgement, Row

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.shipped_nli import Calibration


def judge(rows: Iterable[Row], config: PlusConfig, calls: ModelCalls) -> dict[Row, list[Judgement]]:
    """Judge the first sentences of each candidate that is not blank, by its references and by its context.

    Raises:
        ModelUnavailableError: a model cannot be loaded.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    premises = choose_premises(rows, config, calls)
    pairs = (pair for chosen in premises.values() for one in chosen for pair in one.pairs)
    entailed = calls.entails((premise, sentence) for premise, sentence in pairs if sentence not in premise)
    by_reference, by_context = calibration_of(calls.models.entailment_model)

    def say(premise: str, sentence: str, calibration: Calibration) -> Entailment | None:
        if premise and sentence in premise:  # word for word
            return Entailment(1.0, 0.0)
        return calibration.apply(entailed[premise, sentence]) if premise else None

    return {
        row: [
            Judgement(
                *one,
                say(one.reference, one.sentence, by_reference),
                say(one.context, one.sentence, by_context),
            )
            for one in chosen
        ]
        for row, chosen in premises.items()
    }


def verdict_on(one: Judgement, row: Row, model: object) -> Verdict | None:
    """Return the verdict on a sentence, if there is one that can be believed.

    It is "supported" or "contradicted" by the context or by a reference, where the probability is at least that
    from which such verdicts are right in eight of ten (:data:`mars_score.models.shipped_nli.SHIPPED`). There is
    none on questions, none on replies in a dialogue, and none where context and reference disagree.
    """
    if row.task == "dialogue" or one.sentence.rstrip("\"')\u201d\u2019").endswith(("?", "\uff1f")):
        return None
    by_reference, by_context = calibration_of(model)
    said = [
        Verdict(one.sentence, name, probability, premise)
        for premise, entailment, calibration in (
            (one.context_premise, one.by_context, by_context),
            (one.reference_premise, one.by_reference, by_reference),
        )
        if entailment is not None
        for name, probability, threshold in (
            ("supported", entailment.entailment, calibration.supported),
            ("contradicted", entailment.contradiction, calibration.contradicted),
        )
        if threshold is not None and probability >= threshold
    ]
    return said[0] if len({verdict.verdict for verdict in said}) == 1 else None
