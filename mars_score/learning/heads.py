"""Learned heads: their folders, how one is loaded, what they score and from what, and the head ``"terms"``.

In a head's folder ``head.json`` says what it is, ``head.safetensors`` holds its numbers.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from mars_score.data.files import write_whole
from mars_score.data.overlap import copied_share
from mars_score.data.words import repetition, split_words
from mars_score.models.devices import one_blas_thread
from mars_score.models.fingerprints import fingerprint
from mars_score.progress import Runtime
from mars_score.scoring.evidence import LIKELIHOOD, Evidence
from mars_score.scoring.form import Form
from mars_score.scoring.row import Example, ScorableRow, Term
from mars_score.settings import SETTINGS, Settings
from mars_score.settings.options import settings_of
from mars_score.settings.stages import ModelSettings

KINDS = ("terms", "encoder", "ls")
FEATURES = ("repetition", "length", "copied", "log_probability", "lift")
FORMAT = 3  # raised when folders that were written before can no longer be read
_ABOUT, _NUMBERS = "head.json", "head.safetensors"
_MODELS = {field.name for field in settings_of(ModelSettings)}


@dataclass(frozen=True)
class HeadFolder:
    """A head as it is saved."""

    path: Path
    digest: str  # hash of head.json, and so of both files
    kind: str  # one of KINDS
    # Fingerprints of the models that it was trained with, by the setting's name. They are compared with the models
    # that a scorer names, and no model is ever loaded from here.
    models: Mapping[str, str]
    settings: Mapping[str, Any]  # those that its scores depend on, by name; models are none of them
    parameters: Mapping[str, Any]  # how it was trained, as plain data
    learned_from: Sequence[Mapping[str, Any]]  # name and sizes of each data set
    numbers: str  # hash of head.safetensors

    @property
    def fingerprint(self) -> str:
        """Identifies the head in signatures and keys of the store: ``terms:0123456789abcdef``."""
        return f"{self.kind}:{self.digest}"

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its numbers, by name; ValueError where the file is not the one that was saved."""
        path = self.path / _NUMBERS
        content = path.read_bytes() if path.is_file() else b""
        if _hash(content) != self.numbers:
            raise ValueError(
                f"{self.path}: the learned head is damaged: {_NUMBERS} is not the file that was saved with it; "
                "train it again, or copy the whole folder again"
            )
        return load(content)


def read_head(head: str | os.PathLike[str]) -> HeadFolder:
    """Read a head's folder; its numbers are read when they are needed.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no head.
        ValueError: the folder is damaged or was written by another version, or the head asks for settings that it
            may not have.
    """
    path = Path(head)
    if not os.path.isfile(path / _ABOUT):
        raise FileNotFoundError(
            f"{path}: no learned head, as it has no {_ABOUT}; give a folder that mars train wrote"
        )
    content = (path / _ABOUT).read_bytes()
    try:
        about = json.loads(content)
        if about.pop("format") != FORMAT:
            raise ValueError
        saved = HeadFolder(path, _hash(content), **about)
        refused = [name for name in saved.settings if name not in SETTINGS or name in (*_MODELS, "learned")]
        refused += [name for name in saved.models if name not in _MODELS]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"{path}: {_ABOUT} is damaged or not of format {FORMAT}, the only one that this version of mars_score "
            "reads; train the head again"
        ) from None
    if refused:  # a folder from elsewhere could name any model
        raise ValueError(f"{path}: the head sets {', '.join(refused)}, which no head may set; train it again")
    return saved


def write_head(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], **about: Any) -> HeadFolder:
    """Write a head's folder, which is made where it is missing, and read it back; a head there is replaced.

    Besides its numbers, by name, it gets the fields ``kind`` to ``learned_from`` of :class:`HeadFolder`.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    (folder / _NUMBERS).write_bytes(numbers)  # an older head.json refuses it until that is replaced as well
    about = {"format": FORMAT, **about, "numbers": _hash(numbers)}
    write_whole(folder / _ABOUT, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return read_head(folder)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


class LearnedHead(Protocol):
    """A score that was learned, by :mod:`mars_score.learning`; it is larger for a better candidate."""

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """The terms of each example, which depend on it alone; the sum of value times weight is its score."""


def load_head(saved: HeadFolder, settings: Settings, runtime: Runtime) -> LearnedHead:
    """A saved head of any kind, for a scorer of these settings.

    Raises:
        ValueError: the head was trained with other models or settings, is damaged, or is of an unknown kind.
        ModelUnavailableError, UnsupportedModelError: the encoder of the settings cannot be used.
    """
    check_fits(saved, settings)
    if saved.kind == "terms":
        return TermsHead({name: saved.arrays[name].item() for name in FEATURES if name in saved.arrays})
    from mars_score.learning.text_heads import TEXT_HEADS

    head = TEXT_HEADS[saved.kind].of(settings, runtime)
    head.take(saved.arrays, saved.path)
    return head


def check_fits(saved: HeadFolder, settings: Settings) -> None:
    """Raise ValueError where a head is of an unknown kind, or was trained with other models or settings."""
    if saved.kind not in KINDS:
        raise ValueError(f"{saved.path}: a head of kind {saved.kind!r}; this version has: {', '.join(KINDS)}")
    check_models(saved, settings)
    here = dict(settings.items())
    for name, value in saved.settings.items():
        if here[name] != value:
            raise ValueError(
                f"{saved.path}: the head was trained with {name}={value!r}, but here it is {here[name]!r}; "
                f"leave {name} out, or train a head with it"
            )


def check_models(saved: HeadFolder, settings: Settings) -> None:
    """Raise ValueError where a head was trained with other models."""
    for name, trained in saved.models.items():
        model = fingerprint(getattr(settings.models, name))
        if not model.may_be(trained):
            raise ValueError(
                f"{saved.path}: the head was trained with {name} {trained}, but here it is {model}; use the "
                "preset that it was trained with, or train a head with this one"
            )


class TermsHead:
    """MARS's own terms and :data:`FEATURES` with weights, which are added to the weights of terms of that name."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """See :class:`LearnedHead`."""
        scored = []
        for example in examples:
            own = {term.name for term in example.terms}
            terms = [
                replace(term, weight=term.weight + self.weights.get(term.name, 0.0)) for term in example.terms
            ]
            for name, weight in self.weights.items():
                if name not in own:
                    terms.append(Term(name, example.features.get(name, 0.0), weight))
            scored.append(tuple(terms))
        return scored


@one_blas_thread()
def make_example(row: ScorableRow, terms: tuple[Term, ...], evidence: Evidence, form: Form) -> Example:
    """A row, whose candidate is not blank, with the terms of its own score, as heads see it.

    Features, each left out where it is not known:

    - ``repetition``: see :func:`mars_score.data.words.repetition`; left out where it is a term.
    - ``copied``: see :func:`mars_score.data.overlap.copied_share`.
    - ``length``: log of the candidate's words by those of a reference (their mean).
    - ``log_probability``, ``lift``: of the candidate, alone and what the context adds to it, in nats per token.
    """
    references = tuple(augmented.reference for augmented in row.references)
    features = {"copied": copied_share(row.candidate, row.context)}
    if references:
        words = max(1, sum(len(split_words(text)) for text in references)) / len(references)
        features["length"] = math.log(max(1, len(split_words(row.candidate))) / words)
    if not form.repetition_penalty:
        features["repetition"] = repetition(row.candidate)
    if likelihood := evidence.get(LIKELIHOOD, {}).get((row.context, row.candidate)):
        features |= {"log_probability": likelihood.alone, "lift": likelihood.lift}
    return Example(row.candidate, references, row.context, terms, features)
