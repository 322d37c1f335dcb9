"""Who is judged by an NLI model, by what, and what follows: all rules are those of :class:`NliJudge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.errors import Notice
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Entailment, Judgement, Row, Verdict
from mars_score.sentences import sentences
from mars_score.text import is_english, passages_of
from mars_score.variants.judgements.premises import choose_premises
from mars_score.variants.judgements.statements import (
    is_question,
    judged_sentences,
    marks_of,
    plain,
    statement,
    states,
)

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls

# Below this token recall a candidate is not judged by the reference: it says something else, which is no
# contradiction, even where an NLI model takes it for one (research/entailment/measure.md).
MIN_RECALL = 0.75
MIN_CONTRADICTION = 0.9  # A verdict needs this probability: eight of ten are then right (the same page).
# Of a summary close to a reference, context and reference are asked: if one is certain, the other must not rule it
# out, and gives the contradiction at least this probability.
MIN_SECOND_OPINION = 0.2
# A sentence of a summary that the context entails with a lower probability is unsupported: of such ones eight of
# ten are, by a context of any length (the same page). No score depends on it.
MAX_ENTAILMENT = 0.05


class Reliability(NamedTuple):
    """What can be believed of an NLI model's judgements.

    Attributes:
        support: factor of the weight of support, 0 to 1.
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


class Question(NamedTuple):
    """What an NLI model is asked about a row.

    Attributes:
        row: prepared.
        by_context: whether its sentences are judged by the context.
        by_reference: whether they are judged by the references.
        is_foreign: whether it is not judged as the model does not know its language.
    """

    row: Row
    by_context: bool = False
    by_reference: bool = False
    is_foreign: bool = False


