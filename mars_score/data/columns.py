"""From a file's columns to checked texts: faults name file, line and column."""

from __future__ import annotations

from dataclasses import dataclass

from mars_score.data.files import RowFile
from mars_score.data.validation import check_candidates, check_contexts, check_reference_free, check_references


@dataclass(frozen=True)
class Columns:
    """What a file's columns are called."""

    reference: str | None  # one or more references per row; None: without references
    context: str | None  # the context; None: without contexts
    prediction: str | None = None  # the candidate; None: there are none

    def candidates(self, file: RowFile) -> list[str]:
        """The candidates without outer whitespace; blank ones where there is no column."""
        name = self.prediction
        if name is None:
            return [""] * len(file.rows)
        values = file.column(name, remedy="add it or name another with --prediction-column")
        return [candidate.strip() for candidate in check_candidates(values, where=file.place(name))]

    def references(self, file: RowFile) -> list[tuple[str, ...]]:
        """The references, one or more per row; none of each row where there is no column."""
        name = self.reference
        if name is None:
            return [()] * len(file.rows)
        remedy = "add it, name another with --reference-column, or pass --no-references to score all rows without"
        return check_references(file.column(name, remedy=remedy), where=file.place(name))

    def contexts(self, file: RowFile) -> list[str] | None:
        """The contexts; None without a column."""
        name = self.context
        if name is None:
            return None
        remedy = "add it, name another with --context-column, or pass --no-use-context"
        values = file.column(name, remedy=remedy)
        if self.reference is None:
            return check_reference_free(values, where=file.place(name))
        return check_contexts(values, len(values), use_context=True, where=file.place(name))
