"""Features: what the models say of rows, each different text once; a term of weight 0 needs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mars_score import errors
from mars_score.metrics.paper import Idf, PaperConfig, Template, make_templates
from mars_score.metrics.plus import Features, PlusConfig, contradiction, term_names
from mars_score.models import mini_nli
from mars_score.rows import AugmentedReference, Infill, Row
from mars_score.text import is_english, nearest_passage, plain_words, sentences, windows, word_overlap

if TYPE_CHECKING:
    from mars_score.models.encoder import Encoding
    from mars_score.models.model_calls import ModelCalls
    from mars_score.models.tagger import Tagger

LIKELY = 0.5  # probability above which a sentence is said to be contradicted
UNKNOWN_SHARE = 0.1  # of the tokens of a text; above it there is a notice
Pair = tuple[str, str]  # context and reference


class PlusRow(NamedTuple):
    """The features of a row, and the kinds of notices that concern it."""

    features: Features
    notices: frozenset[str]


class Premises(NamedTuple):
    """A sentence of a candidate, and the passages that the NLI model compares it with: none, one or two."""

    sentence: str
    passages: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return (premise, hypothesis) for each passage."""
        return [(passage, self.sentence) for passage in self.passages]


# plus and fast


def plus_features(rows: Sequence[Row], config: PlusConfig, calls: ModelCalls) -> list[PlusRow]:
    """Call the models for rows of `plus` or `fast`.

    Raises:
        ModelUnavailableError: a model cannot be loaded, or has no token vectors.
        UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
    """
    reads_all = calls.models.entailment_model != mini_nli.NAME  # mini-nli knows English alone
    reads_language = [reads_all or _is_english(row) for row in rows]
    names = [
        term_names(row, config, reads_language=known) for row, known in zip(rows, reads_language, strict=True)
    ]
    named = list(zip(rows, names, strict=True))
    texts = [text for row in rows if row.candidate for text in (row.candidate, *row.references, *row.samples)]
    encodings = calls.encode(texts, tokens=True)
    parts = [part for row, terms in named if "context" in terms for part in windows(row.context, config.window_words)]
    window_encodings = calls.encode(parts)
    pairs = [(row.context, row.candidate) for row, terms in named if "likelihood" in terms]
    log_p = calls.log_probability(pairs, config.max_context_tokens)
    premises = [choose_premises(row, config) if "contradiction" in terms else [] for row, terms in named]
    contradictions = contradiction_probabilities([one for row in premises for one in row], config, calls)
    tokens = cache(lambda text: _widened(encodings[text]))

    @cache
    def context_vectors(context: str) -> NDArray[Any]:
        return np.stack([window_encodings[part].vector for part in windows(context, config.window_words)])

    def context_cosine(text: str, context: str) -> float:
        return float((context_vectors(context) @ encodings[text].vector).max())

    def recall(row: Row, text: str) -> float:
        # A text is itself even where the tokenizer leaves no token of it.
        return 1.0 if text == row.candidate else token_recall(tokens(row.candidate), tokens(text))

    found = []
    for row, terms, known, chosen in zip(rows, names, reads_language, premises, strict=True):
        if not row.candidate:
            found.append(PlusRow(Features(row), frozenset()))
            continue
        own, references = encodings[row.candidate].vector, row.references
        near = [context_cosine(text, row.context) for text in references] if "context" in terms else []
        features = Features(
            row,
            recalls=[recall(row, text) for text in references],
            sample_recalls=[recall(row, text) for text in row.samples] if "samples" in terms else [],
            reference_cosines=[float(own @ encodings[text].vector) for text in references] if "sentences" in terms else [],
            context_cosine=context_cosine(row.candidate, row.context) if "context" in terms else None,
            reference_context_cosine=sum(near) / len(near) if near else 0.0,
            log_p=log_p[row.context, row.candidate] if "likelihood" in terms else None,
            contradictions=[contradictions[one] for one in chosen] if "contradiction" in terms else None,
        )
        encoded = [encodings[text] for text in (row.candidate, *references, *row.samples)]
        long_candidate = "contradiction" in terms and len(sentences(row.candidate)) > config.max_sentences
        contradicted = any(contradictions[one] > LIKELY for one in chosen)
        flags = {
            errors.CONTEXT_CUT: features.log_p is not None and features.log_p.truncated,
            errors.TEXT_CUT: any(one.truncated for one in encoded),
            errors.UNKNOWN: any(one.unknown > UNKNOWN_SHARE for one in encoded[: 1 + len(references)]),
            errors.NOT_ENGLISH: config.contradiction_penalty > 0 and not known,
            errors.SENTENCES_CUT: long_candidate,
            errors.CONTRADICTED: contradicted,
        }
        found.append(PlusRow(features, frozenset(notice for notice, flag in flags.items() if flag)))
    return found


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


def _widened(encoding: Encoding) -> NDArray[Any]:
    """Return token vectors in float32 or better."""
    assert encoding.tokens is not None, "encoded without token vectors"
    return encoding.tokens.astype(np.promote_types(encoding.tokens.dtype, np.float32), copy=False)


