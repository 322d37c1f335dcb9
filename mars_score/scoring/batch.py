"""Rows whose references are augmented: what must be read of them, and the scores and notices that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mars_score.augment.augmented import AugmentedReference, cuts
from mars_score.augment.sampling.samples import Request, Samples
from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.errors import (
    BLANK,
    BLANK_CONTEXT,
    CONTEXT_CUT,
    CONTRADICTED,
    NOT_ENGLISH,
    NOTICES,
    OWN_SAMPLE,
    SAMPLES_CUT,
    SENTENCES_CUT,
    TEXT_CUT,
    UNKNOWN,
    UNKNOWN_SHARE,
)
from mars_score.models.devices import one_blas_thread
from mars_score.scoring.entailment import LIKELY, SENTENCES
from mars_score.scoring.evidence import (
    CONTRADICTION,
    EMBED,
    LIKELIHOOD,
    MATCH,
    Evidence,
    Needs,
    Reader,
    all_needs,
    needs,
)
from mars_score.scoring.form import Form
from mars_score.scoring.result import RowScore
from mars_score.scoring.row import ScorableRow
from mars_score.scoring.rows import ScoredRow
from mars_score.scoring.terms import Similarities, score_row
from mars_score.store.runtime import Progress

if TYPE_CHECKING:
    from mars_score.scoring.heads import LearnedHead
    from mars_score.scoring.row import Example


@dataclass(frozen=True)
class Scorable:
    """Some rows.

    Attributes:
        rows: prepared.
        augmented: the references of each row; none of one with a blank candidate or without references.
        requests: of each row; see :func:`mars_score.augment.sampling.samples.make_request`.
        samples: of each request; those that came with a row go before them.
        form: how a row is scored.
        use_context: whether rows are to have a context.
        head: computes the scores from those of the form; None: they stay as they are.
    """

    rows: Sequence[Row]
    augmented: Sequence[Sequence[AugmentedReference]]
    requests: Sequence[Request]
    samples: Mapping[Request, Samples]
    form: Form
    use_context: bool = False
    head: LearnedHead | None = None

    def chunks(self, size: int) -> Iterator[Scorable]:
        """Its rows in order, at most ``size`` at a time."""
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        by_row: dict[str, Any] = {name: column for name, column in columns.items() if isinstance(column, Sequence)}
        for start in range(0, len(self.rows), size):
            yield replace(self, **{name: column[start : start + size] for name, column in by_row.items()})

    def read(self, reader: Reader, size: int, progress: Progress) -> Iterator[tuple[Scorable, Evidence]]:
        """At most ``size`` rows at a time and what is read of them; what no later rows need is released."""
        chunks = list(self.chunks(size))
        last_use = {
            (kind, item): number
            for number, chunk in enumerate(chunks)
            for kind, items in chunk.needs.items()
            for item in items
        }
        evidence: dict[str, dict[object, object]] = {}
        for number, chunk in enumerate(chunks):
            for kind, items in chunk.needs.items():
                before = evidence.get(kind, {})
                evidence[kind] = {item: one for item, one in before.items() if last_use[kind, item] >= number}
                missing = [item for item in items if item not in before]
                evidence[kind] |= reader.read(kind, missing, partial(progress, kind))
            yield chunk, evidence

    @cached_property
    def _samples(self) -> list[Samples]:
        nothing = Samples(())
        samples = []
        for row, request in zip(self.rows, self.requests, strict=True):
            drawn = self.samples.get(request, nothing) if row.candidate else nothing
            others = tuple(text for text in row.samples if text != row.candidate)
            samples.append(Samples(others) if row.samples else drawn)
        return samples

    @cached_property
    def _rows(self) -> list[ScorableRow]:
        columns = zip(self.rows, self.augmented, self.requests, self._samples, strict=True)
        return [
            ScorableRow(row.candidate, tuple(references), row.context, request.task, samples.texts)
            for row, references, request, samples in columns
        ]

    @cached_property
    def _needs_of_rows(self) -> list[Needs]:
        return [needs(self.form, row) for row in self._rows]

    @cached_property
    def needs(self) -> Needs:
        """What must be read, each different item once."""
        return all_needs(self._needs_of_rows)

    @one_blas_thread()
    def _own_scores(self, evidence: Evidence) -> list[RowScore]:
        """One per row, without the head."""
        similarities = Similarities(evidence, self.form)
        return [score_row(row, similarities) for row in self._rows]

    def scores(self, evidence: Evidence) -> list[RowScore]:
        """One per row, from what was read."""
        scores = self._own_scores(evidence)
        if self.head is None:
            return scores
        from mars_score.scoring.heads import rescored

        return rescored(self._rows, scores, self.head, evidence, self.form)

    def scored(self, evidence: Evidence) -> list[ScoredRow]:
        """The scores with the notices of each row."""
        flags = self.flags(evidence)
        notices = zip(*(flags[kind] for kind in NOTICES), strict=True)
        return [ScoredRow(*one) for one in zip(self.scores(evidence), notices, strict=True)]

    def examples(self, evidence: Evidence) -> list[Example]:
        """The rows that have references as a learned head sees them."""
        from mars_score.scoring.heads import make_example

        scored = zip(self._rows, self._own_scores(evidence), strict=True)
        return [make_example(row, score, evidence, self.form) for row, score in scored if row.references]

    def flags(self, evidence: Evidence) -> dict[str, list[bool]]:
        """What was done to which rows, by kind of notice."""
        of_augmenting = cuts(self.augmented)
        texts = evidence[MATCH if self.form.matching == "tokens" else EMBED]
        rows = list(zip(self._rows, self._needs_of_rows, strict=True))
        read_in_part = [any(evidence[LIKELIHOOD][pair].cut for pair in items[LIKELIHOOD]) for _, items in rows]
        return {
            BLANK: [not row.candidate for row in self.rows],
            BLANK_CONTEXT: [self.use_context and not row.context for row in self.rows],
            **of_augmenting,
            CONTEXT_CUT: [a or b for a, b in zip(of_augmenting[CONTEXT_CUT], read_in_part, strict=True)],
            OWN_SAMPLE: [row.candidate in row.samples for row in self.rows],
            SAMPLES_CUT: [samples.context_cut for samples in self._samples],
            TEXT_CUT: [
                any(evidence[kind][text].shortened for kind in (EMBED, MATCH) for text in items[kind])
                for _, items in rows
            ],
            UNKNOWN: [
                bool(row.candidate)
                and any(
                    texts[text].unknown > UNKNOWN_SHARE
                    for text in (row.candidate, *(one.reference for one in row.references))
                )
                for row, _ in rows
            ],
            NOT_ENGLISH: [
                self.form.contradiction_penalty > 0 and bool(row.candidate) and not self.form.reads(row)
                for row, _ in rows
            ],
            SENTENCES_CUT: [
                bool(items[CONTRADICTION]) and len(row.premises) == SENTENCES < len(sentences(row.candidate))
                for row, items in rows
            ],
            CONTRADICTED: [
                any(evidence[CONTRADICTION][one] > LIKELY for one in items[CONTRADICTION]) for _, items in rows
            ],
        }
