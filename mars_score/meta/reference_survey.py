"""Survey the references of a data set: figures of each row, their means, and rows that need a look."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, zip_longest

import numpy as np

from mars_score.data.checking import check_examples, check_references
from mars_score.data.writing import plain
from mars_score.errors import BY_INDEX, Place
from mars_score.metrics.plus import PlusConfig
from mars_score.models.loading import locate
from mars_score.rows import Contexts, Example, Texts
from mars_score.scorer import MarsScorer
from mars_score.tables import Table, mean, number
from mars_score.text import copied_share, one_line, plain_words, split_words, windows

DISAGREE = 0.3  # two references with a lower cosine disagree
DUPLICATE = 0.95  # two references with at least this cosine say the same
# Figures of a row: means over its texts or pairs of texts, or NaN if it has none.
FIGURES = {
    "words": "words of a reference",
    "copied": "share of its words that it copies from the context, in runs of five",
    "context_cosine": "cosine with the nearest window of the context",
    "lexical": "diversity of words (one minus Jaccard's index of two references)",
    "embedding": "diversity in embedding (one minus the cosine of two references)",
}
_SHOWN = 10  # maximum rows of a table
_LONG = 200  # maximum characters of a text in a table
Cosine = Callable[[str, str], float]


@dataclass(frozen=True)
class ReferenceRow:
    """The references of a row, without outer white space, and its figures.

    Attributes:
        row: index of the row.
        references: references of the row.
        words: see :data:`FIGURES`, also for the next four.
        lowest_cosine: lowest cosine of two references.
        duplicates: pairs of references, by index, whose cosine is at least :data:`DUPLICATE`.
    """

    row: int
    references: tuple[str, ...]
    words: float
    copied: float
    context_cosine: float
    lexical: float
    embedding: float
    lowest_cosine: float
    duplicates: tuple[tuple[int, int], ...]


def reference_row(index: int, row: Example, cosine: Cosine, config: PlusConfig) -> ReferenceRow:
    """Compute the figures of a row.

    Args:
        index: index of the row.
        row: its references and context, which may be blank.
        cosine: function of two texts, which are references or windows of the context.
        config: sizes of windows and of copied runs.
    """
    references, parts = row.references, windows(row.context, config.window_words)
    compared = references if parts else ()
    pairs = list(combinations(references, 2))
    cosines = [cosine(*pair) for pair in pairs]
    indices = zip(combinations(range(len(references)), 2), cosines, strict=True)
    return ReferenceRow(
        index,
        references,
        words=mean(len(split_words(text)) for text in references),
        copied=mean(copied_share(text, row.context, config.copied_words) for text in compared),
        context_cosine=mean(max(cosine(text, part) for part in parts) for text in compared),
        lexical=1 - mean(_jaccard(*pair) for pair in pairs),
        embedding=1 - mean(cosines),
        lowest_cosine=min(cosines, default=math.nan),
        duplicates=tuple(pair for pair, value in indices if value >= DUPLICATE),
    )


def _jaccard(text: str, other: str) -> float:
    words, others = set(plain_words(text)), set(plain_words(other))
    return len(words & others) / len(words | others) if words | others else 1.0


@dataclass(frozen=True)
class ReferenceSurvey:
    """Figures of the references of a data set.

    Attributes:
        rows: the rows in input order.
        encoder: name and revision of the encoder.
        ratings: human ratings of the references of each row, with NaN for missing ones, or () if no row has any.
    """

    rows: tuple[ReferenceRow, ...]
    encoder: str
    ratings: tuple[tuple[float, ...], ...] = ()

    @property
    def best(self) -> list[int]:
        """Return for each row the index of the first reference with the highest rating."""
        return [int(np.nanargmax(row)) for row in self.ratings]

    def to_dict(self) -> dict[str, object]:
        """Return data for JSON, with None for NaN."""
        rows = [plain(asdict(row)) for row in self.rows]
        for row, ratings, best in zip(rows, self.ratings, self.best, strict=False):
            row.update(ratings=plain(ratings), best=best)
        return {"rows": rows, "encoder": self.encoder}

    def tables(self) -> list[Table]:
        """Tabulate the means over rows, and the rows that need a look."""
        repeated = [row for row in self.rows if row.duplicates]
        disagreeing = [row for row in self.rows if row.lowest_cosine < DISAGREE]
        counts = sorted(Counter(len(row.references) for row in self.rows).items())
        values = {
            "rows": str(len(self.rows)),
            "references per row": ", ".join(f"{count} in {rows}" for count, rows in counts),
            **{text: number(mean(getattr(row, name) for row in self.rows)) for name, text in FIGURES.items()},
            "rows with near-duplicates": str(len(repeated)),
            "rows whose references disagree": str(len(disagreeing)),
        }
        note = "Means over the rows where a figure is defined: diversity needs two references."
        tables = [
            Table("References", note, ("", "value"), tuple(values.items())),
            *([self._rating_table()] if self.ratings else []),
            _row_table(
                "Near-duplicates",
                f"Two references with a cosine of at least {DUPLICATE}: the second adds nothing.",
                [(row, [row.references[index] for index in row.duplicates[0]]) for row in repeated],
            ),
            _row_table(
                "References that disagree",
                f"Two references with a cosine below {DISAGREE}: open-ended, or one of them is wrong.",
                [(row, row.references) for row in sorted(disagreeing, key=lambda row: row.lowest_cosine)],
            ),
        ]
        return [table for table in tables if table.rows]

    def _rating_table(self) -> Table:
        """Tabulate the mean rating of first, second, ... references, and of the best reference of each row."""
        best = self.best
        lines = []
        for place, column in enumerate(zip_longest(*self.ratings, fillvalue=math.nan)):
            count = sum(not math.isnan(rating) for rating in column)
            lines.append((f"reference {place + 1}", number(mean(column)), str(count), str(best.count(place))))
        highest = number(mean(map(np.nanmax, self.ratings)))
        lines.append(("best of each row", highest, str(len(best)), ""))
        note = (
            "Mean human rating, number of ratings, and rows in which the reference is the best, first of equals."
        )
        return Table("Ratings of references", note, ("", "rating", "rated", "best in rows"), tuple(lines))


def check_ratings(
    ratings: Sequence[object], references: Sequence[Sequence[str]], place: Place = BY_INDEX
) -> tuple[tuple[float, ...], ...]:
    """Return the ratings of the references of each row, with NaN for None.

    Raises:
        ValueError: a row lacks a number (or None) for a reference, or has no number at all.
    """
    checked = []
    for index, (row, texts) in enumerate(zip(ratings, references, strict=True)):
        values = row if isinstance(row, (list, tuple)) else [row]
        kinds = {type(value) for value in values}
        if len(values) != len(texts) or not kinds <= {int, float, type(None)} or kinds == {type(None)}:
            fault = f"must hold a number or null for each of the {len(texts)} references, and at least one number"
            raise ValueError(f"{place.of('ratings', index)} {fault}; got {row!r:.60}")
        checked.append(tuple(float(value) if isinstance(value, (int, float)) else math.nan for value in values))
    return tuple(checked)


def survey_references(
    scorer: MarsScorer,
    references: Texts | None,
    contexts: Contexts | None = None,
    ratings: Sequence[object] | None = None,
    place: Place = BY_INDEX,
) -> ReferenceSurvey:
    """Describe the references of all rows with the encoder of a scorer.

    Args:
        scorer: has the encoder, and sizes of windows and copied runs if its variant uses them.
        references: as for :meth:`MarsScorer.score`. Equal references count as near-duplicates.
        contexts: as for :meth:`MarsScorer.score`.
        ratings: human ratings of the references of each row.
        place: names a row's ratings in errors.

    Raises:
        TypeError, ValueError: a row is faulty, which is named, or there are no rows.
        ModelUnavailableError: the encoder cannot be loaded.
    """
    settings = dict(scorer.settings.items())
    all_references = [tuple(map(str.strip, texts)) for texts in check_references(references)]
    examples = check_examples(all_references, contexts, use_context=settings["use_context"])
    if not examples:
        raise ValueError("there are no rows")
    rated = () if ratings is None else check_ratings(ratings, all_references, place)
    # check_examples drops equal references.
    rows = [replace(row, references=texts) for row, texts in zip(examples, all_references, strict=True)]
    config = PlusConfig(**{name: settings[name] for name in ("window_words", "copied_words") if name in settings})
    texts = {text for row in rows for text in (*row.references, *windows(row.context, config.window_words))}
    encodings = scorer.calls.encode(sorted(texts))

    def cosine(text: str, other: str) -> float:
        return float(encodings[text].vector @ encodings[other].vector)

    survey = tuple(reference_row(index, row, cosine, config) for index, row in enumerate(rows))
    return ReferenceSurvey(survey, str(locate(settings["encoder"])), rated)


def _row_table(title: str, note: str, rows: Sequence[tuple[ReferenceRow, Sequence[str]]]) -> Table:
    lines = tuple((str(row.row + 1), " / ".join(one_line(text, _LONG) for text in texts)) for row, texts in rows)
    return Table(title, note, ("line", "references"), lines[:_SHOWN])
