"""Learned heads: what they score, how one is loaded, and the head ``"terms"``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mars_score.models.fingerprints import fingerprint, may_be
from mars_score.scoring.head_folder import HeadFolder
from mars_score.scoring.row import Example, Term
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

KINDS = ("terms", "encoder", "ls")
FEATURES = ("repetition", "length", "copied", "log_probability", "lift")


class LearnedHead(Protocol):
    """A score that was learned; training one is :mod:`mars_score.learning`."""

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """The terms of each example; the sum of value times weight is its score.

        A score depends on its example alone, and is larger for a better candidate.
        """


def load_head(saved: HeadFolder, settings: Settings, runtime: Runtime) -> LearnedHead:
    """A saved head of any kind.

    Args:
        saved: from :func:`mars_score.scoring.head_folder.read_head`.
        settings: of the scorer that asks for it.
        runtime: of this scorer.

    Raises:
        ValueError: the head was trained with other models or settings, is damaged, or is of an unknown kind.
        ModelUnavailableError, UnsupportedModelError: the encoder of the settings cannot be used.
    """
    check_fits(saved, settings)
    if saved.kind == TermsHead.kind:
        return TermsHead.load(saved)
    from mars_score.scoring.head_encoder import EncoderHead, LsHead

    return (LsHead if saved.kind == LsHead.kind else EncoderHead).load(saved, settings, runtime)


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
        model = str(fingerprint(getattr(settings.models, name)))
        if not may_be(model, trained):
            raise ValueError(
                f"{saved.path}: the head was trained with {name} {trained}, but here it is {model}; use the "
                "preset that it was trained with, or train a head with this one"
            )


class TermsHead:
    """MARS's own terms and features with weights; the weight of a feature that is a term is added to the term's.

    Args:
        weights: by name of :data:`FEATURES`.
    """

    kind = "terms"

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """See :class:`LearnedHead`."""
        return [self._terms(example) for example in examples]

    def _terms(self, example: Example) -> tuple[Term, ...]:
        own = {term.name: term for term in example.terms}
        added = [(name, weight) for name, weight in self.weights.items() if name not in own]
        return (
            *(replace(term, weight=term.weight + self.weights.get(name, 0.0)) for name, term in own.items()),
            *(Term(name, example.features.get(name, 0.0), weight) for name, weight in added),
        )

    @classmethod
    def load(cls, saved: HeadFolder) -> TermsHead:
        """The head of a folder."""
        return cls({name: saved.arrays[name].item() for name in FEATURES if name in saved.arrays})
