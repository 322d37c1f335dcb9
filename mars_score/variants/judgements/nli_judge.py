"""The rules for NLI models: which rows are judged, by which texts, and with which results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from mars_score.errors import Notice
from mars_score.language import ENGLISH, Tagger, may_be_english
from mars_score.metrics.plus import PlusConfig
from mars_score.presets import RELIABILITY, reliability_of
from mars_score.rows import Entailment, Judgement, Row, Unchecked, Verdict
from mars_score.text import passages_of
from mars_score.variants.judgements.conflicts import find_conflict
from mars_score.variants.judgements.facts import missing_facts
from mars_score.variants.judgements.premises import choose_premises
from mars_score.variants.judgements.quantities import in_notation_of
from mars_score.variants.judgements.spelling import corrected, leniently_corrected
from mars_score.variants.judgements.statements import (
    Kind,
    Statement,
    is_reordered,
    marks_of,
    plain,
    replaces_one_word,
    statement,
    statements_of,
    states,
)

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls

# Lowest token recall of a reference at which the candidate is judged by it. Below, the candidate says something
# else. That is no contradiction, though NLI models often take it for one (research/entailment/measure.md).
MIN_RECALL = 0.75
# A summary close to a reference has two premises, context and reference. If one contradicts a sentence, the other
# must give the class contradiction at least this probability.
MIN_SECOND_OPINION = 0.2
MIN_ACQUITTAL = 0.5  # probability of entailment at which one reference overrules another that contradicts


class Question(NamedTuple):
    """Decides by which texts a row is judged.

    Attributes:
        row: the prepared row.
        by_context: whether its sentences are judged by the context.
        by_reference: whether its sentences are judged by the references.
        unchecked: why it is not checked for contradictions, or "" if it is.
        notices: notices about the row.
    """

    row: Row
    by_context: bool = False
    by_reference: bool = False
    unchecked: str = ""
    notices: frozenset[Notice] = frozenset()


class Conclusion(NamedTuple):
    """The results for a row.

    Attributes:
        support: mean probability that the context entails a statement, with 0 for contradicted ones. None if the
            row was not judged.
        contradicted_share: share of contradicted sentences that lowers the score, or None if not checked.
        contradicted: contradicted sentences.
        unsupported: sentences of a summary that its context does not support. Some are contradicted, too.
        unchecked: why the row was not checked for contradictions, or "" if it was.
        notices: notices about the row.
    """

    support: float | None = None
    contradicted_share: float | None = None
    contradicted: tuple[Verdict, ...] = ()
    unsupported: tuple[Verdict, ...] = ()
    unchecked: str = ""
    notices: frozenset[Notice] = frozenset()


class NliJudge:
    """Judges the sentences of candidates by an NLI model.

    A summary is judged by its context, and also by its references if it is close to one. A text is judged by its
    references if it is close to one. Dialogue and data are not judged: there are many good replies, and structured
    data differ too much from text for an NLI model.

    Args:
        model: the setting ``entailment_model``.
        config: settings of the formula.
    """

    def __init__(self, model: object, config: PlusConfig) -> None:
        self._config = config
        self.reliability = reliability_of(model)
        self._is_used = config.used_models["entailment_model"]
        self._reads_english_only = isinstance(model, str) and model in RELIABILITY

    # Rows and premises

    def asks(self, row: Row, recalls: Mapping[tuple[str, str], float]) -> Question:
        """Decide by which texts a row is judged, given the token recall by (candidate, reference)."""
        known = self.reliability
        if reason := self._why_not(row):
            return Question(row, unchecked=reason)
        is_summary = row.task == "summary"
        if self._reads_english_only and not may_be_english(row):
            return Question(row, unchecked=Unchecked.NOT_ENGLISH, notices=frozenset({Notice.NOT_ENGLISH}))
        by_reference = known.by_reference and any(
            recalls[row.candidate, text] >= MIN_RECALL for text in row.references
        )
        supports = known.max_support > 0 or (known.support > 0 and self._config.support_weight > 0)
        by_context = is_summary and (by_reference or supports or known.by_context)
        unchecked = ""
        if not (by_reference or (is_summary and known.by_context)):
            unchecked = Unchecked.NOT_BY_CONTEXT if is_summary else Unchecked.FAR
        return Question(row, by_context, by_reference, unchecked)

    def _why_not(self, row: Row) -> str:
        """Return the reason why a row is not judged at all, or "" if it may be judged."""
        if not row.candidate:
            return Unchecked.BLANK
        if not self._is_used:
            return Unchecked.BY_SETTINGS
        if row.task not in ("summary", "text"):
            return Unchecked.DIALOGUE if row.task == "dialogue" else Unchecked.RECORD
        if row.task == "summary":
            return "" if row.context else Unchecked.NO_CONTEXT
        if not row.references:
            return Unchecked.NO_REFERENCE
        return "" if self.reliability.by_reference else Unchecked.BY_MODEL

    # Judgements

    def judge(self, questions: Sequence[Question], calls: ModelCalls) -> dict[Row, list[Judgement]]:
        """Judge the first statements of candidates: of summaries by the context, of texts by the references.

        Args:
            questions: the output of :meth:`asks` for each row.
            calls: the models.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
        """
        first = self._by(
            {one.row: tuple(passages_of(one.row.context)) for one in questions if one.by_context}, calls
        )
        second = self._by({one.row: one.row.references for one in questions if one.by_reference}, calls)
        self._ask_other_references(second, calls)
        for judgements in (first, second):
            self._read_leniently(judgements, calls)
        both = {
            row: [one._replace(by_reference=other) for one, other in zip(first[row], second[row], strict=True)]
            for row in first.keys() & second.keys()
        }
        return first | second | both

    def _by(self, sources: Mapping[Row, tuple[str, ...]], calls: ModelCalls) -> dict[Row, list[Judgement]]:
        """Judge the statements of each row by its texts."""
        asked = {
            row: [(one.sentence, texts) for one in self._first_sentences(row) if one.kind is Kind.STATEMENT]
            for row, texts in sources.items()
        }
        judgements = iter(self._ask([pair for pairs in asked.values() for pair in pairs], calls))
        return {row: list(islice(judgements, len(pairs))) for row, pairs in asked.items()}

    def _ask(self, asked: Sequence[tuple[str, tuple[str, ...]]], calls: ModelCalls) -> list[Judgement]:
        """Judge each sentence by a premise from its texts."""
        premises = choose_premises(asked, self._config.premise_words, calls.encode)
        pairs = [(sentence, premise) for (sentence, _), premise in zip(asked, premises, strict=True)]
        judgements = _read(pairs, calls)
        return [judgements[pair] for pair in pairs]

    def _first_sentences(self, row: Row) -> Sequence[Statement]:
        return statements_of(row.candidate)[: self._config.max_sentences]

    def _ask_other_references(self, judgements: dict[Row, list[Judgement]], calls: ModelCalls) -> None:
        """Judge contradicted sentences by each reference. One that entails a sentence overrules the others."""
        accused = [
            (row, index)
            for row, of_row in judgements.items()
            for index, one in enumerate(of_row)
            if len(row.references) > 1 and self._is_refuted(one)
        ]
        asked = [
            (judgements[row][index].sentence, (reference,))
            for row, index in accused
            for reference in row.references
        ]
        by_each = iter(self._ask(asked, calls))
        for row, index in accused:
            best = max(islice(by_each, len(row.references)), key=lambda one: one.entailment.entailment)
            if best.entailment.entailment >= MIN_ACQUITTAL:
                judgements[row][index] = best

    def _read_leniently(self, judgements: dict[Row, list[Judgement]], calls: ModelCalls) -> None:
        """Judge contradicted and unsupported sentences again without possible misspellings.

        The output in favour of the sentence counts.
        """
        doubted = [
            (row, number, one, text)
            for row, of_row in judgements.items()
            for number, one in enumerate(of_row)
            if self._is_refuted(one) or one.entailment.support < self.reliability.max_support
            if (text := leniently_corrected(one.sentence, one.premise)) != one.sentence
        ]
        read = _read([(text, one.premise) for _, _, one, text in doubted], calls)
        for row, number, one, text in doubted:
            best = one.entailment.at_best(read[text, one.premise].entailment)
            judgements[row][number] = one._replace(entailment=best)

    # Results

    def conclude(
        self, questions: Sequence[Question], judgements: Mapping[Row, Sequence[Judgement]]
    ) -> dict[Row, Conclusion]:
        """Return the results for each row, given the output of :meth:`judge`."""
        sentences = {one: self._checked_for_facts(one.row) for one in questions}
        asked = [(sentence.text, _sources(one.row)) for one, of_row in sentences.items() for sentence in of_row]
        missing = missing_facts(asked, Tagger(ENGLISH))
        return {
            one.row: self._conclude(
                one,
                judgements.get(one.row, ()),
                {sentence: words for sentence in of_row if (words := missing[sentence.text, _sources(one.row)])},
            )
            for one, of_row in sentences.items()
        }

    def _checked_for_facts(self, row: Row) -> Sequence[Statement]:
        """Return the sentences whose numbers and names are looked up, for summaries and data in English."""
        if row.task not in ("summary", "data") or not row.context or not may_be_english(row):
            return ()
        return [one for one in self._first_sentences(row) if one.kind in (Kind.STATEMENT, Kind.FRAGMENT)]

    def _conclude(
        self, question: Question, judgements: Sequence[Judgement], missing: Mapping[Statement, tuple[str, ...]]
    ) -> Conclusion:
        row, is_asked = question.row, question.by_context or question.by_reference
        stated = self._first_sentences(row)
        judged = dict(zip((one for one in stated if one.kind is Kind.STATEMENT), judgements, strict=False))
        contradicted = tuple(
            verdict for one in stated if (verdict := self._contradiction(one, judged.get(one), question))
        )
        denied = {verdict.number for verdict in contradicted}
        support = None
        if question.by_context and self.reliability.support > 0 and judged:
            support = fmean(
                0.0 if one.number in denied else judgement.entailment.support for one, judgement in judged.items()
            )
        unchecked = "" if contradicted else question.unchecked or ("" if judged else Unchecked.NOTHING_STATED)
        counted = [verdict for verdict in contradicted if row.task == "text" or self._halves(verdict)]
        flags = {
            Notice.SENTENCES_CUT: is_asked and len(stated) < len(statements_of(row.candidate)),
            Notice.CONTRADICTED: bool(contradicted),
            Notice.REFUSAL: is_asked and any(one.kind is Kind.REFUSAL for one in stated),
            Notice.FRAGMENT: is_asked and any(one.kind is Kind.FRAGMENT for one in stated),
        }
        return Conclusion(
            support,
            None if unchecked else len(counted) / max(1, len(stated)),
            contradicted,
            self._unsupported(judged if question.by_context else {}, missing),
            unchecked,
            question.notices | {notice for notice, flag in flags.items() if flag},
        )

    def _halves(self, verdict: Verdict) -> bool:
        """Tell whether a verdict may halve the score of a summary. Other verdicts lower its support only.

        Ratings of summaries with other verdicts do not differ from the rest (research/entailment/measure.md).
        """
        by_reference = verdict.source == "reference" and self.reliability.halves_summaries
        return verdict.probability is None or by_reference

    def _contradiction(self, one: Statement, judgement: Judgement | None, question: Question) -> Verdict | None:
        """Return the verdict on a sentence with a wrong number or negation, or that of the NLI model."""
        if one.kind in (Kind.QUESTION, Kind.REFUSAL):
            return None
        row = question.row
        sources = {"context": passages_of(row.context)} if question.by_context else {}
        if question.by_reference:
            sources["reference"] = list(row.references)
        for source, texts in sources.items():
            if conflict := find_conflict(one.text, texts):
                return Verdict(one.sentence, None, conflict.premise, source, (conflict.words,), one.number)
        return self._verdict(judgement, row.task, one.number) if judgement else None

    def _verdict(self, judgement: Judgement, task: str, number: int) -> Verdict | None:
        """Return the verdict of the NLI model on a contradicted sentence, by the premise with more probability."""
        asked = {"context" if task == "summary" else "reference": judgement}
        if judgement.by_reference:
            asked["reference"] = judgement.by_reference
        believed = {"context": self.reliability.by_context, "reference": self.reliability.by_reference}
        certain = [source for source, one in asked.items() if believed[source] and self._is_refuted(one)]
        if not certain or min(one.entailment.contradiction for one in asked.values()) < MIN_SECOND_OPINION:
            return None
        source = max(certain, key=lambda source: asked[source].entailment.refutation)
        decides = asked[source]
        read = decides.entailment
        return Verdict(judgement.sentence, read.refutation, decides.premise, source, read.words, number)

    def _is_refuted(self, judgement: Judgement) -> bool:
        known, refutation = self.reliability, judgement.entailment.refutation
        texts = judgement.sentence, judgement.premise
        return (
            refutation >= known.min_refutation
            or (refutation >= known.min_replaced and replaces_one_word(*texts))
            or (refutation >= known.min_reordered and is_reordered(*texts))
        )

    def _unsupported(
        self, judged: Mapping[Statement, Judgement], missing: Mapping[Statement, tuple[str, ...]]
    ) -> tuple[Verdict, ...]:
        """Return the sentences that the context does not entail, or that have facts missing in it."""
        found = {
            one: Verdict(one.sentence, None, "", "context", words, one.number, words)
            for one, words in missing.items()
        }
        for one, judgement in judged.items():
            read = judgement.entailment
            if read.support < self.reliability.max_support:
                absent, premise = missing.get(one, ()), judgement.premise
                words = tuple(dict.fromkeys((*absent, *read.words)))
                found[one] = Verdict(one.sentence, read.support, premise, "context", words, one.number, absent)
        return tuple(sorted(found.values(), key=lambda verdict: verdict.number))


def _sources(row: Row) -> tuple[str, ...]:
    """Return the texts that facts are looked up in: the context, and for data also the references."""
    return (*passages_of(row.context), *(row.references if row.task == "data" else ()))


def _read(pairs: Sequence[tuple[str, str]], calls: ModelCalls) -> dict[tuple[str, str], Judgement]:
    """Judge each (sentence, premise). A sentence that the premise has word for word needs no model."""
    read = {}
    for sentence, premise in pairs:
        kept = marks_of(sentence) & marks_of(premise)  # Marks in both may be content.
        shown = plain(premise, kept)
        read[sentence, premise] = shown, _as_written_in(shown, statement(sentence, kept))
    said = {
        (sentence, premise)
        for (sentence, premise), (shown, _) in read.items()
        if states(premise, _as_written_in(shown, sentence))
    }
    entailed = calls.entails(texts for pair, texts in read.items() if pair not in said)
    return {
        pair: Judgement(*pair, Entailment(1.0, 0.0) if pair in said else entailed[texts])
        for pair, texts in read.items()
    }


def _as_written_in(premise: str, text: str) -> str:
    """Write misspelt words and quantities of a text as the premise writes the same words and quantities."""
    return in_notation_of(corrected(text, premise), premise)
