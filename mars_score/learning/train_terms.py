"""Training of the head ``"terms"``: MARS's score and a small correction of it that ratings ask for.

The correction is a weighted sum of features of a row (:func:`mars_score.learning.heads.make_example`). Weights are
those with the largest mean correlation with the ratings, minus a penalty for their squares that falls with the
number of groups per set: few ratings change little. What is a merit by its meaning never gets a negative weight,
and repetition never a positive one.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mars_score.learning.heads import HeadFolder, write_head
from mars_score.learning.ratings import Floats, TrainingSet, centred
from mars_score.models.fingerprints import fingerprint
from mars_score.scorer import MarsScorer
from mars_score.scoring.row import Example, weighted_sum

# The least and the largest weight that each feature may get.
BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "repetition": (None, 0),
    "length": (None, None),
    "copied": (None, None),
    "log_probability": (0, None),
    "lift": (0, None),
}
PENALTY = 10.0  # chosen by left-out sets (research/learning.md)
_CONSTANT = 1e-9  # spread up to which a feature says nothing
_NOT_OF_THE_FORM = {"idf_corpus", "task", "learned"}  # settings that do not change what a term means


def train_terms(scorer: MarsScorer, folder: str | os.PathLike[str], sets: Sequence[TrainingSet]) -> HeadFolder:
    """Train a head "terms" on ratings and save it, for use with the models and settings of the scorer only."""
    weights = learn_weights(sets, [scorer.examples(data.rows) for data in sets])
    settings = scorer.settings
    read = (
        settings.sampling.sample_count or settings.similarity.likelihood_weight or settings.masking.max_mask_ratio
    )
    names = ["encoder", *(["language_model"] if read else [])]
    left_out = {*_NOT_OF_THE_FORM, *vars(settings.models)}
    return write_head(
        folder,
        {name: np.array([weight]) for name, weight in weights.items()},
        kind="terms",
        models={name: str(fingerprint(getattr(settings.models, name))) for name in names},
        settings={name: value for name, value in settings.items() if name not in left_out},
        parameters={"penalty": PENALTY},
        learned_from=[data.summary() for data in sets],
    )


def learn_weights(
    sets: Sequence[TrainingSet], examples: Sequence[Sequence[Example]], penalty: float = PENALTY
) -> dict[str, float]:
    """The weights of features that ratings ask for, by name; those of weight 0 are left out.

    There is an example per rating. A larger penalty keeps the score nearer to MARS's own.
    """
    parts = []
    for data, rated in zip(sets, examples, strict=True):
        scores = np.array([weighted_sum(example.terms) for example in rated])
        rows = [{**{term.name: term.value for term in example.terms}, **example.features} for example in rated]
        features = np.array([[row.get(name, 0.0) for name in BOUNDS] for row in rows])
        groups = data.groups if data.within_groups else None
        parts.append((*centred((features, scores, data.ratings), groups), len(set(data.groups))))
    weights = fit_weights(parts, list(BOUNDS.values()), penalty)
    return {name: weight for name, weight in zip(BOUNDS, weights.tolist(), strict=True) if weight}


def fit_weights(
    parts: Sequence[tuple[Any, ...]], bounds: Sequence[tuple[float | None, float | None]], penalty: float
) -> Floats:
    """The weights of features beside MARS's score, (features,).

    They maximise the mean over sets of Pearson's r of ``scores + features @ weights`` with the ratings, minus
    ``penalty`` by the mean number of groups of a set times the sum of their squares, in units in which features
    and scores vary alike. The parts are of each set its features (rows, features), scores (rows,) and ratings
    (rows,), all centred, and its number of groups.
    """
    spread = np.sqrt(np.mean([(features**2).mean(axis=0) for features, *_ in parts], axis=0))
    score_spread = np.sqrt(np.mean([(scores**2).mean() for _, scores, *_ in parts]))
    unit = np.divide(score_spread, spread, out=np.zeros_like(spread), where=spread > _CONSTANT)
    strength = penalty * len(parts) / sum(groups for *_, groups in parts)

    def loss(weights: Floats) -> float:
        correlations = []
        for features, own, ratings, _ in parts:
            scores = own + features @ (weights * unit)
            size = np.sqrt((scores @ scores) * (ratings @ ratings))
            correlations.append(scores @ ratings / size if size > 0 else 0.0)
        return float(strength * (weights @ weights) - np.mean(correlations))

    start = np.zeros_like(unit)
    weights: Floats = minimize(loss, start, jac="3-point", bounds=bounds, method="L-BFGS-B").x * unit
    return weights
