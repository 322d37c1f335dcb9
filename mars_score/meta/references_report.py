"""A survey of references as tables, for a terminal or a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mars_score.meta.references import FEW, ReferenceSurvey
from mars_score.meta.references_rows import DUPLICATE, ReferenceRow
from mars_score.report.contents import Bars, Report, Section, Table, number, shortened

# Numbers of a row that have a mean and a histogram, in plain words.
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
_BINS = 8
_LONG = 200  # characters


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


def build_report(found: ReferenceSurvey, suggested: Sequence[ReferenceRow]) -> Report:
    """The page."""
    histograms = [bars for name in NUMBERS if (bars := _histogram(found, name))]
    counts = found.counts
    by_number = Bars(
        "Rows by number of references",
        tuple(f"{count} reference{'s' * (count > 1)}" for count in counts),
        tuple(rows / len(found.rows) for rows in counts.values()),
        *_no_intervals(len(counts)),
    )
    sections = (
        Section("In numbers", "", (summary_table(found),)),
        Section("Distributions", "Shares of the rows.", (by_number, *histograms)),
        Section("Rows to look at", "Lines are counted from 1.", tuple(row_tables(found))),
        Section("Suggestions", "", (suggestion_table(suggested),) if suggested else ()),
    )
    lines = (f"{len(found.rows)} rows.", f"Signature: {found.signature}")
    return Report("MARS: references", lines, (), tuple(one for one in sections if one.parts))


def _histogram(found: ReferenceSurvey, name: str) -> Bars | None:
    values = [value for row in found.rows if not math.isnan(value := getattr(row, name))]
    if not values:
        return None
    counts, edges = np.histogram(values, bins=_BINS)
    digits = 0 if name == "words" else 2
    labels = [f"{low:.{digits}f} to {high:.{digits}f}" for low, high in pairwise(edges)]
    title = NUMBERS[name][:1].upper() + NUMBERS[name][1:]
    return Bars(title, tuple(labels), tuple(counts / len(values)), *_no_intervals(_BINS))


def _no_intervals(count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (math.nan,) * count, (math.nan,) * count


def _texts(row: ReferenceRow, which: Sequence[int]) -> tuple[str, str]:
    return str(row.row + 1), " / ".join(shortened(row.references[one], _LONG) for one in which)
