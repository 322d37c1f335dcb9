"""Read ratings, and train the head ``"terms"``, a small correction of MARS's score.

The correction is a weighted sum of features of a row (:meth:`mars_score.heads.TermsHead.features`). Training
maximises the mean correlation with the ratings, minus a penalty on squared weights that falls with the number of
groups per set, so that few ratings change little. Bounds keep likelihood from lowering and repetition from raising
the score.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from mars_score.heads import (
    KIND,
    NEVER_SET,
    HeadFolder,
    TermFeatures,
    TermsHead,
    check_head_folder,
    write_head,
)
from mars_score.meta.sets import check_names, read_rated_sets
from mars_score.models.loading import locate
from mars_score.rows import Row, weighted_sum
from mars_score.scorer import MarsScorer
from mars_score.stats.resampling import Floats

Columns = tuple[Floats, Floats, Floats, int]  # features, scores and ratings of a set, centred; number of groups
MIN_GROUPS = 10
MIN_RATINGS = 20
# Lower and upper bound of each feature's weight.
BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "repetition": (None, 0),
    "length": (None, None),
    "copied": (None, None),
    "log_probability": (0, None),
    "pmi": (0, None),
}
PENALTY = 10.0  # chosen on held-out sets (research/learning.md)
_CONSTANT = 1e-9  # a smaller spread is due to rounding


@dataclass(frozen=True)
class TrainingSet:
    """The rated candidates of a data set.

    Attributes:
        name: name of the data set.
        rows: checked rows without blank candidates.
        ratings: (rows,), of standard deviation 1, and of mean 0 in the set or, if ``within_groups``, the group.
        groups: group of each row. A group must not be split between training and test.
        within_groups: whether ratings are comparable within a group only.
    """

    name: str
    rows: tuple[Row, ...]
    ratings: Floats
    groups: tuple[str, ...]
    within_groups: bool = False

    def summary(self) -> dict[str, object]:
        """Return name and sizes, without texts, for the description of a head."""
        sizes = {"ratings": len(self.rows), "groups": len(set(self.groups))}
        return {"name": self.name, **sizes, "within_groups": self.within_groups}

    def prepared_rows(self, scorer: MarsScorer) -> list[Row]:
        """Return the rows as a scorer takes them. Raise ValueError if it does not use their samples."""
        scorer.check_inputs(has_references=True, has_samples=any(row.samples for row in self.rows))
        rows = self.rows
        if not scorer.settings.use_context:
            rows = tuple(replace(row, context="", task="text") for row in rows)
        return [scorer.variant.prepare(row)[0] for row in rows]


def read_training_sets(
    paths: Sequence[str | os.PathLike[str]],
    columns: Mapping[str, str],
    *,
    within_groups: Sequence[str] = (),
    task: str | None = None,
) -> list[TrainingSet]:
    """Read files of rated candidates.

    Args:
        paths: the files. The sets are named after them.
        columns: as for :func:`mars_score.meta.sets.read_rated_set`.
        within_groups: names of the sets whose ratings are comparable within a group only.
        task: task of all rows, or None to take it from the type of each context.

    Raises:
        TypeError, ValueError: a file is faulty, there are too few ratings, or a set is unknown.
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
    """Make a training set with standardised ratings, as the scales of sets differ.

    Args:
        name: name of the data set.
        rows: checked rows. Those with a blank candidate are left out.
        ratings: rating of each row.
        groups: group of each row. The candidates of a group share context and references.
        within_groups: whether ratings are comparable within a group only. Groups of one row are then left out.

    Raises:
        ValueError: there are too few ratings, or all are equal.
    """
    kept = [bool(row.candidate.strip()) for row in rows]
    if within_groups:
        sizes = Counter(compress(groups, kept))
        kept = [keep and sizes[group] > 1 for keep, group in zip(kept, groups, strict=True)]
    labels, values = tuple(compress(groups, kept)), np.array(list(compress(ratings, kept)), dtype=np.float64)
    if len(values) < MIN_RATINGS or len(set(labels)) < MIN_GROUPS:
        raise ValueError(
            f"{name}: {len(values)} ratings in {len(set(labels))} groups (contexts) to learn from, but training "
            f"needs {MIN_RATINGS} in {MIN_GROUPS} groups; rate more candidates, or leave the file out"
        )
    (offsets,) = centred((values,), labels if within_groups else None)
    spread = float(offsets.std())
    if spread <= _CONSTANT * max(1.0, float(np.abs(values).max())):
        where = " within every group" if within_groups else ""
        raise ValueError(f"{name}: all ratings are equal{where}, so there is nothing to learn; leave it out")
    return TrainingSet(name, tuple(compress(rows, kept)), offsets / spread, labels, within_groups)


