"""What the references of a data set are like: numbers by row, their means, and the rows to look at."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from mars_score.data.overlap import copied_share, windows
from mars_score.data.validation import check_references, check_rows
from mars_score.data.values import one_line, plain
from mars_score.data.words import plain_words, split_words
from mars_score.models.signature import Signature, make_signature
from mars_score.sampling.samples import ContextSampler, make_request
from mars_score.scoring.evidence import EMBED, Reader
from mars_score.stats.labels import Floats
from mars_score.tables import Table, mean, number

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

FEW = 0.3  # cosine below which two references disagree
DUPLICATE = 0.95  # cosine from which two references say the same
# Numbers of a row: means over its texts or pairs of texts, NaN where there are none.
NUMBERS = {
    "words": "words of a reference",
    "copied": "share of its words in runs of five that the context has, too",
    "closeness": "cosine with the context",  # with the nearest part of it
    "lexical": "diversity of words (one minus Jaccard's index of two references)",
    "embedding": "diversity in embedding (one minus the cosine of two references)",
    "openness": "openness (one minus the cosine of two samples)",  # how much else could be said
    "nearest": "cosine with the nearest sample",
}
_SHOWN = 10  # rows of a kind
_LONG = 200  # characters


@dataclass(frozen=True)
class ReferenceRow:
    """A row's references, without whitespace around them, and the numbers of ``NUMBERS``."""

    row: int  # counted from 0
    references: tuple[str, ...]
    words: float
    copied: float
    closeness: float
    lexical: float
    embedding: float
    agreement: float  # the smallest cosine of two references
    duplicates: tuple[tuple[int, int], ...]  # pairs of references whose cosine is at least ``DUPLICATE``
    openness: float
    nearest: float
    samples: tuple[str, ...]  # drawn given the context, the farthest from all references first

    @property
    def need(self) -> float:
        """How much one more reference would help: openness by number of references; 0 where it is not known."""
        return 0.0 if math.isnan(self.openness) else self.openness / len(self.references)


def reference_row(
    row: int, references: Sequence[str], context: str, samples: Sequence[str], vectors: Mapping[str, Floats]
) -> ReferenceRow:
    """The numbers of a row; the context may be blank.

    ``vectors`` are unit vectors, (dimensions,), of references, samples and the parts of the context.
    """

    def cosine(text: str, other: str) -> float:
        return float(vectors[text] @ vectors[other])

    parts = windows(context)
    words = [set(plain_words(text)) for text in references]
    pairs = list(combinations(range(len(references)), 2))
    cosines = [cosine(references[first], references[second]) for first, second in pairs]
    return ReferenceRow(
        row,
        tuple(references),
        words=mean(len(split_words(text)) for text in references),
        copied=mean(copied_share(text, context) for text in references if parts),
        closeness=mean(max(cosine(text, part) for part in parts) for text in references if parts),
        lexical=1 - mean(_jaccard(words[first], words[second]) for first, second in pairs),
        embedding=1 - mean(cosines),
        agreement=min(cosines, default=math.nan),
        duplicates=tuple(pair for pair, value in zip(pairs, cosines, strict=True) if value >= DUPLICATE),
        openness=1 - mean(cosine(*pair) for pair in combinations(samples, 2)),
        nearest=mean(max(cosine(text, sample) for sample in samples) for text in references if samples),
        samples=tuple(sorted(samples, key=lambda sample: max(cosine(sample, text) for text in references))),
    )


def _jaccard(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words | others) if words | others else 1.0


