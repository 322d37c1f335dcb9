"""The head ``"terms"``: MARS's score and a small correction of it that ratings ask for.

The correction is a weighted sum of a few features (:mod:`mars_score.scoring.head_features`). One of them may be
the score of a trained encoder, whose weights are then saved with the head's. Weights are those with the largest
mean correlation with the ratings, minus a penalty for their squares that falls with the number of groups per set:
few ratings change little. What is a merit by its meaning never gets a negative weight, and repetition never a
positive one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mars_score.learning.ratings import TrainingSet
from mars_score.models.fingerprints import fingerprint
from mars_score.scoring.head_folder import HeadFolder, write_head
from mars_score.scoring.heads import Example, learned_from
from mars_score.scoring.result import Term, weighted_sum
from mars_score.settings import Settings
from mars_score.stats.labels import Floats
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.learning.encoder import EncoderHead

ENCODER = "encoder"
# Each feature with the least and the largest weight that it may get.
FEATURES: Mapping[str, tuple[float | None, float | None]] = {
    "repetition": (None, 0),
    "length": (None, None),
    "copied": (None, None),
    "log_probability": (0, None),
    "lift": (0, None),
    ENCODER: (0, None),
}
# Chosen by left-out sets (docs/learning.md): the penalty is this by the mean number of groups of the sets.
PENALTY = 10.0
_CONSTANT = 1e-9  # spread up to which a feature says nothing
# Settings that a score depends on, but not the meaning of its terms.
_NOT_OF_THE_FORM = {"idf_corpus", "task", "learned", "contradiction_penalty", "dtype"}


class TermsHead:
    """MARS's own terms, and one for each feature with a weight other than 0.

    Args:
        settings: of the scorer whose terms it learns from.
        runtime: not used, as there is no model.
        penalty: see the module; larger values keep the score nearer to MARS's own.
        features: to learn from, by name.
        start: weights that other ratings taught, by feature; few ratings change them little. None: 0.
        encoder: whose score is the feature "encoder"; it is not trained here. None: there is no such feature.
    """

    kind: ClassVar[str] = "terms"

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime | None = None,
        penalty: float = PENALTY,
        features: Sequence[str] = tuple(FEATURES),
        start: Mapping[str, float] | None = None,
        encoder: EncoderHead | None = None,
    ) -> None:
        self._settings, self.encoder = settings, encoder
        self.penalty, self.features, self.start = penalty, tuple(features), start or {}
        self.weights: dict[str, float] = {}
        self.fingerprint = ""
        self.learned_from: list[dict[str, Any]] = []

    def fit(self, sets: Sequence[TrainingSet], examples: Sequence[Sequence[Example]]) -> Self:
        """See :class:`mars_score.scoring.heads.LearnedHead`; takes seconds, and longer with an encoder.

        Raises:
            ValueError: the encoder was trained on one of these sets.
        """
        of_encoder = {one["name"] for one in self.encoder.learned_from} if self.encoder else set()
        if known := sorted(of_encoder.intersection(one.name for one in sets)):
            raise ValueError(
                f"the encoder was trained on {', '.join(known)}, too: its scores are better there than elsewhere, "
                "so that its weight would be too large; learn terms from other ratings"
            )
        parts = []
        for one, of_set in zip(sets, examples, strict=True):
            scores = np.array([weighted_sum(each.terms) for each in of_set])
            found = values(self._with_encoder(of_set), self.features)
            parts.append(Part(found, scores, one.ratings, one.groups, within_groups=one.within_groups))
        start = np.array([self.start.get(name, 0.0) for name in self.features])
        weights = fit_weights(parts, [FEATURES[name] for name in self.features], self.penalty, start)
        self.weights = {
            name: weight for name, weight in zip(self.features, weights.tolist(), strict=True) if weight
        }
        self.learned_from = learned_from(sets)
        return self

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """MARS's own terms, and those that were learned."""
        return [self._terms(one) for one in self._with_encoder(examples)]

    def _with_encoder(self, examples: Sequence[Example]) -> Sequence[Example]:
        """With the encoder's scores as a feature, if there is an encoder."""
        if self.encoder is None:
            return examples
        scores = map(weighted_sum, self.encoder.score(examples))
        return [
            replace(one, features={**one.features, ENCODER: score})
            for one, score in zip(examples, scores, strict=True)
        ]

    def _terms(self, example: Example) -> tuple[Term, ...]:
        """A feature that is a term already adds to its weight."""
        known = {term.name for term in example.terms}
        return (
            *(replace(term, weight=term.weight + self.weights.get(term.name, 0.0)) for term in example.terms),
            *(
                Term(name, example.features.get(name, 0.0), weight)
                for name, weight in self.weights.items()
                if name not in known
            ),
        )

    def save(self, folder: str | os.PathLike[str]) -> HeadFolder:
        """See :class:`mars_score.scoring.heads.LearnedHead`; an encoder without weight is left out."""
        models, settings = self._settings.models, dict(self._settings.items())
        names = ["encoder"]
        if settings["samples"] or settings["likelihood_weight"]:
            names.append("language_model")
        arrays, more = {"weights": np.array(list(self.weights.values()), dtype=np.float64)}, {}
        if self.encoder and ENCODER in self.weights:
            arrays |= self.encoder.network.trained()
            more[ENCODER] = {"fingerprint": self.encoder.fingerprint, "learned_from": self.encoder.learned_from}
        saved = write_head(
            folder,
            self.kind,
            models={name: str(fingerprint(getattr(models, name))) for name in names},
            settings={name: settings[name] for name in settings if name not in {*_NOT_OF_THE_FORM, *vars(models)}},
            parameters={"features": list(self.weights), "penalty": self.penalty},
            arrays=arrays,
            learned_from=self.learned_from,
            **more,
        )
        self.fingerprint = saved.fingerprint
        return saved

    @classmethod
    def load(cls, saved: HeadFolder, settings: Settings, runtime: Runtime) -> Self:
        """See :class:`mars_score.scoring.heads.LearnedHead`.

        Raises:
            ValueError: it has features that this version lacks, or weights of another encoder.
        """
        names, weights = saved.about["parameters"].get("features", []), saved.arrays.get("weights", np.zeros(0))
        if unknown := [name for name in names if name not in FEATURES]:
            raise ValueError(f"{saved.path}: the head has features that this version lacks: {', '.join(unknown)}")
        if weights.shape != (len(names),) or not np.isfinite(weights).all():
            raise ValueError(
                f"{saved.path}: the learned head is damaged: {len(names)} features need as many weights"
            )
        head = cls(settings, runtime, encoder=_encoder_in(saved, settings, runtime) if ENCODER in names else None)
        head.weights = dict(zip(names, weights.tolist(), strict=True))
        head.fingerprint = saved.fingerprint
        return head


