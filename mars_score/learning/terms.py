"""Training of the head ``"terms"``: MARS's score and a small correction of it that ratings ask for.

The correction is a weighted sum of a few features (:mod:`mars_score.scoring.head_features`). Weights are those
with the largest mean correlation with the ratings, minus a penalty for their squares that falls with the number of
groups per set: few ratings change little. What is a merit by its meaning never gets a negative weight, and
repetition never a positive one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.learning.ratings import TrainingSet
from mars_score.models.fingerprints import fingerprint
from mars_score.scorer import MarsScorer
from mars_score.scoring.head_folder import HeadFolder, read_head, write_head
from mars_score.scoring.heads import ENCODER, FEATURES, TermsHead, check_fits, check_models, with_encoder
from mars_score.scoring.row import Example, weighted_sum
from mars_score.settings import Settings

Floats = NDArray[np.float64]
# The least and the largest weight that each feature may get.
BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "repetition": (None, 0),
    "length": (None, None),
    "copied": (None, None),
    "log_probability": (0, None),
    "lift": (0, None),
    ENCODER: (0, None),
}
PENALTY = 10.0  # chosen by left-out sets (research/learning.md)
_CONSTANT = 1e-9  # spread up to which a feature says nothing
# Settings that a score depends on, but not the meaning of its terms.
_NOT_OF_THE_FORM = {"idf_corpus", "task", "learned", "contradiction_penalty"}


def train_terms(
    sets: Sequence[TrainingSet],
    folder: str | os.PathLike[str],
    start: str | os.PathLike[str] | None = None,
    joined: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> HeadFolder:
    """Train a head "terms" on ratings and save it.

    Args:
        sets: from :func:`mars_score.learning.ratings.training_sets`.
        folder: of the head.
        start: folder of a head of this kind, from whose weights few ratings lead away only a little.
        joined: folder of a trained encoder whose score becomes a feature. It must have been trained on other sets,
            and is saved with the head.
        arguments: of :class:`mars_score.MarsScorer`; the head can be used with the same models and settings only.

    Raises:
        ValueError, TypeError, ModelUnavailableError: see ``MarsScorer``; ``start`` or ``joined`` does not fit.
        OSError: the folder cannot be written.
    """
    scorer = MarsScorer(**arguments)
    if scorer.settings.learned is not None:
        raise ValueError("a head learns from MARS's own score; leave learned out")
    before, saved_encoder = TermsHead({}), None
    if start is not None:
        saved = read_head(start)
        if saved.kind != TermsHead.kind:
            raise ValueError(f"{start} is a head of kind {saved.kind!r}; start from one of kind 'terms'")
        check_fits(saved, scorer.settings)
        before = TermsHead.load(saved, scorer.settings, scorer.runtime)
        saved_encoder = saved.parameters.get(ENCODER)
    encoder = before.encoder
    if joined is not None:
        if encoder:
            raise ValueError(f"{start} is joined with an encoder already; leave {joined} out")
        encoder, saved_encoder = _load_encoder(joined, scorer)
    _refuse_known(sets, saved_encoder)
    examples = [with_encoder(scorer.examples(data.rows), encoder) for data in sets]
    weights = learn_weights(sets, examples, before.weights)
    arrays = {"weights": np.array(list(weights.values()), dtype=np.float64)}
    parameters: dict[str, Any] = {"features": list(weights), "penalty": PENALTY}
    if encoder is not None and ENCODER in weights:
        arrays |= encoder.network.trained()
        parameters[ENCODER] = saved_encoder
    return write_head(
        folder,
        TermsHead.kind,
        models=_models(scorer.settings),
        settings=_form(scorer.settings),
        parameters=parameters,
        learned_from=[data.summary() for data in sets],
        arrays=arrays,
    )


def _load_encoder(folder: str | os.PathLike[str], scorer: MarsScorer) -> tuple[Any, dict[str, Any]]:
    """A trained encoder, which scores the same whatever the settings besides models, and what is saved of it."""
    from mars_score.scoring.head_encoder import EncoderHead

    saved = read_head(folder)
    if saved.kind != EncoderHead.kind:
        raise ValueError(f"{folder} is a head of kind {saved.kind!r}; only 'encoder' can be joined with terms")
    check_models(saved, scorer.settings)
    about = {"fingerprint": saved.fingerprint, "learned_from": list(saved.learned_from)}
    return EncoderHead.load(saved, scorer.settings, scorer.runtime), about


def _refuse_known(sets: Sequence[TrainingSet], encoder: Mapping[str, Any] | None) -> None:
    """Raise ValueError where an encoder was trained on one of these sets."""
    names = {data["name"] for data in encoder["learned_from"]} if encoder else set()
    if known := sorted(names.intersection(data.name for data in sets)):
        raise ValueError(
            f"the encoder was trained on {', '.join(known)}, too: its scores are better there than elsewhere, "
            "so that its weight would be too large; learn terms from other ratings"
        )


def _models(settings: Settings) -> dict[str, str]:
    read = settings.sampling.samples or settings.similarity.likelihood_weight or settings.masking.max_mask_ratio
    names = ["encoder", *(["language_model"] if read else [])]
    return {name: str(fingerprint(getattr(settings.models, name))) for name in names}


def _form(settings: Settings) -> dict[str, Any]:
    left_out = {*_NOT_OF_THE_FORM, *vars(settings.models)}
    return {name: value for name, value in settings.items() if name not in left_out}


def learn_weights(
    sets: Sequence[TrainingSet],
    examples: Sequence[Sequence[Example]],
    start: Mapping[str, float] | None = None,
    penalty: float = PENALTY,
) -> dict[str, float]:
    """The weights of features that ratings ask for, by name; those of weight 0 are left out.

    Args:
        sets: with ratings.
        examples: of each set one per rating.
        start: weights that other ratings taught; None: 0.
        penalty: larger values keep the score nearer to MARS's own.
    """
    parts = []
    for data, of_set in zip(sets, examples, strict=True):
        scores = np.array([weighted_sum(example.terms) for example in of_set])
        rows = [{**{term.name: term.value for term in one.terms}, **one.features} for one in of_set]
        features = np.array([[row.get(name, 0.0) for name in FEATURES] for row in rows])
        groups = data.groups if data.within_groups else None
        parts.append((*centred((features, scores, data.ratings), groups), len(set(data.groups))))
    first = np.array([(start or {}).get(name, 0.0) for name in FEATURES])
    weights = fit_weights(parts, [BOUNDS[name] for name in FEATURES], penalty, first)
    return {name: weight for name, weight in zip(FEATURES, weights.tolist(), strict=True) if weight}


def centred(columns: Sequence[Floats], groups: Sequence[str] | None = None) -> tuple[Floats, ...]:
    """Each column minus its mean, in each group where there are groups."""
    codes = np.zeros(len(columns[0]), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    centre = np.eye(codes.max() + 1)[codes] / np.bincount(codes)
    return tuple(column - (centre.T @ column)[codes] for column in columns)


def fit_weights(
    parts: Sequence[tuple[Any, ...]],
    bounds: Sequence[tuple[float | None, float | None]],
    penalty: float,
    start: Floats,
) -> Floats:
    """The weights of features beside MARS's score, (features,).

    They maximise the mean over sets of Pearson's r of ``scores + features @ weights`` with the ratings, minus
    ``penalty`` by the mean number of groups of a set times the sum of squares of their differences from ``start``,
    in units in which features and scores vary alike.

    Args:
        parts: of each set its features (rows, features), scores (rows,) and ratings (rows,), all centred, and its
            number of groups.
        bounds: of each weight.
        penalty: 0 or more.
        start: weights that others' ratings taught, (features,).
    """
    from scipy.optimize import minimize

    spread = np.sqrt(np.mean([(features**2).mean(axis=0) for features, *_ in parts], axis=0))
    of_scores = np.sqrt(np.mean([(scores**2).mean() for _, scores, *_ in parts]))
    varies = spread > _CONSTANT
    unit = np.divide(of_scores, spread, out=np.zeros_like(spread), where=varies)
    first = np.divide(start, unit, out=np.zeros_like(unit), where=unit > 0)
    strength = penalty * len(parts) / sum(groups for *_, groups in parts)

    def loss(weights: Floats) -> tuple[float, Floats]:
        change = weights - first
        total, slope = strength * float(change @ change), 2 * strength * change
        for features, own, ratings, _ in parts:
            scaled = features * unit
            scores = own + scaled @ weights
            size = np.sqrt((scores @ scores) * (ratings @ ratings))
            if size > 0:
                correlation = scores @ ratings / size
                total -= correlation / len(parts)
                slope -= scaled.T @ (ratings / size - scores * correlation / (scores @ scores)) / len(parts)
        return total, slope

    weights: Floats = minimize(loss, first, jac=True, bounds=bounds, method="L-BFGS-B").x * unit
    return weights