def centred(columns: Sequence[Floats], groups: Sequence[str] | None = None) -> tuple[Floats, ...]:
    """Subtract from each column its mean, or the mean of each group."""
    codes = np.zeros(len(columns[0]), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    centre = np.eye(codes.max() + 1)[codes] / np.bincount(codes)
    return tuple(column - (centre.T @ column)[codes] for column in columns)


def train_terms(scorer: MarsScorer, folder: str | os.PathLike[str], sets: Sequence[TrainingSet]) -> HeadFolder:
    """Train a head "terms" for the models and settings of a scorer, and save it."""
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
    """Learn the weights of features from ratings, leaving out weights of 0.

    Args:
        sets: the training sets.
        features: features of each row of each set.
        penalty: factor of the squared weights. A larger one keeps the score nearer to MARS's.
    """
    columns = [_columns(data, rows) for data, rows in zip(sets, features, strict=True)]
    weights = fit_weights(columns, list(BOUNDS.values()), penalty)
    return {name: weight for name, weight in zip(BOUNDS, weights.tolist(), strict=True) if weight}


def _columns(data: TrainingSet, rows: Sequence[TermFeatures]) -> Columns:
    scores = np.array([weighted_sum(terms) for terms, _ in rows])
    known = [{term.name: term.value for term in terms} | values for terms, values in rows]
    matrix = np.array([[values.get(name, 0.0) for name in BOUNDS] for values in known])
    groups = data.groups if data.within_groups else None
    matrix, scores, ratings = centred((matrix, scores, data.ratings), groups)
    return matrix, scores, ratings, len(set(data.groups))


def fit_weights(
    sets: Sequence[Columns], bounds: Sequence[tuple[float | None, float | None]], penalty: float
) -> Floats:
    """Fit the weights of features that are added to MARS's score.

    They maximise the mean over sets of Pearson's r of ``scores + features @ weights`` with the ratings, minus the
    sum of squared weights times ``penalty`` divided by the mean number of groups of a set. For the squares,
    features are scaled to vary as much as the scores.

    Args:
        sets: of each set the features (rows, features), scores (rows,) and ratings (rows,), all centred, and the
            number of groups.
        bounds: lower and upper bound of each weight.
        penalty: factor of the squared weights.

    Returns:
        The weights, (features,).
    """
    spread = np.sqrt(np.mean([(features**2).mean(axis=0) for features, *_ in sets], axis=0))
    score_spread = np.sqrt(np.mean([(scores**2).mean() for _, scores, *_ in sets]))
    unit = np.divide(score_spread, spread, out=np.zeros_like(spread), where=spread > _CONSTANT)
    strength = penalty * len(sets) / sum(groups for *_, groups in sets)

    def loss(weights: Floats) -> float:
        correlations = []
        for features, base, ratings, _ in sets:
            scores = base + features @ (weights * unit)
            size = np.sqrt((scores @ scores) * (ratings @ ratings))
            correlations.append(scores @ ratings / size if size > 0 else 0.0)
        return float(strength * (weights @ weights) - np.mean(correlations))

    start = np.zeros_like(unit)
    weights: Floats = minimize(loss, start, jac="3-point", bounds=bounds, method="L-BFGS-B").x * unit
    return weights