def _encoder_in(saved: HeadFolder, settings: Settings, runtime: Runtime) -> EncoderHead:
    """The encoder that was saved with a head."""
    from mars_score.learning.encoder import EncoderHead

    head = EncoderHead(settings, runtime).start_from(replace(saved, about=saved.about.get(ENCODER, {})))
    head.fingerprint = saved.about.get(ENCODER, {}).get("fingerprint", "")
    return head


def values(examples: Sequence[Example], features: Sequence[str]) -> Floats:
    """Values of features, (examples, features); MARS's terms are known by their names; 0 where one is missing."""
    rows = [{**{term.name: term.value for term in one.terms}, **one.features} for one in examples]
    return np.array([[row.get(name, 0.0) for name in features] for row in rows]).reshape(len(rows), len(features))


class Part:
    """What weights are fitted to: a set's features, MARS's scores and ratings, centred in the set or in groups.

    Args:
        features: (rows, features).
        scores: (rows,).
        ratings: (rows,).
        groups: of each row.
        within_groups: whether ratings compare within a group only.
    """

    def __init__(
        self, features: Floats, scores: Floats, ratings: Floats, groups: Sequence[str], *, within_groups: bool
    ) -> None:
        codes = np.unique(groups, return_inverse=True)[1] if within_groups else np.zeros(len(scores), int)
        centre = np.eye(codes.max() + 1)[codes] / np.bincount(codes)

        def centred(values: Floats) -> Floats:
            return values - (centre.T @ values)[codes]

        self.features, self.scores, self.ratings = map(centred, (features, scores, ratings))
        self.groups = len(set(groups))


def fit_weights(
    parts: Sequence[Part],
    bounds: Sequence[tuple[float | None, float | None]],
    penalty: float,
    start: Floats | None = None,
) -> Floats:
    """The weights of features beside MARS's score, (features,).

    They maximise the mean over sets of Pearson's r of ``scores + features @ weights`` with the ratings, minus
    ``penalty`` by the mean number of groups of a set times the sum of squares of their differences from ``start``,
    in units in which features and scores vary alike.

    Args:
        parts: of each set.
        bounds: of each weight.
        penalty: 0 or more.
        start: weights that others' ratings taught, (features,); None: 0.
    """
    from scipy.optimize import minimize

    spread = np.sqrt(np.mean([(one.features**2).mean(axis=0) for one in parts], axis=0))
    of_scores = np.sqrt(np.mean([(one.scores**2).mean() for one in parts]))
    unit = np.divide(of_scores, spread, out=np.zeros_like(spread), where=spread > _CONSTANT)
    first = (
        np.zeros_like(unit) if start is None else np.divide(start, unit, out=np.zeros_like(unit), where=unit > 0)
    )
    strength = penalty * len(parts) / sum(one.groups for one in parts)

    def loss(weights: Floats) -> tuple[float, Floats]:
        change = weights - first
        total, slope = strength * float(change @ change), 2 * strength * change
        for one in parts:
            features, ratings = one.features * unit, one.ratings
            scores = one.scores + features @ weights
            size = np.sqrt(scores @ scores) * np.sqrt(ratings @ ratings)
            if size > 0:
                total -= scores @ ratings / size / len(parts)
                slope -= (
                    features.T
                    @ (ratings / size - scores * (scores @ ratings / size / (scores @ scores)))
                    / len(parts)
                )
        return total, slope

    found: Floats = minimize(loss, first, jac=True, bounds=bounds, method="L-BFGS-B").x * unit
    return found
