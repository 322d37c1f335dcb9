"""Score by `plus` and `fast`: call the models for the features of rows, and apply the formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import Notice, raised
from mars_score.metrics.plus import Features, PlusConfig, plus, term_names, token_recall
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
from mars_score.variants.variant import Variant, encoding_notices

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

CHUNK_SIZE = 512  # rows that are scored together, which limits the memory for token vectors


class PlusVariant(Variant):
    """The weighted sum of terms in :mod:`mars_score.metrics.plus`."""

    needs_references: ClassVar[bool] = False
    matches_tokens: ClassVar[bool] = True
    config: PlusConfig

    @property
    def takes_samples(self) -> bool:
        """Tell whether samples change the score."""
        return self.config.sample_weight > 0

    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows, with the arguments and errors of :meth:`Variant.score`."""
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
        given = [outputs.encodings[text] for text in (row.candidate, *row.references)]
        samples = [outputs.encodings[text] for text in row.samples]
        return RowScore(
            weighted_sum(terms),
            terms,
            tuple(references),
            tuple(map(SampleScore, row.samples, features.sample_recalls)),
            conclusion.notices | raised({Notice.CONTEXT_CUT: is_cut}) | encoding_notices(given, samples),
            Aspects.of(terms, features.log_p),
            conclusion.contradicted,
            conclusion.unsupported,
            conclusion.unchecked,
        )


class Plan(NamedTuple):
    """The inputs of the models for a row.

    Attributes:
        row: the prepared row.
        terms: names of its terms, except those by the NLI model.
        windows: windows of the context, if it has a term.
    """

    row: Row
    terms: frozenset[str]
    windows: Sequence[str]

    @property
    def texts(self) -> list[str]:
        """Return the texts that are compared by their tokens: the candidate first, none for a blank one."""
        return [self.row.candidate, *self.row.references, *self.row.samples] if self.row.candidate else []


class Outputs(NamedTuple):
    """The model outputs for some rows.

    Attributes:
        encodings: encodings of candidates, references and samples.
        recalls: token recall of references and samples, by (candidate, text).
        windows: vectors of the windows of each context, (windows, dimensions).
        log_p: log probabilities by (prompt, candidate).
        conclusions: the result of the NLI model for each row.
        support_reliability: factor of the weight of support.
    """

    encodings: Mapping[str, Encoding]
    recalls: Mapping[tuple[str, str], float]
    windows: Mapping[str, NDArray[np.floating]]
    log_p: Mapping[tuple[str, str], LogProbability]
    conclusions: Mapping[Row, Conclusion]
    support_reliability: float


def plan_row(row: Row, config: PlusConfig) -> Plan:
    """Return the inputs of the models for a prepared row."""
    terms = term_names(row, config)
    return Plan(row, terms, windows(row.context, config.window_words) if "context" in terms else ())


def ask_models(plans: Sequence[Plan], config: PlusConfig, calls: ModelCalls) -> Outputs:
    """Call the models for some rows, with each distinct text once.

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


def make_features(plan: Plan, outputs: Outputs) -> Features:
    """Return the features of a row whose candidate is not blank."""
    row, terms, vectors = plan.row, plan.terms, outputs.encodings
    candidate, conclusion = vectors[row.candidate].vector, outputs.conclusions[row]
    cosines = (
        {text: float((outputs.windows[row.context] @ vectors[text].vector).max()) for text in plan.texts}
        if "context" in terms
        else {}
    )
    recalls = {text: outputs.recalls[row.candidate, text] for text in plan.texts[1:]}
    return Features(
        row,
        terms,
        recalls=[recalls[text] for text in row.references],
        sample_recalls=[recalls[text] for text in row.samples] if "samples" in terms else [],
        reference_cosines=[float(candidate @ vectors[text].vector) for text in row.references]
        if "sentences" in terms
        else [],
        context_cosine=cosines.get(row.candidate),
        reference_context_cosine=sum(cosines[text] for text in row.references) / len(row.references)
        if cosines and row.references
        else 0.0,
        log_p=outputs.log_p[row.prompt, row.candidate] if "likelihood" in terms else None,
        support=conclusion.support,
        support_reliability=outputs.support_reliability,
        contradicted_share=conclusion.contradicted_share,
    )


def token_recalls(plans: Sequence[Plan], encodings: Mapping[str, Encoding]) -> dict[tuple[str, str], float]:
    """Compute the token recall of references and samples, by (candidate, text)."""
    tokens = {text: widened_tokens(encoding) for text, encoding in encodings.items()}
    with one_blas_thread():
        return {
            # Equal texts have recall 1, even if the tokenizer drops all of their characters.
            (candidate, text): 1.0 if text == candidate else token_recall(tokens[candidate], tokens[text])
            for candidate, *texts in (plan.texts for plan in plans if plan.texts)
            for text in texts
        }


def widened_tokens(encoding: Encoding) -> NDArray[np.floating]:
    """Return the token vectors of an encoding in float32 or a wider type, (tokens, dimensions)."""
    assert encoding.tokens is not None, "encoded without token vectors"
    return encoding.tokens.astype(np.promote_types(encoding.tokens.dtype, np.float32), copy=False)