class Conclusion(NamedTuple):
    """What follows from the judgements on a row.

    Attributes:
        support: mean probability that the context says a sentence, 0 for a contradicted one; None: not known.
        contradicted_share: of the sentences, as it counts in the score; None: not known.
        contradicted: verdicts on contradicted sentences.
        unsupported: sentences of a summary that its context does not say; some are contradicted as well.
        notices: on the row.
    """

    support: float | None = None
    contradicted_share: float | None = None
    contradicted: tuple[Verdict, ...] = ()
    unsupported: tuple[Verdict, ...] = ()
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
        self._knows_english_alone = isinstance(model, str) and model in SHIPPED

    # Who is judged, and by what

    def asks(self, row: Row, recalls: Mapping[tuple[str, str], float]) -> Question:
        """Decide what is asked about a row.

        Args:
            row: prepared.
            recalls: token recall by candidate and reference.
        """
        known = self.reliability
        if not (row.candidate and self._is_used):
            return Question(row)
        is_summary = row.task == "summary" and bool(row.context)
        by_context = is_summary and (known.support > 0 or known.by_context)
        has_references = (is_summary or row.task == "text") and known.by_reference and bool(row.references)
        if (by_context or has_references) and self._knows_english_alone:
            text = " ".join([*row.references, row.context])
            if not is_english(text):
                # A text without letters, such as a number, is of no language; that needs no notice.
                return Question(row, is_foreign=any(map(str.isalpha, text)))
        by_reference = has_references and any(
            recalls[row.candidate, text] >= MIN_RECALL for text in row.references
        )
        return Question(row, by_context or (by_reference and is_summary), by_reference)

    # Judgements

    def judge(self, questions: Sequence[Question], calls: ModelCalls) -> dict[Row, list[Judgement]]:
        """Judge the first sentences of candidates, of a summary by its context, of a text by its references.

        Args:
            questions: of :meth:`asks`.
            calls: the models.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: the NLI model has no classes for entailment and contradiction.
        """
        by_context = [one.row for one in questions if one.by_context]
        by_reference = [one.row for one in questions if one.by_reference]
        rows = dict.fromkeys([*by_context, *by_reference])
        judged = {row: judged_sentences(row.candidate)[: self._config.max_sentences] for row in rows}
        premises = choose_premises(
            [(judged[row], tuple(passages_of(row.context))) for row in by_context]
            + [(judged[row], row.references) for row in by_reference],
            self._config.premise_words,
            calls,
        )
        pairs = [
            list(zip(judged[row], of_row, strict=True))
            for row, of_row in zip([*by_context, *by_reference], premises, strict=True)
        ]
        judgement = self._read([pair for of_row in pairs for pair in of_row], calls)
        first = dict(zip(by_context, pairs, strict=False))
        second = dict(zip(by_reference, pairs[len(by_context) :], strict=True))
        judgements = {}
        for row in rows:
            if row not in first:
                judgements[row] = [judgement[pair] for pair in second[row]]
                continue
            others = second.get(row, [None] * len(first[row]))
            judgements[row] = [
                judgement[pair]._replace(by_reference=other and judgement[other])
                for pair, other in zip(first[row], others, strict=True)
            ]
        return judgements

    def _read(self, pairs: Sequence[tuple[str, str]], calls: ModelCalls) -> dict[tuple[str, str], Judgement]:
        """Judge each (sentence, premise); what a premise says word for word needs no model."""
        said = {pair for pair in pairs if states(pair[1], pair[0])}
        read = {(sentence, premise): _texts(sentence, premise) for sentence, premise in pairs}
        entailed = calls.entails(texts for pair, texts in read.items() if pair not in said)
        return {
            pair: Judgement(*pair, Entailment(1.0, 0.0) if pair in said else entailed[texts])
            for pair, texts in read.items()
        }

    # What follows

    def conclude(self, question: Question, judgements: Sequence[Judgement]) -> Conclusion:
        """Say what follows from the judgements on a row."""
        row, known, config = question.row, self.reliability, self._config
        if question.is_foreign:
            return Conclusion(notices=frozenset({Notice.NOT_ENGLISH}))
        if not (question.by_context or question.by_reference):
            return Conclusion()
        can_contradict = known.by_context or question.by_reference
        contradicted = self._contradicted(row.task, judgements) if can_contradict else ()
        support = None
        if question.by_context and known.support > 0:
            denied = {verdict.sentence for verdict in contradicted}
            support = fmean(
                [0.0 if one.sentence in denied else one.entailment.entailment for one in judgements] or [0.0]
            )
        share = len(contradicted) / max(1, len(judgements))
        if row.task == "summary" and len(sentences(row.context)) == 1:
            share = 0.0  # It has lost its support, and half of the score would be too much.
        cut = len(judgements) == config.max_sentences < len(judged_sentences(row.candidate))
        flags = {Notice.SENTENCES_CUT: cut, Notice.CONTRADICTED: bool(contradicted)}
        return Conclusion(
            support,
            share if can_contradict else None,
            contradicted,
            self._unsupported(judgements) if support is not None and known.by_context else (),
            frozenset(notice for notice, flag in flags.items() if flag),
        )

    def _contradicted(self, task: str, judgements: Sequence[Judgement]) -> tuple[Verdict, ...]:
        verdicts = (self._verdict(one, task) for one in judgements if not is_question(statement(one.sentence)))
        return tuple(verdict for verdict in verdicts if verdict)

    def _verdict(self, judgement: Judgement, task: str) -> Verdict | None:
        """Return the verdict on a sentence that is certainly contradicted, by the surer of two premises."""
        asked = {"context" if task == "summary" else "reference": judgement}
        if judgement.by_reference:
            asked["reference"] = judgement.by_reference
        probabilities = {source: one.entailment.contradiction for source, one in asked.items()}
        believed = {"context": self.reliability.by_context, "reference": self.reliability.by_reference}
        certain = [source for source in asked if believed[source] and probabilities[source] >= MIN_CONTRADICTION]
        if not certain or min(probabilities.values()) < MIN_SECOND_OPINION:
            return None
        source = max(certain, key=lambda source: probabilities[source])
        return Verdict(judgement.sentence, probabilities[source], asked[source].premise, source)

    def _unsupported(self, judgements: Sequence[Judgement]) -> tuple[Verdict, ...]:
        return tuple(
            Verdict(one.sentence, one.entailment.entailment, one.premise, "context")
            for one in judgements
            if one.entailment.entailment < MAX_ENTAILMENT and not is_question(statement(one.sentence))
        )


def _texts(sentence: str, premise: str) -> tuple[str, str]:
    """Return premise and hypothesis as the model reads them; marks that both have may be content, and stay."""
    kept = marks_of(sentence) & marks_of(premise)
    return plain(premise, kept), statement(sentence, kept)
