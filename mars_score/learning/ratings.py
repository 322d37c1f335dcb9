"""Rated sets as data to learn from: ratings on one scale, checked."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.validation import Row
from mars_score.meta.rated import RatedSet, check_names

Floats = NDArray[np.float64]
FEWEST_GROUPS = 10
FEWEST_RATINGS = 20


@dataclass(frozen=True)
class TrainingSet:
    """The rated candidates of a data set."""

    name: str
    rows: tuple[Row, ...]  # without outer whitespace, no candidate blank
    ratings: Floats  # (rows,), of standard deviation 1; mean 0 in the set, with within_groups in each group
    groups: tuple[str, ...]  # of each row: what must not be split between training and test
    within_groups: bool = False  # whether ratings compare within a group only

    def summary(self) -> dict[str, Any]:
        """Name and sizes, no texts: what a head says about what it was trained on."""
        sizes = {"ratings": len(self.rows), "groups": len(set(self.groups))}
        return {"name": self.name, **sizes, "within_groups": self.within_groups}


def training_sets(sets: Sequence[RatedSet], within_groups: Collection[str] = ()) -> list[TrainingSet]:
    """Rated sets with their ratings standardised, as each has a scale of its own.

    ``within_groups`` names the sets whose ratings compare within a group only. A set with too few ratings, or only
    equal ones, and an unknown name are a ValueError.
    """
    check_names("data set", within_groups, [data.name for data in sets])
    return [_training_set(data, data.name in within_groups) for data in sets]


def centred(columns: Sequence[Floats], groups: Sequence[str] | None = None) -> tuple[Floats, ...]:
    """Each column minus its mean, in each group where there are groups."""
    codes = np.zeros(len(columns[0]), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    centre = np.eye(codes.max() + 1)[codes] / np.bincount(codes)
    return tuple(column - (centre.T @ column)[codes] for column in columns)


def _training_set(data: RatedSet, within_groups: bool) -> TrainingSet:
    data = data.where([bool(row.candidate.strip()) for row in data.rows])
    if within_groups:
        sizes = Counter(data.groups)
        data = data.where([sizes[group] > 1 for group in data.groups])  # a group of one compares with nothing
    ratings, groups = np.array(data.ratings, dtype=np.float64), tuple(data.groups)
    if len(ratings) < FEWEST_RATINGS or len(set(groups)) < FEWEST_GROUPS:
        raise ValueError(
            f"{data.name}: {len(ratings)} ratings in {len(set(groups))} groups that can be learned from; "
            f"{FEWEST_RATINGS} in {FEWEST_GROUPS} groups (contexts) are needed: rate more candidates, or leave "
            "the file out"
        )
    (offsets,) = centred((ratings,), groups if within_groups else None)
    spread = float(offsets.std())
    if spread <= 1e-9 * max(1.0, float(np.abs(ratings).max())):
        where = " within every group" if within_groups else ""
        raise ValueError(f"{data.name}: all ratings are equal{where}, so there is nothing to learn; leave it out")
    rows = tuple(row._replace(candidate=row.candidate.strip(), context=row.context.strip()) for row in data.rows)
    return TrainingSet(data.name, rows, offsets / spread, groups, within_groups)