def _is_english(row: Row) -> bool:
    """Tell whether the references and the context of a row may be English; a record is of no language."""
    return is_english(" ".join([*row.references, *([row.context] if row.task != "data" else [])]))


def choose_premises(row: Row, config: PlusConfig) -> list[Premises]:
    """Choose for each sentence of a candidate a passage of the nearest reference, and one of the context."""
    words = {reference: frozenset(plain_words(reference)) for reference in row.references}
    chosen = []
    for sentence in sentences(row.candidate)[: config.max_sentences] or [row.candidate]:
        own = frozenset(plain_words(sentence))
        nearest = max(words, key=lambda text: word_overlap(own, words[text]), default="")
        texts = [text for text in (nearest, row.context) if text]
        passages = tuple(nearest_passage(sentence, text, config.premise_words) for text in texts)
        chosen.append(Premises(sentence, passages))
    return chosen


def contradiction_probabilities(
    items: Iterable[Premises], config: PlusConfig, calls: ModelCalls
) -> dict[Premises, float]:
    """Compute :func:`mars_score.metrics.plus.contradiction` of each different sentence with its premises.

    The second premise is classified only where the first hardly fails to contradict the sentence.
    """
    verdicts: dict[Premises, list[tuple[float, float]]] = {item: [] for item in items}
    for number in range(2):
        open_items = [
            item
            for item, known in verdicts.items()
            if number < len(item.passages) and all(contradicts >= config.min_contradiction for _, contradicts in known)
        ]
        entailed = calls.entails([item.pairs[number] for item in open_items])
        for item in open_items:
            verdicts[item].append(entailed[item.pairs[number]])
    return {item: contradiction(known, config) for item, known in verdicts.items()}


# paper


def augment_references(
    pairs: Iterable[Pair], corpus: Iterable[str], config: PaperConfig, calls: ModelCalls, tagger: Tagger, idf: Idf | None
) -> dict[Pair, AugmentedReference]:
    """Mask and infill each different (context, reference), sections 2.1 and 2.2.

    Args:
        pairs: contexts, which may be blank, and prepared references.
        corpus: other references over which IDF is counted, beside those of the pairs.
        config: constants.
        calls: the language model.
        tagger: of the language.
        idf: counted already; None: over the corpus of the configuration, or over the references.
    """
    different = list(dict.fromkeys(pairs))
    if config.max_mask_ratio == 0 or not different:
        return {pair: AugmentedReference(pair[1]) for pair in different}
    report = calls.runtime.report
    report("analyse", 0, len(different))
    words = tagger.tag(reference for _, reference in different)
    if idf is None:
        texts = dict.fromkeys([*(reference for _, reference in different), *corpus])
        idf = Idf.count(tagger.lower_words(config.idf_corpus or texts).values())
    context_words = tagger.lower_words(context for context, _ in different)
    templates = {
        (context, reference): make_templates(reference, words[reference], context_words[context], idf, config)
        for context, reference in different
    }
    report("analyse", len(different), len(different))
    blanked = [(pair[0], template) for pair, masked in templates.items() for _, template in masked if template.blanks]
    filled = calls.infill(blanked, config)

    def join(pair: Pair, masked: Sequence[tuple[float, Template]]) -> AugmentedReference:
        context, reference = pair
        infilled = [filled.get((context, template)) for _, template in masked]
        infills = tuple(
            Infill(ratio, str(template), one.text if one else reference)  # nothing is masked: the reference itself
            for (ratio, template), one in zip(masked, infilled, strict=True)
        )
        flags = {
            errors.CONTEXT_CUT: any(one.context_cut for one in infilled if one),
            errors.REFERENCE_CUT: any(one.reference_cut for one in infilled if one),
            errors.UNTAGGED: not tagger.tags,
        }
        return AugmentedReference(reference, infills, frozenset(notice for notice, flag in flags.items() if flag))

    return {pair: join(pair, masked) for pair, masked in templates.items()}


def paper_similarities(
    rows: Sequence[tuple[str, Sequence[AugmentedReference]]], calls: ModelCalls
) -> list[tuple[list[tuple[float, ...]], frozenset[str]]]:
    """Return the cosines of each candidate with the texts of each of its references (section 2.3), and notices."""
    texts = [text for candidate, references in rows for one in references for text in (candidate, *one.texts)]
    encodings = calls.encode(texts)

    def cosines(candidate: str, texts: Iterable[str]) -> tuple[float, ...]:
        return tuple(float(encodings[candidate].vector @ encodings[text].vector) for text in texts)

    found = []
    for candidate, references in rows:
        encoded = [encodings[text] for one in references for text in (candidate, *one.texts)]
        compared = [encodings[text] for one in references for text in (candidate, one.reference)]
        flags = {
            errors.TEXT_CUT: any(one.truncated for one in encoded),
            errors.UNKNOWN: any(one.unknown > UNKNOWN_SHARE for one in compared),
        }
        notices = frozenset(notice for notice, flag in flags.items() if flag)
        found.append(([cosines(candidate, one.texts) for one in references], notices))
    return found
