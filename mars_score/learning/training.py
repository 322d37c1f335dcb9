"""Ratings to learn from, and training of the head ``"terms"``: MARS's score and a small correction of it.

The correction is a weighted sum of features of a row (:meth:`mars_score.learning.heads.TermsHead.features`).
The weights maximise the mean correlation with the ratings, minus a penalty for their squares that falls with the
number of groups per set, so that few ratings change little. A likely text never costs anything, and repetition
never gains anything.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mars_score.learning.heads import (
    KIND,
    NEVER_SET,
    HeadFolder,
    TermFeatures,
    TermsHead,
    check_head_folder,
    write_head,
)
from mars_score.meta.sets import RatedColumns, check_names, read_rated_sets
from mars_score.models.sources import locate
from mars_score.rows import Row, weighted_sum
from mars_score.scorer import MarsScorer

Floats = NDArray[np.float64]
MIN_GROUPS = 10
MIN_RATINGS = 20
# The least and the largest weight that each feature may get.
BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "repetition": (None, 0),
    "length": (None, None),
    "copied": (None, None),
    "log_probability": (0, None),
    "pmi": (0, None),
}
PENALTY = 10.0  # chosen by left-out sets (research/learning.md)
_CONSTANT = 1e-9  # a smaller spread is what rounding leaves of equal values


@dataclass(frozen=True)
class TrainingSet:
    """The rated candidates of a data set.

    Attributes:
        name: of the data set.
        rows: checked rows, no candidate blank.
        ratings: (rows,), of standard deviation 1; mean 0 in the set, with ``within_groups`` in each group.
        groups: of each row, what must not be split between training and test.
        within_groups: whether ratings compare within a group only.
    """

    name: str
    rows: tuple[Row, ...]
    ratings: Floats
    groups: tuple[str, ...]
    within_groups: bool = False

    def summary(self) -> dict[str, Any]:
        """Return name and sizes, no texts: what a head says about what it was trained on."""
        sizes = {"ratings": len(self.rows), "groups": len(set(self.groups))}
        return {"name": self.name, **sizes, "within_groups": self.within_groups}

    def prepared_rows(self, scorer: MarsScorer) -> list[Row]:
        """Return the rows as a scorer takes them; ValueError where they have samples that it does not use."""
        scorer.check_inputs(has_references=True, has_samples=any(row.samples for row in self.rows))
        rows = self.rows
        if not scorer.settings.use_context:
            rows = tuple(replace(row, context="", task="text") for row in rows)
        return [scorer.prepare(row)[0] for row in rows]


def read_training_sets(
    paths: Sequence[str | os.PathLike[str]],
    columns: RatedColumns,
    *,
    within_groups: Sequence[str] = (),
    task: str | None = None,
) -> list[TrainingSet]:
    """Read files of rated candidates.

    Args:
        paths: the files; the sets are named after them.
        columns: names of their columns.
        within_groups: the sets whose ratings compare within a group only.
        task: what the contexts are; None: as their type says.

    Raises:
        TypeError, ValueError: a fault of a file, too few ratings, or an unknown set.
    """
    tasks = {Path(path).stem: task for path in paths} if task else None
    sets = read_rated_sets(paths, columns, tasks=tasks)
    check_names("data set", within_groups, [rated.name for rated in sets])
    return [
        training_set(
            rated.name, rated.rows, rated.ratings, rated.groups, within_groups=rated.name in within_groups
        )
        for rated in sets
    ]


def training_set(
    name: str, rows: Sequence[Row], ratings: Sequence[float], groups: Sequence[str], *, within_groups: bool = False
) -> TrainingSet:
    """Make a set to learn from: its ratings are standardised, as each set has a scale of its own.

    Args:
        name: of the data set.
        rows: checked rows; those with a blank candidate are left out.
        ratings: of each row.
        groups: of each row; candidates of a group share context and references.
        within_groups: whether ratings compare within a group only; a group of one is left out then.

    Raises:
        ValueError: there are too few ratings, or only equal ones.
    """
    kept = [bool(row.candidate.strip()) for row in rows]
    if within_groups:
        sizes = Counter(compress(groups, kept))
        kept = [keep and sizes[group] > 1 for keep, group in zip(kept, groups, strict=True)]
    labels, values = tuple(compress(groups, kept)), np.array(list(compress(ratings, kept)), dtype=np.float64)
    if len(values) < MIN_RATINGS or len(set(labels)) < MIN_GROUPS:
        raise ValueError(
            f"{name}: {len(values)} ratings in {len(set(labels))} groups that can be learned from, of at least "
            f"{MIN_RATINGS} in {MIN_GROUPS} groups (contexts); rate more candidates, or leave the file out"
        )
    (offsets,) = centred((values,), labels if within_groups else None)
    spread = float(offsets.std())
    if spread <= _CONSTANT * max(1.0, float(np.abs(values).max())):
        where = " within every group" if within_groups else ""
        raise ValueError(f"{name}: all ratings are equal{where}, so there is nothing to learn; leave it out")
    return TrainingSet(name, tuple(compress(rows, kept)), offsets / spread, labels, within_groups)


def centred(columns: Sequence[Floats], groups: Sequence[str] | None = None) -> tuple[Floats, ...]:
    """Subtract from each column its mean, in each group where there are groups."""
    codes = np.zeros(len(columns[0]), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    centre = np.eye(codes.max() + 1)[codes] / np.bincount(codes)
    return tuple(column - (centre.T @ column)[codes] for column in columns)


def train_terms(scorer: MarsScorer, folder: str | os.PathLike[str], sets: Sequence[TrainingSet]) -> HeadFolder:
    """Train a head "terms" on ratings and save it, for use with the models and settings of the scorer only."""
    check_head_folder(folder)
    settings = scorer.settings
    weights = learn_weights(sets, [term_features(scorer, data) for data in sets])
    return write_head(
        folder,
        {name: np.array([weight]) for name, weight in weights.items()},
        kind=KIND,
        models={name: str(locate(getattr(settings.models, name))) for name in settings.used_models},
        settings={name: value for name, value in settings.items() if name not in NEVER_SET},
        parameters={"penalty": PENALTY},
        learned_from=[data.summary() for data in sets],
    )


def term_features(scorer: MarsScorer, data: TrainingSet) -> list[TermFeatures]:
    """Compute the features of a set's rows for the head "terms"."""
    rows = data.prepared_rows(scorer)
    return TermsHead({}, scorer.settings, scorer.calls).features(rows, scorer.row_scores(rows))


