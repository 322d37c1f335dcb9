"""What the references of a data set are like: numbers by row, their means, and the rows to look at."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.overlap import copied_share, windows
from mars_score.data.validation import check_contexts, check_lengths, check_references
from mars_score.data.words import plain_words, split_words
from mars_score.models.signature import Signature, make_signature
from mars_score.report.contents import Table, number, shortened
from mars_score.scoring.evidence import EMBED, LIKELIHOOD, Reader

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

FEW = 0.3  # cosine below which two references disagree
DUPLICATE = 0.95  # cosine from which two references say the same
# Numbers of a row that have a mean, in plain words.
NUMBERS = {
    "words": "words of a reference",
    "copied": "share of its words in runs of five that the context has, too",
    "closeness": "cosine with the context",
    "lexical": "diversity of words (one minus Jaccard's index of two references)",
    "embedding": "diversity in embedding (one minus the cosine of two references)",
    "openness": "openness (one minus the cosine of two samples)",
    "nearest": "cosine with the nearest sample",
}
_SHOWN = 10  # rows of a kind
_LONG = 200  # characters
Vectors = Mapping[str, NDArray[np.float64]]  # text -> unit sentence vector
NAN = math.nan


@dataclass(frozen=True)
class ReferenceRow:
    """A row's references; what is undefined is NaN.

    Attributes:
        row: counted from 0.
        references: as given.
        words: mean number of words.
        copied: mean share of words in runs of five or more that the context has, too.
        closeness: mean cosine with the nearest part of the context.
        lexical: diversity of words, in [0, 1]: one minus the mean share of words that two references have in
            common (Jaccard's index).
        embedding: diversity in embedding: one minus the mean cosine of two references.
        agreement: the smallest cosine of two references.
        duplicates: pairs of references, by number, whose cosine is at least ``DUPLICATE``.
        openness: one minus the mean cosine of two samples: how much else could be said.
        nearest: mean over references of the largest cosine with a sample.
        stranger: references, by number, whose log probability given the context is below that of every sample.
        samples: drawn given the context, the farthest from all references first.
    """

    row: int
    references: tuple[str, ...]
    words: float
    copied: float
    closeness: float
    lexical: float
    embedding: float
    agreement: float
    duplicates: tuple[tuple[int, int], ...]
    openness: float
    nearest: float
    stranger: tuple[int, ...]
    samples: tuple[str, ...]

    @property
    def need(self) -> float:
        """How much one more reference would help: openness by number of references; 0 where it is not known."""
        return 0.0 if math.isnan(self.openness) else self.openness / len(self.references)


def reference_row(
    row: int,
    references: Sequence[str],
    context: str,
    samples: Sequence[str],
    vectors: Vectors,
    likelihoods: Mapping[str, float] | None = None,
) -> ReferenceRow:
    """The numbers of a row.

    Args:
        row: counted from 0.
        references: at least one.
        context: blank for none.
        samples: drawn given the context.
        vectors: of references, samples and the parts of the context.
        likelihoods: mean log probability of each reference and sample given the context, in nats; None: not known.
    """
    parts = windows(context)
    pairs = list(combinations(range(len(references)), 2))
    cosines = {pair: _cosine(*(vectors[references[one]] for one in pair)) for pair in pairs}
    of_samples = [_cosine(vectors[one], vectors[other]) for one, other in combinations(samples, 2)]
    nearest = {one: [_cosine(vectors[one], vectors[text]) for text in references] for one in samples}
    stranger: tuple[int, ...] = ()
    if likelihoods and samples:
        least = min(likelihoods[one] for one in samples)
        stranger = tuple(number for number, text in enumerate(references) if likelihoods[text] < least)
    return ReferenceRow(
        row,
        tuple(references),
        words=_mean([float(len(split_words(text))) for text in references]),
        copied=_mean([copied_share(text, context) for text in references]) if context else NAN,
        closeness=_mean([max(_cosine(vectors[text], vectors[part]) for part in parts) for text in references])
        if parts
        else NAN,
        lexical=1 - _mean([_shared(references[one], references[other]) for one, other in pairs]),
        embedding=1 - _mean(list(cosines.values())),
        agreement=min(cosines.values(), default=NAN),
        duplicates=tuple(pair for pair in pairs if cosines[pair] >= DUPLICATE),
        openness=1 - _mean(of_samples),
        nearest=_mean([max(of_reference) for of_reference in zip(*nearest.values(), strict=True)]),
        stranger=stranger,
        samples=tuple(sorted(samples, key=lambda one: max(nearest[one]))),
    )


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other)


def _shared(one: str, other: str) -> float:
    """Jaccard's index of two texts' words."""
    first, second = (set(plain_words(text)) for text in (one, other))
    return len(first & second) / len(first | second) if first | second else 1.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else NAN


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


def summary_table(found: ReferenceSurvey) -> Table:
    """Means over rows."""
    rows = [
        ("rows", str(len(found.rows))),
        ("references per row", ", ".join(f"{count} in {rows}" for count, rows in found.counts.items())),
        *((text, number(found.mean(name))) for name, text in NUMBERS.items()),
        ("rows with near-duplicates", str(len(found.repeated))),
        ("rows whose references disagree", str(len(found.disagreeing))),
        ("rows with references stranger than the samples", str(len(found.strange))),
    ]
    note = "Means over the rows where a number is defined: diversity needs two references, openness samples."
    return Table("References", note, ("", "value"), tuple(rows))


def row_tables(found: ReferenceSurvey) -> list[Table]:
    """The rows to look at; a table for each kind that there is."""
    kinds: list[tuple[str, str, Sequence[tuple[ReferenceRow, Sequence[int]]]]] = [
        (
            "Near-duplicates",
            f"Two references with a cosine of at least {DUPLICATE}: the second adds nothing.",
            [(row, row.duplicates[0]) for row in found.repeated],
        ),
        (
            "References that disagree",
            f"Two references with a cosine below {FEW}: open-ended, or one of them is wrong.",
            [(row, range(len(row.references))) for row in found.disagreeing],
        ),
        (
            "References stranger than the samples",
            "Less likely, given the context, than each text that the language model wrote: rare, or out of place.",
            [(row, row.stranger) for row in found.strange],
        ),
    ]
    return [
        Table(title, note, ("line", "references"), tuple(_texts(row, which) for row, which in rows[:_SHOWN]))
        for title, note, rows in kinds
        if rows
    ]


def suggestion_table(rows: Sequence[ReferenceRow]) -> Table:
    """Where one more reference would help most, with drafts."""
    return Table(
        "Where one more reference would help most",
        "Openness divided by the number of references. Drafts: the samples farthest from the references; a small "
        "model wrote them, so a person has to check and change them.",
        ("line", "openness", "references", "drafts"),
        tuple(
            (
                str(row.row + 1),
                number(row.openness, 2),
                " / ".join(shortened(text, _LONG) for text in row.references),
                " / ".join(shortened(text, _LONG) for text in row.samples[:3]),
            )
            for row in rows
        ),
    )


def _texts(row: ReferenceRow, which: Sequence[int]) -> tuple[str, str]:
    return str(row.row + 1), " / ".join(shortened(row.references[one], _LONG) for one in which)
