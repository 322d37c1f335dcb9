"""Rows whose references are augmented: what must be read of them, and the scores and notices that follow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mars_score import errors
from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.infilling.augmented import AugmentedReference, notices_of
from mars_score.learning.heads import LearnedHead, make_example
from mars_score.models.devices import one_blas_thread
from mars_score.progress import Progress
from mars_score.sampling.samples import Request, Samples
from mars_score.scoring import evidence
from mars_score.scoring.entailment import LIKELY, SENTENCES
from mars_score.scoring.evidence import CONTRADICTION, EMBED, LIKELIHOOD, MATCH, Evidence, Needs, Reader
from mars_score.scoring.form import Form
from mars_score.scoring.result import RowScore
from mars_score.scoring.row import Example, ScorableRow, weighted_sum
from mars_score.scoring.terms import Similarities, score_row


def scorable_row(
    row: Row,
    references: Sequence[AugmentedReference],
    request: Request,
    drawn: Mapping[Request, Samples],
    *,
    use_context: bool,
) -> ScorableRow:
    """A prepared row with all that its candidate is compared with.

    Args:
        row: prepared.
        references: none where the candidate is blank or is scored without references.
        request: of the row's samples; they are drawn unless the candidate is blank or the row came with samples.
        drawn: samples by request.
        use_context: whether rows are to have a context.
    """
    samples = Samples(tuple(text for text in row.samples if text != row.candidate))
    if row.candidate and not row.samples:
        samples = drawn[request]
    flags = {
        errors.BLANK: not row.candidate,
        errors.BLANK_CONTEXT: use_context and not row.context,
        errors.OWN_SAMPLE: row.candidate in row.samples,
        errors.SAMPLES_CUT: samples.context_cut,
    }
    notices = notices_of(references).union(notice for notice, flag in flags.items() if flag)
    return ScorableRow(row.candidate, tuple(references), row.context, request.task, samples.texts, notices)


@dataclass(frozen=True)
class Batch:
    """Some rows and what was read of them."""

    rows: Sequence[ScorableRow]
    needs: Sequence[Needs]  # what had to be read of each
    evidence: Evidence  # at least that
    form: Form  # how they are scored

    @one_blas_thread()
    def own_scores(self) -> list[RowScore]:
        """One per row, without head and notices."""
        similarities = Similarities(self.evidence, self.form)
        return [score_row(row, similarities) for row in self.rows]

    def scored(self, head: LearnedHead | None = None) -> list[RowScore]:
        """The score of each row with its notices; a head computes it from its own, but for blank candidates."""
        scores = self.own_scores()
        if head is not None and (examples := self.examples(scores)):
            for place, terms in zip(examples, head.score(list(examples.values())), strict=True):
                scores[place] = replace(scores[place], score=weighted_sum(terms), terms=terms)
        rows = zip(scores, self.rows, self.needs, strict=True)
        return [replace(score, notices=self._notices(row, items)) for score, row, items in rows]

    def examples(self, own_scores: Sequence[RowScore]) -> dict[int, Example]:
        """The rows as a learned head sees them, by their places; a blank candidate is not for a head."""
        return {
            place: make_example(row, score.terms, self.evidence, self.form)
            for place, (row, score) in enumerate(zip(self.rows, own_scores, strict=True))
            if row.candidate
        }

    def _notices(self, row: ScorableRow, items: Needs) -> frozenset[str]:
        """Those that concern a row, of which ``items`` were read."""
        read, form = self.evidence, self.form
        texts = read[evidence.kind_of_texts(form)]
        own = (row.candidate, *(one.reference for one in row.references)) if row.candidate else ()
        flags = {
            errors.CONTEXT_CUT: any(read[LIKELIHOOD][pair].cut for pair in items[LIKELIHOOD]),
            errors.TEXT_CUT: any(read[kind][text].shortened for kind in (EMBED, MATCH) for text in items[kind]),
            errors.UNKNOWN: any(texts[text].unknown > errors.UNKNOWN_SHARE for text in own),
            errors.NOT_ENGLISH: form.contradiction_penalty > 0 and bool(row.candidate) and not form.reads(row),
            errors.SENTENCES_CUT: len(items[CONTRADICTION]) == SENTENCES < len(sentences(row.candidate)),
            errors.CONTRADICTED: any(read[CONTRADICTION][sentence] > LIKELY for sentence in items[CONTRADICTION]),
        }
        return row.notices.union(notice for notice, flag in flags.items() if flag)


def read_batches(
    rows: Sequence[ScorableRow], form: Form, reader: Reader, size: int, progress: Progress
) -> Iterator[Batch]:
    """At most ``size`` rows at a time with what is read of them; what no later row needs is released."""
    needs = [evidence.needs(form, row) for row in rows]
    last_use = {
        (kind, item): number
        for number, of_row in enumerate(needs)
        for kind, items in of_row.items()
        for item in items
    }
    read: dict[str, dict[Any, Any]] = {kind: {} for kind in evidence.KINDS}
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        for kind, before in read.items():
            kept = {item: value for item, value in before.items() if last_use[kind, item] >= start}
            wanted = dict.fromkeys(item for of_row in needs[part] for item in of_row[kind])
            missing = [item for item in wanted if item not in kept]
            read[kind] = kept | reader.read(kind, missing, partial(progress, kind))
        yield Batch(rows[part], needs[part], read, form)
