"""Percentiles: the rank of a score among rated candidates, and the ratings of those with similar scores.

The rated candidates are those of the English development sets of the row's task, about 40 of each set.
``percentiles.json`` holds quantiles of their scores and means of their ratings, for the models and constants of
some presets and variants; ``python -m research.percentiles`` makes it. Scores do not depend on it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.language import may_be_english

if TYPE_CHECKING:
    from mars_score.rows import Row, RowScore
    from mars_score.signature import Signature

FILE = Path(__file__).with_suffix(".json")
WITH_REFERENCES, WITHOUT_REFERENCES = "with references", "without references"
# Entries of a signature that change the score of a row of `plus` or `fast` not at all, or in its last digits.
_WITHOUT_EFFECT = {
    *("version", "references", "samples", "task", "language", "dtype", "spacy_pipeline"),
    *("rapidfuzz", "torch", "transformers", "sentence-transformers"),
}
_MODELS = {"language_model", "encoder", "entailment_model"}


class Percentile(NamedTuple):
    """The rank of a score among the rated candidates of its task.

    Attributes:
        rank: percentage of the candidates that have a lower score.
        rating: mean rating of the fifth of the candidates that the score falls in; 0 is the lowest rating of a
            candidate's data set, 1 the highest.
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

    It is None for all rows if the file has nothing for these models and settings (other models, changed constants,
    `paper`, learned heads). It is also None for rows that are unlike those of the development sets: blank, without
    a context, with samples, or not in English.
    """
    tables = tables_for(signature)
    return [find_percentile(row, score, tables) for row, score in zip(rows, scores, strict=True)]


def find_percentile(row: Row, score: RowScore, tables: Mapping[str, Any]) -> Percentile | None:
    """Find the percentile of a row, by the tables of :func:`tables_for`; None as for :func:`find_percentiles`."""
    if not tables or not score.terms or not row.context or row.samples or not may_be_english(row):
        return None
    return _percentile(score, tables[WITH_REFERENCES if row.references else WITHOUT_REFERENCES].get(row.task))


def tables_for(signature: Signature) -> Mapping[str, Any]:
    """Return the tables for the models and settings of a signature, empty if these are unknown.

    They are keyed by with or without references, then by task.
    """
    tables: dict[str, Any] = _tables().get(signature.preset, {}).get(signature.entries["variant"], {})
    return tables if tables and tables["settings"] == settings_digest(signature) else {}


def settings_digest(signature: Signature) -> str:
    """Return a hash of the models and settings that scores depend on."""
    entries = {
        name: value
        for name, value in signature.entries.items()
        if name not in _WITHOUT_EFFECT and (name not in _MODELS or name in signature.brief)
    }
    return hashlib.blake2b(json.dumps(entries, sort_keys=True).encode(), digest_size=8).hexdigest()


@cache
def _tables() -> dict[str, Any]:
    """Read the digest of the settings and the tables, by preset and variant."""
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _percentile(score: RowScore, table: Mapping[str, Any] | None) -> Percentile | None:
    if table is None:
        return None
    share = _share_below(score.score, table["scores"])
    ratings = table["ratings"]
    return Percentile(100 * share, *ratings[min(int(share * len(ratings)), len(ratings) - 1)])


def _share_below(value: float, quantiles: Sequence[float]) -> float:
    """Return the share of a distribution below a value, by interpolation between evenly spaced quantiles."""
    index = bisect_left(quantiles, value)
    if index in (0, len(quantiles)):
        return float(index > 0)
    low, high = quantiles[index - 1 : index + 1]
    return (index - 1 + (value - low) / (high - low)) / (len(quantiles) - 1)
