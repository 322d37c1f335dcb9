"""Features: the model outputs of rows, each different text once; a term of weight 0 needs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import (
    CONTEXT_CUT,
    CONTRADICTED,
    FEW_DOCUMENTS,
    NOT_ENGLISH,
    REFERENCE_CUT,
    SENTENCES_CUT,
    TEXT_CUT,
    UNKNOWN,
    UNTAGGED,
)
from mars_score.metrics.paper import Idf, PaperConfig, Template, make_templates
from mars_score.metrics.plus import Features, PlusConfig, term_names
from mars_score.models.running import one_blas_thread
from mars_score.models.shipped_nli import SHIPPED
from mars_score.rows import AugmentedReference, Infill, Row
from mars_score.text import is_english, sentences, windows
from mars_score.verdicts import judge, verdict_on

if TYPE_CHECKING:
    from mars_score.infilling.jobs import FilledTemplate
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding
    from mars_score.models.tagger import Tagger

MIN_DOCUMENTS = 10  # different texts below which IDF says little
UNKNOWN_SHARE = 0.1  # of the tokens of a text; above it there is a notice
Pair = tuple[str, str]  # context and reference


# plus and fast


def plus_features(
    rows: Sequence[Row], config: PlusConfig, calls: ModelCalls
) -> list[tuple[Features, frozenset[str]]]:
    """Call the models for rows of `plus` or `fast`, each different text once.

    Returns:
        The features of each row, and the kinds of notices (:mod:`mars_score.errors`) that concern it.

    Raises:
        ModelUnavailableError: a model cannot be loaded, or has no token vectors.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    outputs = _Outputs([_Needs.of(row, config, calls) for row in rows], config, calls)
    with one_blas_thread():
        return [(outputs.features(needs), outputs.notices(needs)) for needs in outputs.rows]


class _Needs(NamedTuple):
    """A row and what its features need."""

    row: Row
    terms: set[str]
    reads_language: bool  # whether the NLI model knows the row's language

    @classmethod
    def of(cls, row: Row, config: PlusConfig, calls: ModelCalls) -> _Needs:
        # Shipped NLI models know English alone; data records are not used to find the language.
        texts = [*row.references, *([row.context] if row.task != "data" else [])]
        reads_language = calls.models.entailment_model not in SHIPPED or is_english(" ".join(texts))
        return cls(row, term_names(row, config, reads_language=reads_language), reads_language)

    @property
    def texts(self) -> list[str]:
        """Return the texts that are compared by their tokens."""
        return [self.row.candidate, *self.row.references, *self.row.samples] if self.row.candidate else []


class _Outputs:
    """The model outputs of some rows, and the features that follow."""

    def __init__(self, rows: Sequence[_Needs], config: PlusConfig, calls: ModelCalls) -> None:
        self.rows, self._config, self._model = rows, config, calls.models.entailment_model
        self._encodings = calls.encode([text for needs in rows for text in needs.texts], tokens=True)
        contexts = [needs.row.context for needs in rows if "context" in needs.terms]
        self._windows = calls.encode(
            part for context in contexts for part in windows(context, config.window_words)
        )
        pairs = [(needs.row.context, needs.row.candidate) for needs in rows if "likelihood" in needs.terms]
        self._log_p = calls.log_probability(pairs, config.max_context_tokens)
        judged = [needs.row for needs in rows if needs.terms & {"support", "contradiction"}]
        self._judgements = judge(judged, config, calls)
        # Vectors are stacked and converted to float32 once for all rows.
        self._context_vectors = cache(self._stack_windows)
        self._tokens = cache(lambda text: widened_tokens(self._encodings[text]))

    def features(self, needs: _Needs) -> Features:
        """Return the features of a row; none for a blank candidate."""
        row, terms = needs.row, needs.terms
        if not row.candidate:
            return Features(row)
        has_context = "context" in terms
        near = [self._context_cosine(text, row.context) for text in row.references] if has_context else []
        return Features(
            row,
            recalls=[self._recall(row, text) for text in row.references],
            sample_recalls=[self._recall(row, text) for text in row.samples] if "samples" in terms else [],
            reference_cosines=[self._cosine(row.candidate, text) for text in row.references]
            if "sentences" in terms
            else [],
            context_cosine=self._context_cosine(row.candidate, row.context) if has_context else None,
            reference_context_cosine=sum(near) / len(near) if near else 0.0,
            log_p=self._log_p[row.context, row.candidate] if "likelihood" in terms else None,
            judgements=self._judgements.get(row, ()),
        )

    def notices(self, needs: _Needs) -> frozenset[str]:
        """Return the kinds of notices that concern a row."""
        row, config = needs.row, self._config
        encodings = [self._encodings[text] for text in needs.texts]
        log_p = self._log_p.get((row.context, row.candidate)) if "likelihood" in needs.terms else None
        judgements = self._judgements.get(row, ())
        verdicts = [verdict_on(one, row, self._model) for one in judgements]
        flags = {
            CONTEXT_CUT: log_p is not None and log_p.truncated,
            TEXT_CUT: any(one.truncated for one in encodings),
            UNKNOWN: any(one.unknown > UNKNOWN_SHARE for one in encodings[: 1 + len(row.references)]),
            NOT_ENGLISH: term_names(row, config) != term_names(row, config, reads_language=needs.reads_language),
            SENTENCES_CUT: len(judgements) == config.max_sentences < len(sentences(row.candidate)),
            CONTRADICTED: any(one and one.verdict == "contradicted" for one in verdicts),
        }
        return frozenset(notice for notice, flag in flags.items() if flag)

    def _recall(self, row: Row, text: str) -> float:
        # Equal texts have recall 1, even if the tokenizer drops all of them.
        return 1.0 if text == row.candidate else token_recall(self._tokens(row.candidate), self._tokens(text))

    def _cosine(self, text: str, other: str) -> float:
        return float(self._encodings[text].vector @ self._encodings[other].vector)

    def _context_cosine(self, text: str, context: str) -> float:
        return float((self._context_vectors(context) @ self._encodings[text].vector).max())

    def _stack_windows(self, context: str) -> NDArray[Any]:
        return np.stack([self._windows[part].vector for part in windows(context, self._config.window_words)])


