"""Who is judged by an NLI model, by what, and what follows: all rules are those of :class:`NliJudge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.errors import Notice
from mars_score.language import ENGLISH, may_be_english
from mars_score.metrics.plus import PlusConfig
from mars_score.models.tagger import Tagger
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
    marks_of,
    plain,
    statement,
    statements_of,
    states,
)

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls

# Below this token recall a candidate is not judged by the reference: it says something else, which is no
# contradiction, even where an NLI model takes it for one (research/entailment/measure.md).
MIN_RECALL = 0.75
# Of a summary close to a reference, context and reference are asked: if one is certain, the other must not rule it
# out, and gives the class contradiction at least this probability.
MIN_SECOND_OPINION = 0.2
MIN_ACQUITTAL = 0.5  # A reference that entails a sentence with this probability decides against another one.


class Question(NamedTuple):
    """What an NLI model is asked about a row.

    Attributes:
        row: prepared.
        by_context: whether its sentences are judged by the context.
        by_reference: whether they are judged by the references.
        unchecked: why no contradiction can be told; "" if it can.
        notices: on the row.
    """

    row: Row
    by_context: bool = False
    by_reference: bool = False
    unchecked: str = ""
    notices: frozenset[Notice] = frozenset()


class Conclusion(NamedTuple):
    """What follows from the judgements on a row.

    Attributes:
        support: mean probability that the context says a statement, 0 for a contradicted one; None: not known.
        contradicted_share: of the sentences, as it counts in the score; None: not known.
        contradicted: verdicts on contradicted sentences.
        unsupported: sentences of a summary that its context does not say; some are contradicted as well.
        unchecked: why no contradiction can be told; "" if it can.
        notices: on the row.
    """

    support: float | None = None
    contradicted_share: float | None = None
    contradicted: tuple[Verdict, ...] = ()
    unsupported: tuple[Verdict, ...] = ()
    unchecked: str = ""
    notices: frozenset[Notice] = frozenset()


class NliJudge:
    """Judges the sentences of candidates by an NLI model.

    A summary is judged by its context, and by its references too if it is close to one. A text is judged by its
    references if it is close to one. Replies and records are not judged: many replies are good, and a record and a
    text differ in form too much for an NLI model.

    Args:
        model: the NLI model, as in the settings.
        config: settings of the formula.
    """

    def __init__(self, model: Any, config: PlusConfig) -> None:
        self._config = config
        self.reliability = reliability_of(model)
        # Without weights for what follows from its judgements, the model is not used.
        self._is_used = config.support_weight > 0 or config.contradiction_penalty > 0
        self._knows_english_alone = isinstance(model, str) and model in RELIABILITY

    # Who is judged, and by what

    def asks(self, row: Row, recalls: Mapping[tuple[str, str], float]) -> Question:
        """Decide what is asked about a row.

        Args:
            row: prepared.
            recalls: token recall by candidate and reference.
        """
        known = self.reliability
        if reason := self._why_not(row):
            return Question(row, unchecked=reason)
        is_summary = row.task == "summary"
        if self._knows_english_alone and not may_be_english(row):
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
        """Say why a row is not judged at all; "" if it may be."""
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
        """Judge the first statements of candidates, of a summary by its context, of a text by its references.

        Args:
            questions: of :meth:`asks`.
            calls: the models.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
        """
        by_context = [one.row for one in questions if one.by_context]
        by_reference = [one.row for one in questions if one.by_reference]
        first = self._by(by_context, [tuple(passages_of(row.context)) for row in by_context], calls)
        second = self._by(by_reference, [row.references for row in by_reference], calls)
        self._ask_other_references(second, calls)
        for judgements in (first, second):
            self._read_leniently(judgements, calls)
        return {
            row: [
                one._replace(by_reference=other)
                for one, other in zip(first[row], second.get(row, [None] * len(first[row])), strict=True)
            ]
            if row in first
            else second[row]
            for row in dict.fromkeys([*by_context, *by_reference])
        }

    def _by(
        self, rows: Sequence[Row], sources: Sequence[tuple[str, ...]], calls: ModelCalls
    ) -> dict[Row, list[Judgement]]:
        """Judge the statements of each row by its source: the nearest passage of these texts."""
        asked = [
            ([one.sentence for one in self._first_sentences(row) if one.kind is Kind.STATEMENT], source)
            for row, source in zip(rows, sources, strict=True)
        ]
        return dict(zip(rows, self._ask(asked, calls), strict=True))

    def _ask(
        self, asked: Sequence[tuple[Sequence[str], tuple[str, ...]]], calls: ModelCalls
    ) -> list[list[Judgement]]:
        """Judge sentences by the nearest passage of some texts."""
        premises = choose_premises(asked, self._config.premise_words, calls)
        pairs = [
            list(zip(texts, of_texts, strict=True)) for (texts, _), of_texts in zip(asked, premises, strict=True)
        ]
        judgements = _read([pair for of_texts in pairs for pair in of_texts], calls)
        return [[judgements[pair] for pair in of_texts] for of_texts in pairs]

    def _first_sentences(self, row: Row) -> Sequence[Statement]:
        return statements_of(row.candidate)[: self._config.max_sentences]

    def _ask_other_references(self, judgements: dict[Row, list[Judgement]], calls: ModelCalls) -> None:
        """Ask the other references about sentences that one contradicts; one that entails a sentence decides."""
        accused = [
            (row, index)
            for row, of_row in judgements.items()
            for index, one in enumerate(of_row)
            if len(row.references) > 1 and one.entailment.refutation >= self.reliability.min_refutation
        ]
        by_each = iter(
            self._ask(
                [
                    ([judgements[row][index].sentence], (reference,))
                    for row, index in accused
                    for reference in row.references
                ],
                calls,
            )
        )
        for row, index in accused:
            best = max((next(by_each)[0] for _ in row.references), key=lambda one: one.entailment.entailment)
            if best.entailment.entailment >= MIN_ACQUITTAL:
                judgements[row][index] = best

    def _read_leniently(self, judgements: dict[Row, list[Judgement]], calls: ModelCalls) -> None:
        """Ask again about contradicted and unsupported sentences, with possible misspellings read as meant.

        A sentence is then contradicted no more, and supported no less, than in this reading.
        """
        doubted = [
            (row, number, one, text)
            for row, of_row in judgements.items()
            for number, one in enumerate(of_row)
            if one.entailment.refutation >= self.reliability.min_refutation
            or one.entailment.support < self.reliability.max_support
            if (text := leniently_corrected(one.sentence, one.premise)) != one.sentence
        ]
        read = _read([(text, one.premise) for _, _, one, text in doubted], calls)
        for row, number, one, text in doubted:
            best = one.entailment.at_best(read[text, one.premise].entailment)
            judgements[row][number] = one._replace(entailment=best)

    # What follows

    def conclude(
        self, questions: Sequence[Question], judgements: Mapping[Row, Sequence[Judgement]]
    ) -> dict[Row, Conclusion]:
        """Say what follows for each row.

        Args:
            questions: of :meth:`asks`.
            judgements: of :meth:`judge`.
        """
        sentences = {one: self._checked_for_facts(one) for one in questions}
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

    def _checked_for_facts(self, question: Question) -> Sequence[Statement]:
        """Return the sentences of which numbers and names are looked up: of summaries and texts of records."""
        row = question.row
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
        """Tell whether a summary loses half of its score by a verdict; by others it loses its support alone.

        People rate summaries with other verdicts as they rate the rest (research/entailment/measure.md).
        """
        by_reference = verdict.source == "reference" and self.reliability.halves_summaries
        return verdict.probability is None or by_reference

    def _contradiction(self, one: Statement, judgement: Judgement | None, question: Question) -> Verdict | None:
        """Return the verdict on a sentence that is contradicted: by a quantity, or by the NLI model."""
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
        """Return the verdict on a sentence that is certainly contradicted, by the surer of two premises."""
        asked = {"context" if task == "summary" else "reference": judgement}
        if judgement.by_reference:
            asked["reference"] = judgement.by_reference
        probabilities = {source: one.entailment.refutation for source, one in asked.items()}
        believed = {"context": self.reliability.by_context, "reference": self.reliability.by_reference}
        certain = [
            source
            for source in asked
            if believed[source] and probabilities[source] >= self.reliability.min_refutation
        ]
        if not certain or min(one.entailment.contradiction for one in asked.values()) < MIN_SECOND_OPINION:
            return None
        source = max(certain, key=lambda source: probabilities[source])
        decides = asked[source]
        words = decides.entailment.words
        return Verdict(judgement.sentence, probabilities[source], decides.premise, source, words, number)

    def _unsupported(
        self, judged: Mapping[Statement, Judgement], missing: Mapping[Statement, tuple[str, ...]]
    ) -> tuple[Verdict, ...]:
        """Return the sentences that the context does not entail, or with facts that it does not have."""
        found = {
            one: Verdict(one.sentence, None, "", "context", words, one.number, words)
            for one, words in missing.items()
        }
        for one, judgement in judged.items():
            read = judgement.entailment
            if read.support < self.reliability.max_support:
                absent = missing.get(one, ())
                words = tuple(dict.fromkeys((*absent, *read.words)))
                found[one] = Verdict(
                    one.sentence, read.support, judgement.premise, "context", words, one.number, absent
                )
        return tuple(found[one] for one in sorted(found, key=lambda one: one.number))


def _sources(row: Row) -> tuple[str, ...]:
    """Return the texts that have the facts of a row: the context, and the references beside a record."""
    return (*passages_of(row.context), *(row.references if row.task == "data" else ()))


def _read(pairs: Sequence[tuple[str, str]], calls: ModelCalls) -> dict[tuple[str, str], Judgement]:
    """Judge each (sentence, premise); what a premise says word for word needs no model."""
    read = {}
    for sentence, premise in pairs:
        kept = marks_of(sentence) & marks_of(premise)  # Marks that both have may be content, and stay.
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
    """Return a text with its misspelt words and its quantities as a premise writes them, where it has the same."""
    return in_notation_of(corrected(text, premise), premise)
