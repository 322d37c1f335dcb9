"""The rank of a score among rated candidates, and the ratings of candidates with similar scores.

The rated candidates are about 40 of each English development set of the task. ``python -m research.percentiles``
writes quantiles of their scores and their mean ratings to ``percentiles.json``. Scores do not depend on it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from mars_score.language import may_be_english
from mars_score.signature import LIBRARIES, MODELS, Signature

if TYPE_CHECKING:
    from mars_score.rows import Row, RowScore


class PercentileTable(TypedDict):
    """Quantiles of scores, and (rating, low, high) for each fifth of the candidates."""

    scores: list[float]
    ratings: list[tuple[float, float, float]]


Tables = Mapping[str, PercentileTable]  # by task
FILE = Path(__file__).with_suffix(".json")
WITH_REFERENCES, WITHOUT_REFERENCES = "with references", "without references"
# Entries of a signature that change a row's score by `plus` or `fast` in its last digits at most.
_WITHOUT_EFFECT = {
    *("version", "references", "samples", "task", "language", "dtype", "spacy_pipeline"),
    *LIBRARIES,
}


class Percentile(NamedTuple):
    """The rank of a score among the rated candidates of its task.

    Attributes:
        rank: percentage of candidates with a lower score.
        rating: mean rating of the fifth of candidates that the score falls in. In each data set the lowest rating
            is 0 and the highest 1.
        low: lower end of the 95 % interval of the rating, by resampling whole data sets.
        high: upper end of the interval.
    """

    rank: float
    rating: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"better than {self.rank:.0f} of 100 rated candidates of the same task; people gave such ones "
            f"{self.rating:.2f} [{self.low:.2f}, {self.high:.2f}] of the range of ratings"
        )


def find_percentiles(
    rows: Iterable[Row], scores: Iterable[RowScore], signature: Signature
) -> list[Percentile | None]:
    """Find the percentile of each row.

    All are None for models and settings that the file lacks (other models, changed constants, `paper`, learned
    heads). A row has None if the development sets have no such rows: blank candidates, rows without a context or
    with samples, and other languages than English.
    """
    tables = tables_for(signature)
    return [find_percentile(row, score, tables) for row, score in zip(rows, scores, strict=True)]


def find_percentile(row: Row, score: RowScore, tables: Mapping[str, Tables]) -> Percentile | None:
    """Find the percentile of a row in the output of :func:`tables_for`; None as for :func:`find_percentiles`."""
    if not tables or not score.terms or not row.context or row.samples or not may_be_english(row):
        return None
    table = tables[WITH_REFERENCES if row.references else WITHOUT_REFERENCES].get(row.task)
    if table is None:
        return None
    share, ratings = _share_below(score.score, table["scores"]), table["ratings"]
    return Percentile(100 * share, *ratings[min(int(share * len(ratings)), len(ratings) - 1)])


def tables_for(signature: Signature) -> Mapping[str, Tables]:
    """Return the tables by presence of references and by task, empty for unknown models and settings."""
    tables: dict[str, Any] = _tables().get(signature.preset, {}).get(signature.entries["variant"], {})
    return tables if tables and tables["settings"] == settings_digest(signature) else {}


def settings_digest(signature: Signature) -> str:
    """Hash the models and settings that scores depend on."""
    entries = {
        name: value
        for name, value in signature.entries.items()
        if name not in _WITHOUT_EFFECT and (name not in MODELS or name in signature.brief)
    }
    return hashlib.blake2b(json.dumps(entries, sort_keys=True).encode(), digest_size=8).hexdigest()


@cache
def _tables() -> Any:
    """Read the tables and the digest of their settings, by preset and variant."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def _share_below(value: float, quantiles: Sequence[float]) -> float:
    """Return the share of a distribution below a value, interpolated between evenly spaced quantiles."""
    index = bisect_left(quantiles, value)
    if index in (0, len(quantiles)):
        return float(index > 0)
    low, high = quantiles[index - 1 : index + 1]
    return (index - 1 + (value - low) / (high - low)) / (len(quantiles) - 1)