def learn_weights(
    sets: Sequence[TrainingSet], features: Sequence[Sequence[TermFeatures]], penalty: float = PENALTY
) -> dict[str, float]:
    """Learn the weights of features that ratings ask for, by name; those of weight 0 are left out.

    Args:
        sets: ratings.
        features: of each row of each set.
        penalty: a larger one keeps the score nearer to MARS's own.
    """
    parts = []
    for data, rows in zip(sets, features, strict=True):
        scores = np.array([weighted_sum(terms) for terms, _ in rows])
        known = [{term.name: term.value for term in terms} | values for terms, values in rows]
        matrix = np.array([[row.get(name, 0.0) for name in BOUNDS] for row in known])
        groups = data.groups if data.within_groups else None
        parts.append((*centred((matrix, scores, data.ratings), groups), len(set(data.groups))))
    weights = fit_weights(parts, list(BOUNDS.values()), penalty)
    return {name: weight for name, weight in zip(BOUNDS, weights.tolist(), strict=True) if weight}


def fit_weights(
    parts: Sequence[tuple[Any, ...]], bounds: Sequence[tuple[float | None, float | None]], penalty: float
) -> Floats:
    """Fit the weights of features beside MARS's score.

    They maximise the mean over sets of Pearson's r of ``scores + features @ weights`` with the ratings, minus
    ``penalty`` by the mean number of groups of a set times the sum of their squares, in units in which features
    and scores vary alike.

    Args:
        parts: of each set its features (rows, features), scores (rows,) and ratings (rows,), all centred, and its
            number of groups.
        bounds: the least and the largest weight of each feature.
        penalty: see above.

    Returns:
        The weights, (features,).
    """
    spread = np.sqrt(np.mean([(features**2).mean(axis=0) for features, *_ in parts], axis=0))
    score_spread = np.sqrt(np.mean([(scores**2).mean() for _, scores, *_ in parts]))
    unit = np.divide(score_spread, spread, out=np.zeros_like(spread), where=spread > _CONSTANT)
    strength = penalty * len(parts) / sum(groups for *_, groups in parts)

    def loss(weights: Floats) -> float:
        correlations = []
        for features, base, ratings, _ in parts:
            scores = base + features @ (weights * unit)
            size = np.sqrt((scores @ scores) * (ratings @ ratings))
            correlations.append(scores @ ratings / size if size > 0 else 0.0)
        return float(strength * (weights @ weights) - np.mean(correlations))

    start = np.zeros_like(unit)
    weights: Floats = minimize(loss, start, jac="3-point", bounds=bounds, method="L-BFGS-B").x * unit
    return weights
