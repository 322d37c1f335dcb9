"""Scores and ratings of items, checked, with labels of groups and systems as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mars_score.stats.weighted import Codes, Floats

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["items", "within_groups", "systems"]
MainLevel = Literal["items", "within_groups"]  # at which there are intervals and tests
Values = Sequence[float] | NDArray[Any]
Labels = Sequence[str] | Sequence[int] | NDArray[Any]


@dataclass(frozen=True)
class Rated:
    """Scores and ratings with what a coefficient at a level needs; labels are numbers 0, 1, ..."""

    scores: Floats
    ratings: Floats
    level: Level
    groups: Codes
    systems: Codes

    @classmethod
    def of(
        cls,
        scores: Values,
        ratings: Values,
        level: Level,
        groups: Labels | None,
        systems: Labels | None,
    ) -> Rated:
        """Checked: one score, rating and label per item. Without labels each item is a group, of one system."""
        check_known("level", level, ("items", "within_groups", "systems"))
        score, rating = (np.asarray(values, dtype=np.float64) for values in (scores, ratings))
        if score.ndim != 1 or score.shape != rating.shape:
            raise ValueError(f"one score and one rating per item, got shapes {score.shape} and {rating.shape}")
        count = len(score)
        if (level == "within_groups" and groups is None) or (level == "systems" and systems is None):
            raise ValueError(f'level "{level}" needs {"systems" if level == "systems" else "groups"}')
        return cls(
            score,
            rating,
            level,
            np.arange(count) if groups is None else codes_of("groups", groups, count)[1],
            np.zeros(count, dtype=np.int64) if systems is None else codes_of("systems", systems, count)[1],
        )

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def system_count(self) -> int:
        """How many systems there are."""
        return int(self.systems.max(initial=-1)) + 1


def check_known(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def codes_of(name: str, labels: Labels, count: int) -> tuple[list[str | int], Codes]:
    """The sorted labels, and the place of each item's label among them.

    Sorted, so that the same seed draws the same groups in whatever order the items come.
    """
    listed = list(labels)
    if len(listed) != count:
        raise ValueError(f"{name} must be one label per item, got {len(listed)} for {count} items")
    # Checked one by one: numpy would make a missing label (None, NaN) among strings the label "nan".
    if not any(all(isinstance(label, kind) for label in listed) for kind in (str, int | np.integer)):
        raise ValueError(f"{name} must be all strings or all integers")
    names, codes = np.unique(np.array(listed, dtype=None if listed else np.int64), return_inverse=True)
    return names.tolist(), codes.astype(np.int64)
