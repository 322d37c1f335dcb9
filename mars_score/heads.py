"""Learned heads: their folders, and the head ``"terms"``, which corrects MARS's score.

In the folder of a head, ``head.json`` describes it and ``head.safetensors`` contains its weights.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mars_score.atomic import check_replaceable, write_whole
from mars_score.errors import HeadError
from mars_score.metrics.plus import PlusConfig, repetition
from mars_score.models.calls import ModelCalls
from mars_score.models.loading import locate
from mars_score.rows import Row, RowScore, Term
from mars_score.settings import Settings, resolve_settings
from mars_score.signature import MODELS
from mars_score.text import copied_share, split_words

KIND = "terms"  # the kind of head that a scorer uses
FEATURES = ("repetition", "length", "copied", "log_probability", "pmi")
FORMAT = 4  # Raise it when older folders can no longer be loaded.
LARGEST_WEIGHT = 1e6  # Trained weights are below 100, so a file with larger ones is damaged.
_DESCRIPTION, _WEIGHTS = "head.json", "head.safetensors"
# Settings that a head may not change, as they load models and files, or describe the texts.
NEVER_SET = (*MODELS, "dtype", "idf_corpus", "task", "learned")
_PLUS = PlusConfig()  # The features of texts do not depend on a scorer's settings.
Weights = NDArray[np.floating]


@dataclass(frozen=True, config={"extra": "forbid", "strict": True})
class HeadFolder:
    """A saved head.

    Attributes:
        path: the folder.
        digest: hash of ``head.json``, and so of both files.
        kind: ``"terms"``, or ``"encoder"`` or ``"ls"`` of research/learned_encoders.
        models: fingerprints of the models that it was trained with, by the setting's name. They are only compared
            with those of a scorer, and never loaded.
        settings: other settings that its scores depend on, by name.
        parameters: parameters of the training.
        learned_from: name and sizes of each training set.
        weights_digest: hash of ``head.safetensors``.
    """

    path: Path
    digest: str
    kind: str
    models: dict[str, str]
    settings: dict[str, object]
    parameters: dict[str, object]
    learned_from: list[dict[str, object]]
    weights_digest: str

    @property
    def fingerprint(self) -> str:
        """Return the name of the head in signatures, such as ``terms:0123456789abcdef``."""
        return f"{self.kind}:{self.digest}"

    @cached_property
    def weights(self) -> dict[str, Weights]:
        """Read the weights, by name.

        Raises:
            HeadError: they are damaged.
        """
        path = self.path / _WEIGHTS
        content = path.read_bytes() if path.is_file() else b""
        if _hash(content) != self.weights_digest:
            raise self.error("is not the file that was saved with the head")
        try:
            weights = load(content)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise self.error(f"cannot be read ({error})") from None
        for name, array in weights.items():
            if array.dtype.kind != "f" or not (np.abs(array) <= LARGEST_WEIGHT).all():  # also refuses NaN
                raise self.error(f"has weights {name!r} that are not numbers of at most {LARGEST_WEIGHT:,.0f}")
        return weights

    def error(self, fault: str, file: str = _WEIGHTS) -> HeadError:
        """Make the error for a fault in a file of the head."""
        return HeadError(f"{self.path / file} {fault}; train the head again, or copy the whole folder again")

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise HeadError unless the weights have these names and shapes."""
        if names := sorted(self.weights.keys() ^ shapes.keys()):
            raise self.error(f"has the weights of another network (unknown or missing: {', '.join(names[:3])})")
        for name, shape in shapes.items():
            if self.weights[name].shape != shape:
                raise self.error(f"has weights {name!r} of shape {self.weights[name].shape} instead of {shape}")


def read_head(folder: str | os.PathLike[str]) -> HeadFolder:
    """Read the description of a head of any kind.

    Raises:
        FileNotFoundError: there is no such folder, or it contains no head.
        HeadError: the folder is damaged or was written by another version, or the head changes settings that it
            may not change.
    """
    path = Path(folder)
    file = path / _DESCRIPTION
    if not os.path.isfile(file):  # Path.is_file would raise for a name that is too long.
        raise FileNotFoundError(
            f"{path}: no learned head, as it has no {_DESCRIPTION}; give a folder that mars train wrote"
        )
    content = file.read_bytes()
    try:
        description = json.loads(content)
        version = description.pop("format")
        saved = HeadFolder(path, _hash(content), **description) if version == FORMAT else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HeadError(f"{file} is damaged; train the head again, or copy the whole folder again") from None
    if saved is None:
        raise HeadError(
            f"{file} is of format {version!r:.20}; this version of mars_score has {FORMAT}: train the head again"
        )
    _check_settings(saved)
    return saved


def check_head_folder(folder: str | os.PathLike[str]) -> None:
    """Raise PermissionError if a head in a folder is read-only."""
    check_replaceable(Path(folder, _DESCRIPTION), Path(folder, _WEIGHTS))


