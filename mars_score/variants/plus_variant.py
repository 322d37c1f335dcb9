"""`plus` and `fast`: what their terms ask of the models, and the scores and notices that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import Notice
from mars_score.metrics.plus import Features, PlusConfig, plus, term_names
from mars_score.metrics.references import token_recall
from mars_score.models.running import one_blas_thread
from mars_score.rows import (
    Aspects,
    AugmentedReference,
    LogProbability,
    ReferenceScore,
    Row,
    RowScore,
    SampleScore,
    Unchecked,
    weighted_sum,
)
from mars_score.text import windows
from mars_score.variants.judgements.nli_judge import Conclusion, NliJudge
from mars_score.variants.variant import Variant, encoding_notices, raised

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

CHUNK_SIZE = 512  # rows scored together; bounds the memory of token vectors


class PlusVariant(Variant):
    """The weighted sum of terms in :mod:`mars_score.metrics.plus`."""

    needs_references: ClassVar[bool] = False
    matches_tokens: ClassVar[bool] = True
    config: PlusConfig

    @property
    def takes_samples(self) -> bool:
        """Tell whether samples count."""
        return self.config.sample_weight > 0

    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows; arguments and errors as for :meth:`Variant.score`."""
        scores = []
        for start in range(0, len(rows), CHUNK_SIZE):
            plans = [plan_row(row, self.config) for row in rows[start : start + CHUNK_SIZE]]
            outputs = ask_models(plans, self.config, calls)
            with one_blas_thread():
                scores += [self._row_score(plan, outputs) for plan in plans]
        return scores

    def _row_score(self, plan: Plan, outputs: Outputs) -> RowScore:
        row = plan.row
        if not row.candidate:
            return RowScore(0.0, unchecked=Unchecked.BLANK)
        features = make_features(plan, outputs)
        terms = plus(features, self.config)
        references = [
            ReferenceScore(AugmentedReference(text), (recall,), recall)
            for text, recall in zip(row.references, features.recalls, strict=True)
        ]
        conclusion = outputs.conclusions[row]
        is_cut = features.log_p is not None and features.log_p.truncated
        encodings = [outputs.encodings[text] for text in plan.texts]
        return RowScore(
            weighted_sum(terms),
            terms,
            tuple(references),
            tuple(map(SampleScore, row.samples, features.sample_recalls)),
            conclusion.notices
            | raised({Notice.CONTEXT_CUT: is_cut})
            | encoding_notices(encodings, 1 + len(row.references)),
            Aspects.of(terms, features.log_p),
            conclusion.contradicted,
            conclusion.unsupported,
            conclusion.unchecked,
        )


class Plan(NamedTuple):
    """What the score of a row needs.

    Attributes:
        row: prepared.
        terms: names of its terms, but for those by the NLI model.
        windows: of the context, where that is a term.
    """

    row: Row
    terms: frozenset[str]
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
        log_p: of (prompt, candidate).
        conclusions: what follows for each row from the judgements of the NLI model.
        support_reliability: of that model.
    """

    encodings: Mapping[str, Encoding]
    recalls: Mapping[tuple[str, str], float]
    windows: Mapping[str, NDArray[Any]]
    log_p: Mapping[tuple[str, str], LogProbability]
    conclusions: Mapping[Row, Conclusion]
    support_reliability: float


def plan_row(row: Row, config: PlusConfig) -> Plan:
    """Decide what the score of a row needs."""
    terms = term_names(row, config)
    return Plan(row, terms, windows(row.context, config.window_words) if "context" in terms else ())


def ask_models(plans: Sequence[Plan], config: PlusConfig, calls: ModelCalls) -> Outputs:
    """Call the models for some rows, each different text once.

    Raises:
        ModelUnavailableError: a model cannot be loaded, or has no token vectors.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    encodings = calls.encode((text for plan in plans for text in plan.texts), tokens=True)
    by_context = {plan.row.context: plan.windows for plan in plans if plan.windows}
    vectors = calls.encode(part for parts in by_context.values() for part in parts)
    likely = [(plan.row.prompt, plan.row.candidate) for plan in plans if "likelihood" in plan.terms]
    log_p = calls.log_probability(likely, config.max_context_tokens)
    recalls = token_recalls(plans, encodings)
    judge = NliJudge(calls.models.entailment_model, config)
    questions = [judge.asks(plan.row, recalls) for plan in plans]
    return Outputs(
        encodings,
        recalls,
        {context: np.stack([vectors[part].vector for part in parts]) for context, parts in by_context.items()},
        log_p,
        judge.conclude(questions, judge.judge(questions, calls)),
        judge.reliability.support,
    )


def features_of(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[Features]:
    """Compute the features of prepared rows, none of which has a blank candidate."""
    plans = [plan_row(row, config) for row in rows]
    outputs = ask_models(plans, config, calls)
    with one_blas_thread():
        return [make_features(plan, outputs) for plan in plans]


def make_features(plan: Plan, outputs: Outputs) -> Features:
    """Take the features of a row, whose candidate is not blank, from the model outputs."""
    row, terms, vectors = plan.row, plan.terms, outputs.encodings

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
        log_p=outputs.log_p[row.prompt, row.candidate] if "likelihood" in terms else None,
        support=outputs.conclusions[row].support,
        support_reliability=outputs.support_reliability,
        contradicted_share=outputs.conclusions[row].contradicted_share,
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


def widened_tokens(encoding: Encoding) -> NDArray[Any]:
    """Return the token vectors of an encoding in float32 or better."""
    assert encoding.tokens is not None, "encoded without token vectors"
    return encoding.tokens.astype(np.promote_types(encoding.tokens.dtype, np.float32), copy=False)
