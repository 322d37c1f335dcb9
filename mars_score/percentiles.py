"""Percentiles: where a score stands among rated candidates, and how people rated those that score alike.

The rated candidates are those of the English development sets of the row's task, about 40 of each set.
``percentiles.json`` holds quantiles of their scores and means of their ratings, for the models and constants of
some presets and variants; ``python -m research.percentiles`` makes it. Nothing of it enters a score.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.errors import Notice

if TYPE_CHECKING:
    from mars_score.rows import Row, RowScore
    from mars_score.signature import Signature

FILE = Path(__file__).with_suffix(".json")
WITH_REFERENCES, WITHOUT_REFERENCES = "with references", "without references"
# Entries of a signature that leave the score of a row of `plus` or `fast` as it is, or change its last digits.
_OF_NO_EFFECT = {
    *("version", "references", "samples", "task", "language", "dtype", "spacy_pipeline"),
    *("rapidfuzz", "torch", "transformers", "sentence-transformers"),
}
_MODELS = {"language_model", "encoder", "entailment_model"}


class Percentile(NamedTuple):
    """Where a score stands among the rated candidates of its task.

    Attributes:
        rank: of 100 of them, how many have a lower score.
        rating: mean rating of the fifth of them in which the score is; 0 is the lowest rating of a candidate's
            data set, 1 the highest.
        low: lower end of the 95 % interval of the rating, by resampling whole data sets.
        high: upper end.
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

    Args:
        rows: the texts.
        scores: of the rows.
        signature: of the scores.

    Returns:
        None for all rows where the file has nothing for these models and settings (other models, changed
        constants, `paper`, learned heads), and for rows that are unlike those of the development sets: blank,
        without a context, with samples, or not in English.
    """
    own = tables_for(signature)
    return [
        _percentile(score, own[WITH_REFERENCES if row.references else WITHOUT_REFERENCES].get(row.task))
        if own and score.terms and row.context and not row.samples and Notice.NOT_ENGLISH not in score.notices
        else None
        for row, score in zip(rows, scores, strict=True)
    ]


def tables_for(signature: Signature) -> Mapping[str, Any]:
    """Return the tables for the models and settings of a signature, by what there is and task; none: unknown."""
    found: dict[str, Any] = _tables().get(signature.preset, {}).get(signature.entries["variant"], {})
    return found if found and found["settings"] == settings_digest(signature) else {}


def settings_digest(signature: Signature) -> str:
    """Return a hash of the models and settings that scores depend on."""
    counting = {
        name: value
        for name, value in signature.entries.items()
        if name not in _OF_NO_EFFECT and (name not in _MODELS or name in signature.brief)
    }
    return hashlib.blake2b(json.dumps(counting, sort_keys=True).encode(), digest_size=8).hexdigest()


@cache
def _tables() -> dict[str, Any]:
    """Read by preset and variant the digest of the settings and, by what there is and task, the quantiles."""
    tables: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return tables


def _percentile(score: RowScore, table: Mapping[str, Any] | None) -> Percentile | None:
    """Find the place of a score among the quantiles of its task."""
    if table is None:
        return None
    share = _share_below(score.score, table["scores"])
    ratings = table["ratings"]
    return Percentile(100 * share, *ratings[min(int(share * len(ratings)), len(ratings) - 1)])


def _share_below(value: float, quantiles: Sequence[float]) -> float:
    """Return the share of values below one, between evenly spaced quantiles by interpolation."""
    after = bisect_left(quantiles, value)
    if after in (0, len(quantiles)):
        return float(after > 0)
    before, next_one = quantiles[after - 1 : after + 1]
    return (after - 1 + (value - before) / (next_one - before)) / (len(quantiles) - 1)
