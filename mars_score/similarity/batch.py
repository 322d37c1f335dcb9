"""Rows whose references are augmented: what must be read of them, and the scores and notices that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from mars_score.augmentation import Augmented, cuts
from mars_score.diagnostics import BLANK, BLANK_CONTEXT, CONTEXT_CUT, TEXT_CUT, UNKNOWN, UNKNOWN_SHARE
from mars_score.result import AugmentedReference, RowScore
from mars_score.settings import SimilaritySettings
from mars_score.similarity.features import EMBED, LIKELIHOOD, MATCH, Evidence, Needs, all_needs, needs
from mars_score.similarity.score import score_row


@dataclass(frozen=True)
class Scorable:
    """Some rows.

    Attributes:
        candidates: one a row, without outer whitespace.
        contexts: one a row.
        augmented: the references of each row; none of one with a blank candidate.
        settings: how a row is scored.
        use_context: whether rows are to have a context.
    """

    candidates: Sequence[str]
    contexts: Sequence[str]
    augmented: Sequence[Sequence[Augmented]]
    settings: SimilaritySettings
    use_context: bool = False

    def chunks(self, size: int) -> Iterator[Scorable]:
        """Its rows in order, at most ``size`` at a time."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        of_rows: dict[str, Any] = {name: one for name, one in columns.items() if isinstance(one, Sequence)}
        for start in range(0, len(self.candidates), size):
            yield replace(self, **{name: one[start : start + size] for name, one in of_rows.items()})

    @cached_property
    def _rows(self) -> list[tuple[str, list[AugmentedReference], str]]:
        references = [[one.reference for one in row] for row in self.augmented]
        return list(zip(self.candidates, references, self.contexts, strict=True))

    @cached_property
    def _needs_of_rows(self) -> list[Needs]:
        return [needs(self.settings, *row) for row in self._rows]

    @cached_property
    def needs(self) -> Needs:
        """What must be read, each different item once."""
        return all_needs(self.settings, self._needs_of_rows)

    def scores(self, evidence: Evidence) -> list[RowScore]:
        """One a row, from what was read."""
        return [score_row(*row, evidence, self.settings) for row in self._rows]

    def flags(self, evidence: Evidence) -> dict[str, list[bool]]:
        """What was done to which rows."""
        of_augmenting = cuts(self.augmented)
        texts = evidence[MATCH if self.settings.matching == "tokens" else EMBED]
        read_in_part = [
            any(evidence[LIKELIHOOD][pair].cut for pair in row.get(LIKELIHOOD, ())) for row in self._needs_of_rows
        ]
        return {
            BLANK: [not candidate for candidate in self.candidates],
            BLANK_CONTEXT: [self.use_context and not context for context in self.contexts],
            **of_augmenting,
            CONTEXT_CUT: [a or b for a, b in zip(of_augmenting[CONTEXT_CUT], read_in_part, strict=True)],
            TEXT_CUT: [
                any(evidence[kind][text].shortened for kind in (EMBED, MATCH) for text in row.get(kind, ()))
                for row in self._needs_of_rows
            ],
            UNKNOWN: [
                any(texts[text].unknown > UNKNOWN_SHARE for text in (candidate, *(one.reference for one in row)))
                if row
                else False
                for candidate, row, _ in self._rows
            ],
        }
