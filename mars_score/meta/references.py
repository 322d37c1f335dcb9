"""The references of all rows: samples and vectors of them, and what they come to."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mars_score.data.overlap import windows
from mars_score.data.validation import check_contexts, check_lengths, check_references
from mars_score.meta.references_rows import ReferenceRow, reference_row
from mars_score.models.signature import Signature, make_signature
from mars_score.scoring.evidence import EMBED, LIKELIHOOD, Reader

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

FEW = 0.3  # cosine below which two references disagree


@dataclass(frozen=True)
class ReferenceSurvey:
    """What the references of a data set are like.

    Attributes:
        rows: in input order.
        signature: of the models and settings that samples and vectors depend on.
    """

    rows: tuple[ReferenceRow, ...]
    signature: Signature

    @property
    def counts(self) -> dict[int, int]:
        """By number of references the number of rows."""
        numbers = sorted(len(row.references) for row in self.rows)
        return {number: numbers.count(number) for number in dict.fromkeys(numbers)}

    def mean(self, name: str) -> float:
        """The mean of a number over the rows where it is defined; NaN where it is nowhere."""
        values = [value for row in self.rows if not math.isnan(value := getattr(row, name))]
        return sum(values) / len(values) if values else math.nan

    @property
    def repeated(self) -> list[ReferenceRow]:
        """Rows with references that say the same."""
        return [row for row in self.rows if row.duplicates]

    @property
    def disagreeing(self) -> list[ReferenceRow]:
        """Rows with two references whose cosine is below ``FEW``, the lowest first."""
        return sorted((row for row in self.rows if row.agreement < FEW), key=lambda row: row.agreement)

    @property
    def strange(self) -> list[ReferenceRow]:
        """Rows with references that the language model finds less likely than each of its samples."""
        return [row for row in self.rows if row.stranger]

    def suggest(self, count: int) -> list[ReferenceRow]:
        """The ``count`` rows where one more reference would help most; only rows with samples."""
        return sorted((row for row in self.rows if row.samples), key=lambda row: -row.need)[:count]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is undefined is None."""
        return {
            "rows": [
                {
                    name: None if isinstance(value, float) and math.isnan(value) else value
                    for name, value in dataclasses.asdict(row).items()
                }
                for row in self.rows
            ],
            "signature": str(self.signature),
        }


def survey_references(
    scorer: MarsScorer, references: Any, contexts: Any = None, *, likelihood: bool = False
) -> ReferenceSurvey:
    """Look at the references of all rows.

    Args:
        scorer: holds models and settings; samples are drawn as its scores have them.
        references: as for :meth:`MarsScorer.score`.
        contexts: as for :meth:`MarsScorer.score`.
        likelihood: whether the language model reads all references and samples.

    Raises:
        TypeError, ValueError: bad input, named with its row, before any model is loaded; no rows.
        ModelUnavailableError: a model cannot be loaded.
    """
    rows = check_references(references)
    given = check_contexts(contexts, len(rows), use_context=scorer.settings.use_context)
    check_lengths(references=rows, contexts=given)
    if not rows:
        raise ValueError("there are no rows")
    texts = [tuple(text.strip() for text in row) for row in rows]
    stripped = [context.strip() for context in given]
    samples = scorer.sample(rows, given)
    wanted = {text for row in (*texts, *samples, *map(windows, stripped)) for text in row}
    reader = Reader(scorer.settings, scorer.runtime)
    vectors = {text: one.vector for text, one in reader.read(EMBED, sorted(wanted)).items()}
    likely: dict[tuple[str, str], float] = {}
    if likelihood:
        pairs = {
            (context, text)
            for context, *of_row in zip(stripped, texts, samples, strict=True)
            for some in of_row
            for text in some
            if context
        }
        likely = {pair: one.given_context for pair, one in reader.read(LIKELIHOOD, sorted(pairs)).items()}
    found = tuple(
        reference_row(
            number,
            of_row,
            context,
            drawn,
            vectors,
            {text: likely[context, text] for text in (*of_row, *drawn)} if likelihood and context else None,
        )
        for number, (of_row, context, drawn) in enumerate(zip(texts, stripped, samples, strict=True))
    )
    return ReferenceSurvey(found, make_signature(scorer.settings, "unused", map(len, rows)))