def write_head(
    folder: str | os.PathLike[str], weights: Mapping[str, Weights], **description: object
) -> HeadFolder:
    """Write a head to a folder, replacing an older one, and read it.

    Args:
        folder: the folder, which is made if it is missing.
        weights: weights by name.
        description: the fields ``kind`` to ``learned_from`` of :class:`HeadFolder`.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    content = save({name: np.ascontiguousarray(array) for name, array in weights.items()})
    (path / _WEIGHTS).write_bytes(content)  # An older head.json refuses these until it is replaced, too.
    description = {"format": FORMAT, **description, "weights_digest": _hash(content)}
    write_whole(path / _DESCRIPTION, json.dumps(description, ensure_ascii=False, indent=1) + "\n")
    return read_head(path)


def check_fits(saved: HeadFolder, settings: Settings) -> None:
    """Raise HeadError if a head is not of kind "terms", or was trained with other models or settings."""
    if saved.kind != KIND:
        raise HeadError(
            f"{saved.path}: a head of kind {saved.kind!r}, not {KIND!r}; trained encoders score from a checkout: "
            f"python -m research.learned_encoders score {saved.path} FILE"
        )
    check_models(saved, settings)
    values = dict(settings.items())
    for name, trained in saved.settings.items():
        if values.get(name) != trained:
            raise HeadError(
                f"{saved.path}: the head was trained with {name}={trained!r}, but here it is "
                f"{values.get(name)!r}; leave {name} out, or train a head with it"
            )


def check_models(saved: HeadFolder, settings: Settings) -> None:
    """Raise HeadError if a head was trained with other models."""
    for name, trained in saved.models.items():
        model = locate(getattr(settings.models, name))
        if not model.matches(trained):
            raise HeadError(
                f"{saved.path}: the head was trained with {name} {trained}, but here it is {model}; use the "
                "preset that it was trained with, or train a head with this one"
            )


def _check_settings(saved: HeadFolder) -> None:
    """Refuse unknown settings, and those that name models or files: a foreign folder could name any file."""
    allowed = {name: value for name, value in saved.settings.items() if name not in NEVER_SET}
    try:
        known = dict(resolve_settings("mini", trained=allowed).items())
    except (ValueError, TypeError) as error:
        raise saved.error(f"has settings that do not go together ({error})", _DESCRIPTION) from None
    refused = [name for name in saved.settings if name not in known or name in NEVER_SET]
    refused += [name for name in saved.models if name not in MODELS]
    if refused:
        raise saved.error(f"sets {', '.join(refused)}, which no head may set", _DESCRIPTION)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


# The head "terms"


class TermFeatures(NamedTuple):
    """The features of a row for the head "terms".

    Attributes:
        terms: the terms of MARS's score.
        values: known values of the :data:`FEATURES` that are not terms, by name.
    """

    terms: tuple[Term, ...]
    values: dict[str, float]


class TermsHead:
    """MARS's terms, corrected by a weighted sum of :data:`FEATURES`.

    Args:
        weights: weight of each feature. If the feature is a term of the score, it is added to the term's weight.
        settings: settings of the scorer.
        calls: models of the scorer.
    """

    def __init__(self, weights: Mapping[str, float], settings: Settings, calls: ModelCalls) -> None:
        self.weights, self._calls = weights, calls
        self._max_context_tokens = settings.config.max_context_tokens

    @classmethod
    def load(cls, saved: HeadFolder, settings: Settings, calls: ModelCalls) -> TermsHead:
        """Load a saved head. Raise HeadError if its weights are not those of features."""
        names = [name for name in FEATURES if name in saved.weights]  # A file has no order.
        saved.check_shapes(dict.fromkeys(names, (1,)))
        return cls({name: saved.weights[name].item() for name in names}, settings, calls)

    def features(self, rows: Sequence[Row], scores: Sequence[RowScore]) -> list[TermFeatures]:
        """Compute the features of scored rows whose candidates are not blank.

        - ``repetition``: see :func:`mars_score.metrics.plus.repetition`. Left out if it is a term.
        - ``copied``: share of the candidate that is copied from the context.
        - ``length``: log of the candidate's number of words divided by the mean of the references.
        - ``log_probability``, ``pmi``: of the candidate alone, and what the context adds, in nats per token. Left
          out if the likelihood is not a term.

        Args:
            rows: the rows as they were scored.
            scores: MARS's scores of the rows.
        """
        names = [{term.name for term in score.terms} for score in scores]
        pairs = [
            (row.prompt, row.candidate) if "likelihood" in terms else None
            for row, terms in zip(rows, names, strict=True)
        ]
        log_p = self._calls.log_probability(filter(None, pairs), self._max_context_tokens)
        features = []
        for row, score, pair, terms in zip(rows, scores, pairs, names, strict=True):
            values = _features_of_texts(row)
            if pair:
                values |= {"log_probability": log_p[pair].alone, "pmi": log_p[pair].pmi}
            values = {name: value for name, value in values.items() if name not in terms}
            features.append(TermFeatures(score.terms, values))
        return features

    def score(self, features: Sequence[TermFeatures]) -> list[tuple[Term, ...]]:
        """Return the terms of each row with their new weights, and a new term for each other weighted feature."""
        scored = []
        for terms, values in features:
            corrected = [replace(term, weight=term.weight + self.weights.get(term.name, 0.0)) for term in terms]
            names = {term.name for term in terms}
            corrected += [
                Term(name, values.get(name, 0.0), weight)
                for name, weight in self.weights.items()
                if name not in names
            ]
            scored.append(tuple(corrected))
        return scored


def _features_of_texts(row: Row) -> dict[str, float]:
    values = {
        "repetition": repetition(row, _PLUS),
        "copied": copied_share(row.candidate, row.context, _PLUS.copied_words),
    }
    if row.references:
        words = max(1, sum(len(split_words(text)) for text in row.references)) / len(row.references)
        values["length"] = math.log(max(1, len(split_words(row.candidate))) / words)
    return values
