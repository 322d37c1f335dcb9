"""Rated sets as data to learn from: ratings on one scale, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mars_score.data.rated import RatedSet, check_names
from mars_score.data.validation import Row
from mars_score.stats.labels import Floats

T = TypeVar("T")
FEWEST_GROUPS = 10
FEWEST_RATINGS = 20
_GAP = 3.0  # the gap between two scales: of the groups' largest ratings, as a factor
_SHARE = 0.1  # of the groups on either side of it


@dataclass(frozen=True)
class TrainingSet:
    """The rated candidates of a data set, none of which is blank.

    Attributes:
        name: of the set.
        rows: candidate, references and context of each.
        ratings: of each, standardised: mean 0 and standard deviation 1 in the set. With ``within_groups`` the
            mean is 0 in each group.
        groups: of each: what must not be split between training and test.
        within_groups: whether ratings compare within a group only.
        task: what a candidate is to its context; None: by the form of the context.
    """

    name: str
    rows: tuple[Row, ...]
    ratings: Floats
    groups: tuple[str, ...]
    within_groups: bool = False
    task: str | None = None

    def take(self, indices: Sequence[int]) -> TrainingSet:
        """Some of its rows; their ratings stay as they are."""
        return TrainingSet(
            self.name,
            tuple(self.rows[index] for index in indices),
            self.ratings[list(indices)],
            tuple(self.groups[index] for index in indices),
            self.within_groups,
            self.task,
        )


def training_sets(sets: Sequence[RatedSet], within_groups: Collection[str] = ()) -> list[TrainingSet]:
    """Rated sets with their ratings standardised, as each has a scale of its own.

    Args:
        sets: from :func:`mars_score.data.rated.read_rated_sets`.
        within_groups: names of the sets whose ratings compare within a group only.

    Raises:
        ValueError: no set has ratings that differ, or one has too few of them or mixed scales; an unknown name.
    """
    check_names("data set", within_groups, [one.name for one in sets])
    return [_training_set(one, one.name in within_groups) for one in sets]


def _training_set(data: RatedSet, within_groups: bool) -> TrainingSet:
    kept = [item for item in data.items if item.row[0].strip()]
    groups = tuple(item.group for item in kept)
    ratings = np.array([item.rating for item in kept], dtype=np.float64)
    _check_scale(data.name, ratings, groups)
    if within_groups:
        codes = np.unique(groups, return_inverse=True)[1]
        ratings = ratings - (np.bincount(codes, ratings) / np.bincount(codes))[codes]
        informative = [bool(one) for one in np.bincount(codes)[codes] > 1]
        kept, groups = _only(kept, informative), tuple(_only(groups, informative))
        ratings = ratings[informative]
    _check_number(data.name, len(ratings), len(set(groups)), within_groups)
    spread = float(ratings.std())
    if spread <= 1e-9 * max(1.0, float(np.abs(ratings).max())):
        where = " within every group" if within_groups else ""
        raise ValueError(f"{data.name}: all ratings are equal{where}, so there is nothing to learn; leave it out")
    return TrainingSet(
        data.name,
        tuple(item.row for item in kept),
        (ratings - ratings.mean()) / spread,
        groups,
        within_groups,
        data.task,
    )


def _only(values: Sequence[T], wanted: Sequence[bool]) -> list[T]:
    return [value for value, want in zip(values, wanted, strict=True) if want]


def _check_number(name: str, ratings: int, groups: int, within_groups: bool) -> None:
    of_two = " of two or more candidates" if within_groups else ""
    if ratings < FEWEST_RATINGS or groups < FEWEST_GROUPS:
        raise ValueError(
            f"{name}: {ratings} ratings in {groups} groups{of_two}; at least {FEWEST_RATINGS} ratings in "
            f"{FEWEST_GROUPS} groups (contexts) are needed, so rate more candidates or leave the file out"
        )


def _check_scale(name: str, ratings: Floats, groups: Sequence[str]) -> None:
    """Raise ValueError where the largest ratings of the groups fall into two classes far apart."""
    best: dict[str, float] = {}
    for group, rating in zip(groups, ratings.tolist(), strict=True):
        best[group] = max(rating, best.get(group, rating))
    values = np.sort([value for value in best.values() if value > 0])
    if len(values) < FEWEST_GROUPS:
        return
    edge = max(1, round(_SHARE * len(values)))
    ratios = values[1:] / values[:-1]
    place = edge - 1 + int(np.argmax(ratios[edge - 1 : len(values) - edge]))
    if ratios[place] >= _GAP:
        low, high = values[place], values[place + 1]
        raise ValueError(
            f"{name}: the ratings look like two scales: the best candidate of some groups has {low:g} or less, of "
            f"the others {high:g} or more; put each scale into a file of its own"
        )
