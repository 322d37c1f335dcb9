"""The worth of augmentations in human references, on rows with several of them.

MARS is computed again with 1, 2, 4, ... of a row's human references and no augmentations; and with one human
reference and augmentations. Where the agreement of the second lies on the curve of the first is their worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mars_score.data.rated import Item, RatedSet
from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.base import Models
from mars_score.meta.metrics.mars import Mars
from mars_score.settings import Settings
from mars_score.stats.correlation import at_level, correlation
from mars_score.stats.draws import Interval, Statistic, resample, too_few
from mars_score.stats.labels import Floats
from mars_score.stats.resampling import MainLevel, group_sums, pearson_of_sums
from mars_score.store.results import digest

CHOICES = 4
_HUMAN = "samples=0,max_mask_ratio=0"
_INFILLED = 0.6  # largest mask ratio of infilled references where the settings make none


@dataclass(frozen=True)
class PartialAgreement:
    """Agreement of MARS with the ratings when it knows some of the human references.

    Attributes:
        value: Pearson's r at the main level, the mean over the choices of references; or NaN.
        interval: from resamples of groups.
        n: the items it rests on.
        worth: human references without augmentations that reach ``value``, interpolated; NaN where it is not
            asked for, or where more of them do not agree better. At least 1 and at most as many as were tried.
        worth_interval: from the same resamples.
    """

    value: float
    interval: Interval
    n: int
    worth: float = np.nan
    worth_interval: Interval = field(default_factory=lambda: Interval(reason="human references alone"))


@dataclass(frozen=True)
class Worth:
    """What augmentations are worth on a set.

    Attributes:
        references: by number of human references, from rows that have as many.
        beside_one: by kind of augmentations, beside one human reference.
        choices: of references within a row, over which agreement is averaged.
        reason: why there is nothing; None otherwise.
    """

    references: Mapping[int, PartialAgreement]
    beside_one: Mapping[str, PartialAgreement]
    choices: int
    reason: str | None = None


def worth_metrics(models: Models) -> dict[str, Mars]:
    """MARS without augmentations (named ""), then with each kind of them.

    Raises:
        ValueError, TypeError: as :class:`mars_score.meta.metrics.mars.Mars`.
    """
    return {name: Mars(models, name, changes) for name, changes in _kinds(models.settings).items()}


def _kinds(settings: Settings) -> dict[str, str]:
    infills = f"max_mask_ratio={settings.masking.max_mask_ratio or _INFILLED}"
    kinds = {"": _HUMAN, "infills": f"samples=0,{infills}"}
    if settings.use_context and settings.sampling.samples:
        kinds |= {"samples": "max_mask_ratio=0", "samples and infills": infills}
    return kinds


def worth(
    data: RatedSet,
    metrics: Mapping[str, Mars],
    level: MainLevel = "items",
    *,
    choices: int = CHOICES,
    resamples: int = 1000,
    seed: int = 0,
) -> Worth:
    """What augmentations are worth on the items with two references or more.

    The numbers of references are 1, 2, 4, ... up to the largest that half of these items have, which is the last.

    Args:
        data: the set.
        metrics: of :func:`worth_metrics`.
        level: of agreement.
        choices: of references within a row.
        resamples: of the intervals.
        seed: of choices and resamples.
    """
    items = [item for item in data.items if len(item.row[1]) > 1]
    if not items:
        return Worth({}, {}, choices, "no item has more than one reference")
    most = sorted(len(item.row[1]) for item in items)[len(items) // 2]
    numbers = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    kinds = [name for name in metrics if name]
    try:
        points = [
            _point(data, items, metrics[name], level, number, choices, seed)
            for name, number in [*(("", number) for number in numbers), *((name, 1) for name in kinds)]
        ]
    except (ModelUnavailableError, ImportError) as error:
        return Worth({}, {}, choices, " ".join(str(error).split()))

    def statistic(counts: Floats) -> Floats:
        return np.stack([point.statistic(counts) for point in points], axis=1)

    groups = len({item.group for item in items})
    values = np.array([[point.value for point in points]])
    resampled = resample(statistic, groups, resamples, seed)
    reason = too_few(groups)

    def interval(of_resamples: Floats) -> Interval:
        return Interval(reason=reason) if reason else Interval.of(of_resamples)

    agreements = [
        PartialAgreement(point.value, interval(of_point), point.n)
        for point, of_point in zip(points, resampled.T, strict=True)
    ]
    beside_one = {}
    for place, name in enumerate(kinds, len(numbers)):
        (found,), of_resamples = (_worths(rows, place, numbers) for rows in (values, resampled))
        beside_one[name] = replace(agreements[place], worth=float(found), worth_interval=interval(of_resamples))
    return Worth(dict(zip(numbers, agreements, strict=False)), beside_one, choices)


def choose_references(row: Row, number: int, choice: int, seed: int) -> tuple[str, ...]:
    """Some of a row's references, in their order; the same for all candidates of a context and its references.

    References are put into a circle in random order, of which each choice takes the next ``number``: choices
    overlap as little as can be, and one with more references holds those of the one with fewer.
    """
    _, references, context = row
    random = np.random.default_rng(int.from_bytes(digest(seed, references, context)))
    circle = random.permutation(len(references))
    return tuple(references[place] for place in sorted(np.roll(circle, -choice)[:number]))


class _Point(NamedTuple):
    """Agreement under one metric with one number of references, the mean over the choices."""

    value: float
    n: int
    statistic: Statistic  # of draws from the groups of all items


def _point(
    data: RatedSet, items: Sequence[Item], metric: Mars, level: MainLevel, number: int, choices: int, seed: int
) -> _Point:
    """Agreement over the items with as many references."""
    known = [item for item in items if len(item.row[1]) >= number]
    rows = [
        (item.row[0], choose_references(item.row, number, choice, seed), item.row[2])
        for choice in range(choices)
        for item in known
    ]
    scores = np.reshape(metric.result(rows, data.corpus, data.task).scores, (choices, len(known)))
    ratings, groups = [item.rating for item in known], [item.group for item in known]
    estimates = [correlation(of_choice, ratings, level=level, groups=groups) for of_choice in scores]
    rated = [at_level(of_choice, ratings, level, groups=groups) for of_choice in scores]
    sums = [group_sums(of_choice.scores, of_choice) for of_choice in rated]
    drawn = np.isin(sorted({item.group for item in items}), groups)  # the groups of these items among all
    return _Point(
        float(np.mean([one.value for one in estimates])),
        estimates[0].n,
        lambda counts: np.mean([pearson_of_sums(counts[:, drawn] @ of_choice) for of_choice in sums], axis=0),
    )


def _worths(rows: Floats, place: int, numbers: Sequence[int]) -> Floats:
    """Of each row of agreements the number of references that reaches the one at ``place``."""
    return np.array([_interpolated(row[place], row[: len(numbers)], numbers) for row in rows])


def _interpolated(value: float, curve: Floats, numbers: Sequence[int]) -> float:
    """The smallest number, interpolated, at which a curve reaches a value; NaN where it never rises."""
    rising = [place for place, one in enumerate(curve) if place == 0 or one > max(curve[:place])]
    if len(rising) == 1 or np.isnan([value, *curve]).any():
        return np.nan
    return float(np.interp(value, curve[rising], [numbers[place] for place in rising]))