def token_recall(candidate: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the mean over the reference's tokens of their largest cosine with a token of the candidate.

    The recall of BERTScore (Zhang et al. 2020, https://openreview.net/forum?id=SkeHuCVFDr); 0 where one of them
    has no token.

    Args:
        candidate: unit vectors, (tokens, dimensions); zeros for an unknown token, which matches nothing.
        reference: likewise.
    """
    if not (len(candidate) and len(reference)):
        return 0.0
    return float((reference @ candidate.T).max(axis=1).mean())


def widened_tokens(encoding: Encoding) -> NDArray[Any]:
    """Return the token vectors of an encoding in float32 or better."""
    assert encoding.tokens is not None, "encoded without token vectors"
    return encoding.tokens.astype(np.promote_types(encoding.tokens.dtype, np.float32), copy=False)


# paper


def augment_references(
    pairs: Iterable[Pair],
    idf: Idf | None,
    corpus: Iterable[str],
    config: PaperConfig,
    calls: ModelCalls,
    tagger: Tagger,
) -> dict[Pair, AugmentedReference]:
    """Mask and infill each different (context, reference), sections 2.1 and 2.2.

    Args:
        pairs: contexts, which may be blank, and prepared references.
        idf: counted already; None: over the corpus of the configuration, or over ``corpus``.
        corpus: all references of the call.
        config: constants.
        calls: the language model.
        tagger: of the language.
    """
    different = list(dict.fromkeys(pairs))
    if config.max_mask_ratio == 0 or not different:
        return {pair: AugmentedReference(pair[1]) for pair in different}
    calls.runtime.report("mask", 0, len(different))
    if idf is None:
        idf = Idf.count(tagger.lower_words(config.idf_corpus or corpus).values())
    templates = _mask(different, idf, config, tagger)
    calls.runtime.report("mask", len(different), len(different))
    blanked = [(context, one) for (context, _), masked in templates.items() for _, one in masked if one.blanks]
    filled = calls.infill(blanked, config)
    flags = {UNTAGGED: not tagger.tags, FEW_DOCUMENTS: idf.documents < MIN_DOCUMENTS}
    notices = frozenset(notice for notice, flag in flags.items() if flag)
    return {pair: _join_infills(*pair, masked, filled, notices) for pair, masked in templates.items()}


def _mask(
    pairs: Sequence[Pair], idf: Idf, config: PaperConfig, tagger: Tagger
) -> dict[Pair, list[tuple[float, Template]]]:
    """Make the templates of each (context, reference), section 2.1."""
    words = tagger.tag(reference for _, reference in pairs)
    context_words = tagger.lower_words(context for context, _ in pairs)
    return {
        (context, reference): make_templates(reference, words[reference], context_words[context], idf, config)
        for context, reference in pairs
    }


def _join_infills(
    context: str,
    reference: str,
    templates: Sequence[tuple[float, Template]],
    filled: Mapping[tuple[str, Template], FilledTemplate],
    notices: frozenset[str],
) -> AugmentedReference:
    """Join a reference with its infills; a template with nothing masked yields the reference itself."""
    infilled = [filled.get((context, template)) for _, template in templates]
    infills = tuple(
        Infill(ratio, str(template), one.text if one else reference)
        for (ratio, template), one in zip(templates, infilled, strict=True)
    )
    if any(one and one.context_cut for one in infilled):
        notices |= {CONTEXT_CUT}
    if any(one and one.reference_cut for one in infilled):
        notices |= {REFERENCE_CUT}
    return AugmentedReference(reference, infills, notices)


def paper_similarities(
    rows: Sequence[tuple[str, Sequence[AugmentedReference]]], calls: ModelCalls
) -> list[tuple[list[tuple[float, ...]], frozenset[str]]]:
    """Compare each candidate with the texts of each of its references (section 2.3).

    Args:
        rows: candidates and augmented references; a blank candidate has no references.
        calls: the encoder.

    Returns:
        Per row the cosines with each reference's texts, and the kinds of notices that concern it.
    """
    encodings = calls.encode(
        text for candidate, references in rows for one in references for text in (candidate, *one.texts)
    )

    def cosines(candidate: str, texts: Iterable[str]) -> tuple[float, ...]:
        return tuple(float(encodings[candidate].vector @ encodings[text].vector) for text in texts)

    def notices(candidate: str, references: Sequence[AugmentedReference]) -> frozenset[str]:
        human = [encodings[text] for one in references for text in (candidate, one.reference)]
        every = [encodings[text] for one in references for text in (candidate, *one.texts)]
        flags = {
            TEXT_CUT: any(one.truncated for one in every),
            UNKNOWN: any(one.unknown > UNKNOWN_SHARE for one in human),
        }
        return frozenset(notice for notice, flag in flags.items() if flag)

    return [
        ([cosines(candidate, one.texts) for one in references], notices(candidate, references))
        for candidate, references in rows
    ]
