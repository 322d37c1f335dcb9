"""`plus` and `fast`: what their terms ask of the models, and the scores and notices that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import Notice
from mars_score.language import is_english
from mars_score.metrics.plus import JUDGED_TERMS, Features, PlusConfig, plus, term_names
from mars_score.models.running import one_blas_thread
from mars_score.rows import (
    Aspects,
    AugmentedReference,
    Judgement,
    LogProbability,
    ReferenceScore,
    Row,
    RowScore,
    SampleScore,
    weighted_sum,
)
from mars_score.text import windows
from mars_score.variants.judgements.nli_judge import (
    SHIPPED,
    Reliability,
    believed_terms,
    is_checked,
    is_close,
    judge,
    judged_sentences,
    reliability_of,
    unsupported_in,
    verdicts_on,
)
from mars_score.variants.variant import Variant, encoding_notices, raised

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

CHUNK_SIZE = 512  # rows scored together; bounds the memory of token vectors


class PlusVariant(Variant):
    """The weighted sum of terms in :mod:`mars_score.metrics.plus`."""

    matches_tokens: ClassVar[bool] = True
    config: PlusConfig

    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows; arguments and errors as for :meth:`Variant.score`."""
        scores = []
        for start in range(0, len(rows), CHUNK_SIZE):
            plans = [plan_row(row, self.config, calls) for row in rows[start : start + CHUNK_SIZE]]
            outputs = ask_models(plans, self.config, calls)
            with one_blas_thread():
                scores += [self._row_score(plan, outputs) for plan in plans]
        return scores

    def _row_score(self, plan: Plan, outputs: Outputs) -> RowScore:
        row = plan.row
        if not row.candidate:
            return RowScore(0.0)
        features = make_features(plan, outputs)
        terms = plus(features, self.config)
        references = [
            ReferenceScore(AugmentedReference(text), (recall,), recall)
            for text, recall in zip(row.references, features.recalls, strict=True)
        ]
        return RowScore(
            weighted_sum(terms),
            terms,
            tuple(references),
            tuple(map(SampleScore, row.samples, features.sample_recalls)),
            self._notices(plan, features, [outputs.encodings[text] for text in plan.texts]),
            Aspects.of(terms, features.log_p),
            tuple(features.verdicts),
            tuple(
                unsupported_in(features.judgements)
                if "support" in plan.terms and plan.reliability.by_context
                else ()
            ),
        )

    def _notices(self, plan: Plan, features: Features, encodings: Sequence[Encoding]) -> frozenset[Notice]:
        row, most = plan.row, self.config.max_sentences
        flags = {
            Notice.CONTEXT_CUT: features.log_p is not None and features.log_p.truncated,
            Notice.NOT_ENGLISH: plan.is_unread,
            Notice.SENTENCES_CUT: len(features.judgements) == most < len(judged_sentences(row.candidate)),
            Notice.CONTRADICTED: bool(features.verdicts),
        }
        return raised(flags) | encoding_notices(encodings, 1 + len(row.references))


class Plan(NamedTuple):
    """What the score of a row needs.

    Attributes:
        row: prepared.
        terms: names of its terms.
        reliability: of the NLI model.
        is_unread: whether terms are left out as the NLI model does not know the row's language.
        windows: of the context, where that is a term.
    """

    row: Row
    terms: frozenset[str]
    reliability: Reliability
    is_unread: bool
    windows: Sequence[str]

    @property
    def texts(self) -> list[str]:
        """Return the texts that are compared by their tokens."""
        return [self.row.candidate, *self.row.references, *self.row.samples] if self.row.candidate else []


class Outputs(NamedTuple):
    """The model outputs of some rows, each different text once.

    Attributes:
        encodings: of candidates, references and samples.
        recalls: by candidate and text the token recall of the text.
        windows: of each context the vectors of its windows, (windows, dimensions).
        log_p: of (context, candidate).
        judgements: of each row that is judged.
    """

    encodings: Mapping[str, Encoding]
    recalls: Mapping[tuple[str, str], float]
    windows: Mapping[str, NDArray[Any]]
    log_p: Mapping[tuple[str, str], LogProbability]
    judgements: Mapping[Row, Sequence[Judgement]]