@dataclass(frozen=True)
class ReferenceSurvey:
    """What the references of a data set are like."""

    rows: tuple[ReferenceRow, ...]  # in input order
    signature: Signature  # of the models and settings that samples and vectors depend on

    def suggest(self, count: int) -> list[ReferenceRow]:
        """The ``count`` rows where one more reference would help most; only rows with samples."""
        return sorted((row for row in self.rows if row.samples), key=lambda row: -row.need)[:count]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is undefined is None."""
        return {"rows": [plain(asdict(row)) for row in self.rows], "signature": str(self.signature)}

    def tables(self) -> list[Table]:
        """Means over rows, and the rows to look at: a table for each kind that there is."""
        repeated = [row for row in self.rows if row.duplicates]
        disagreeing = sorted((row for row in self.rows if row.agreement < FEW), key=lambda row: row.agreement)
        counts = sorted(Counter(len(row.references) for row in self.rows).items())
        values = {
            "rows": str(len(self.rows)),
            "references per row": ", ".join(f"{count} in {rows}" for count, rows in counts),
            **{text: number(mean(getattr(row, name) for row in self.rows)) for name, text in NUMBERS.items()},
            "rows with near-duplicates": str(len(repeated)),
            "rows whose references disagree": str(len(disagreeing)),
        }
        note = "Means over the rows where a number is defined: diversity needs two references, openness samples."
        tables = [Table("References", note, ("", "value"), tuple(values.items()))]
        if repeated:
            note = f"Two references with a cosine of at least {DUPLICATE}: the second adds nothing."
            pairs = [(row, [row.references[place] for place in row.duplicates[0]]) for row in repeated]
            tables.append(_row_table("Near-duplicates", note, pairs))
        if disagreeing:
            note = f"Two references with a cosine below {FEW}: open-ended, or one of them is wrong."
            texts = [(row, row.references) for row in disagreeing]
            tables.append(_row_table("References that disagree", note, texts))
        return tables


def survey_references(scorer: MarsScorer, references: Any, contexts: Any = None) -> ReferenceSurvey:
    """Look at the references of all rows; samples are drawn as the scores of ``scorer`` have them.

    References and contexts are as for :meth:`MarsScorer.score`, and so are the errors; no rows are one as well.
    """
    use_context = scorer.settings.use_context
    rows, all_contexts, _ = check_rows(check_references(references), contexts, use_context=use_context)
    if not rows:
        raise ValueError("there are no rows")
    texts = [tuple(text.strip() for text in row) for row in rows]
    stripped = [context.strip() for context in all_contexts]
    requests = [make_request(*row, scorer.settings.sampling) for row in zip(stripped, texts, strict=True)]
    report = partial(scorer.runtime.report, "sample")
    drawn = ContextSampler(scorer.settings, scorer.runtime).draw(requests, report)
    samples = [drawn[request].texts for request in requests]
    wanted = {text for row in (*texts, *samples, *map(windows, stripped)) for text in row}
    read = Reader(scorer.settings, scorer.runtime).read(EMBED, sorted(wanted))
    vectors = {text: embedding.vector for text, embedding in read.items()}
    survey = tuple(
        reference_row(index, *row, vectors) for index, row in enumerate(zip(texts, stripped, samples, strict=True))
    )
    return ReferenceSurvey(survey, make_signature(scorer.settings, map(len, rows)))


def suggestion_table(rows: Sequence[ReferenceRow]) -> Table:
    """Where one more reference would help most, with drafts."""
    return Table(
        "Where one more reference would help most",
        "Openness divided by the number of references. Drafts: the samples farthest from the references; a small "
        "model wrote them, so a person has to check and change them.",
        ("line", "openness", "references", "drafts"),
        tuple(
            (str(row.row + 1), number(row.openness, 2), _joined(row.references), _joined(row.samples[:3]))
            for row in rows
        ),
    )


def _row_table(title: str, note: str, rows: Sequence[tuple[ReferenceRow, Sequence[str]]]) -> Table:
    lines = tuple((str(row.row + 1), _joined(texts)) for row, texts in rows[:_SHOWN])
    return Table(title, note, ("line", "references"), lines)


def _joined(texts: Sequence[str]) -> str:
    return " / ".join(one_line(text, _LONG) for text in texts)
