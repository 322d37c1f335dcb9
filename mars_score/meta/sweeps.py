"""MARS under other settings (the paper's Table 5): those that only recombine kept similarities cost nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mars_score.scoring.result import ReferenceScore, RowScore, weighted_sum
from mars_score.scoring.terms import combine_augmentations, combine_references

_SAME = 1e-9  # mask ratios are multiples of a step


@dataclass(frozen=True, order=True)
class Combination:
    """How similarities become a score.

    Attributes:
        max_mask_ratio: augmentations of larger ratios are left out.
        mask_ratio_step: those of ratios that are no multiple of it, too.
        augmentation_aggregation: see ``SimilaritySettings``.
        q: likewise; of no effect with "best".
        reference_aggregation: see ``SimilaritySettings``.
    """

    max_mask_ratio: float
    mask_ratio_step: float
    augmentation_aggregation: str
    q: float
    reference_aggregation: str


QS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
# Of what there is with mask ratios of .2, .4 and .6.
COMBINATIONS = tuple(
    Combination(max_ratio, step, *combined, of_references)
    for max_ratio, step, combined, of_references in product(
        (0.2, 0.4, 0.6), (0.2, 0.4, 0.6), [("best", 1.0), *(("weighted", q) for q in QS)], ("max", "mean")
    )
    if step <= max_ratio
)
# Settings of infills, of which each value needs the language model again; run on a sample.
VARIANTS = (
    "mars",
    "mars[max_mask_ratio=0.6]",
    *(
        f"mars[max_mask_ratio=0.6,{changes}]"
        for changes in (
            "sigma=0",
            "sigma=6",
            'pos_weights={"ADJ":4,"ADV":3,"NOUN":2,"PROPN":2}',
            'pos_weights={"PUNCT":0.1}',
            "planner=self",
            "planner=self,plan_step=0.01",
            "planner=self,plan_step=0.04",
            "planner=self,plan_iterations=1",
            "planner=self,plan_norm_exponent=1.5",
            "planner=self,plan_fusion=0.9",
        )
    ),
)


def recombined(details: Sequence[RowScore], how: Combination) -> NDArray[np.float64]:
    """Scores (items,) under another combination, from the similarities of each item with all its references.

    Equal to what a scorer with these settings gives, where the ratios that it needs are there, and no samples.
    """
    return np.array([_score(row, how) for row in details])


def _score(row: RowScore, how: Combination) -> float:
    if not row.references:  # a blank candidate
        return row.score
    scores = [
        combine_augmentations(_similarities(reference, how), how.augmentation_aggregation, how.q)
        for reference in row.references
    ]
    of_references, *others = row.terms
    value = combine_references(scores, how.reference_aggregation)
    return of_references.weight * value + weighted_sum(others)


def _similarities(reference: ReferenceScore, how: Combination) -> list[float]:
    """With the human reference, and with those of its augmentations that count."""
    first, *others = reference.similarities
    chosen = [
        similarity
        for one, similarity in zip(reference.augmented.augmentations, others, strict=True)
        if one.mask_ratio <= how.max_mask_ratio + _SAME and _is_multiple(one.mask_ratio, how.mask_ratio_step)
    ]
    return [first, *chosen]


def _is_multiple(ratio: float, step: float) -> bool:
    return abs(ratio / step - round(ratio / step)) < _SAME


@dataclass(frozen=True)
class Choice:
    """A choice among alternatives, made on other sets than those it is reported on.

    Attributes:
        best: the alternative with the best mean over all sets.
        mean: this mean.
        left_out: by set, the alternative that is best on the mean of the other sets, and its figure on this one.
    """

    best: str
    mean: float
    left_out: Mapping[str, tuple[str, float]]


def choose(figures: Mapping[str, Mapping[str, float]]) -> Choice:
    """Choose by the mean over sets, and by leaving each set out in turn.

    Args:
        figures: by alternative and set; larger is better. Sets with NaN anywhere are left out.

    Raises:
        ValueError: fewer than two sets have all figures.
    """
    alternatives = list(figures)
    sets = [
        one for one in next(iter(figures.values())) if all(figures[a][one] == figures[a][one] for a in figures)
    ]
    if len(sets) < 2:
        raise ValueError(f"a choice that leaves a set out needs two sets or more, got {len(sets)}")

    def best(among: Sequence[str]) -> str:
        return max(alternatives, key=lambda one: float(np.mean([figures[one][name] for name in among])))

    left_out = {}
    for name in sets:
        chosen = best([other for other in sets if other != name])
        left_out[name] = chosen, figures[chosen][name]
    overall = best(sets)
    return Choice(overall, float(np.mean([figures[overall][name] for name in sets])), left_out)