def plan_row(row: Row, config: PlusConfig, calls: ModelCalls) -> Plan:
    """Decide what the score of a row needs."""
    model = calls.models.entailment_model
    reliability, is_unread = reliability_of(model), False
    terms = believed_terms(row, term_names(row, config), reliability)
    if not terms.isdisjoint(JUDGED_TERMS) and model in SHIPPED:
        # Shipped NLI models know English alone; data records are not used to find the language.
        text = " ".join([*row.references, *([row.context] if row.task != "data" else [])])
        if not is_english(text):
            terms -= JUDGED_TERMS
            # A text without letters, such as a number, is of no language; that needs no notice.
            is_unread = any(map(str.isalpha, text))
    parts = windows(row.context, config.window_words) if "context" in terms else ()
    return Plan(row, terms, reliability, is_unread, parts)


def ask_models(plans: Sequence[Plan], config: PlusConfig, calls: ModelCalls) -> Outputs:
    """Call the models for some rows, each different text once.

    Raises:
        ModelUnavailableError: a model cannot be loaded, or has no token vectors.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    encodings = calls.encode((text for plan in plans for text in plan.texts), tokens=True)
    by_context = {plan.row.context: plan.windows for plan in plans if plan.windows}
    vectors = calls.encode(part for parts in by_context.values() for part in parts)
    likely = [(plan.row.context, plan.row.candidate) for plan in plans if "likelihood" in plan.terms]
    log_p = calls.log_probability(likely, config.max_context_tokens)
    recalls = token_recalls(plans, encodings)
    judged = {}
    for plan in (plan for plan in plans if not plan.terms.isdisjoint(JUDGED_TERMS)):
        near = "contradiction" in plan.terms and is_close(plan.row, recalls)
        is_summary = plan.row.task == "summary"
        if near or "support" in plan.terms or (is_summary and plan.reliability.by_context):
            judged[plan.row] = near
    return Outputs(
        encodings,
        recalls,
        {context: np.stack([vectors[part].vector for part in parts]) for context, parts in by_context.items()},
        log_p,
        judge(judged, config, calls),
    )


def features_of(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[Features]:
    """Compute the features of prepared rows, none of which has a blank candidate."""
    plans = [plan_row(row, config, calls) for row in rows]
    outputs = ask_models(plans, config, calls)
    with one_blas_thread():
        return [make_features(plan, outputs) for plan in plans]


def make_features(plan: Plan, outputs: Outputs) -> Features:
    """Take the features of a row, whose candidate is not blank, from the model outputs."""
    row, terms, vectors = plan.row, plan.terms, outputs.encodings
    judgements = outputs.judgements.get(row, ())
    if not is_checked(row, judgements, plan.reliability):
        terms -= {"contradiction"}

    def context_cosine(text: str) -> float:
        return float((outputs.windows[row.context] @ vectors[text].vector).max())

    has_context = "context" in terms
    near = [context_cosine(text) for text in row.references] if has_context else []
    candidate = vectors[row.candidate].vector
    return Features(
        row,
        terms,
        recalls=[outputs.recalls[row.candidate, text] for text in row.references],
        sample_recalls=[outputs.recalls[row.candidate, text] for text in row.samples]
        if "samples" in terms
        else [],
        reference_cosines=[float(candidate @ vectors[text].vector) for text in row.references]
        if "sentences" in terms
        else [],
        context_cosine=context_cosine(row.candidate) if has_context else None,
        reference_context_cosine=sum(near) / len(near) if near else 0.0,
        log_p=outputs.log_p[row.context, row.candidate] if "likelihood" in terms else None,
        judgements=judgements,
        verdicts=verdicts_on(row.task, judgements, plan.reliability) if "contradiction" in terms else (),
        belief=plan.reliability.support,
    )


def token_recalls(plans: Sequence[Plan], encodings: Mapping[str, Encoding]) -> dict[tuple[str, str], float]:
    """Compute by candidate and text the token recall of the references and samples of some rows."""
    tokens = {text: widened_tokens(encoding) for text, encoding in encodings.items()}
    with one_blas_thread():
        return {
            # Equal texts have recall 1, even if the tokenizer drops all of them.
            (candidate, text): 1.0 if text == candidate else token_recall(tokens[candidate], tokens[text])
            for candidate, *texts in (plan.texts for plan in plans if plan.texts)
            for text in texts
        }


def token_recall(candidate: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the mean over the reference's tokens of their largest cosine with a token of the candidate.

    The recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr); 0 where one of them
    has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions); zeros for an unknown token, which matches nothing.
        reference: unit vectors, (tokens, dimensions).
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())


def widened_tokens(encoding: Encoding) -> NDArray[Any]:
    """Return the token vectors of an encoding in float32 or better."""
    assert encoding.tokens is not None, "encoded without token vectors"
    return encoding.tokens.astype(np.promote_types(encoding.tokens.dtype, np.float32), copy=False)
