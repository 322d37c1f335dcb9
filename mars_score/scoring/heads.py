"""What a learned head is, and how one is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

from mars_score.learning import KINDS
from mars_score.learning.ratings import TrainingSet
from mars_score.models.fingerprints import Current, fingerprint, may_be
from mars_score.scoring.head_folder import HeadFolder, read_head
from mars_score.scoring.result import Term
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime


@dataclass(frozen=True)
class Example:
    """A row to learn from or to score; its texts have no outer whitespace.

    Attributes:
        candidate: not blank.
        references: one or more.
        context: blank for none.
        terms: those of MARS's own score.
        features: what else MARS knows of the row, by name.
    """

    candidate: str
    references: tuple[str, ...]
    context: str
    terms: tuple[Term, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)


class LearnedHead(Protocol):
    """A score that is learned from ratings.

    A head is made from settings and a runtime, learns with :meth:`fit`, and is saved and loaded as a folder. Which
    options its constructor takes beside them is its own matter; all have defaults.

    Attributes:
        kind: a name of :data:`mars_score.learning.KINDS`.
        fingerprint: of a head that was saved or loaded; see :class:`HeadFolder`.
    """

    kind: ClassVar[str]
    fingerprint: str

    def fit(self, sets: Sequence[TrainingSet], examples: Sequence[Sequence[Example]]) -> Self:
        """Learn; returns the head itself.

        Args:
            sets: with ratings.
            examples: of each set one per rating.

        Raises:
            ValueError: there is too little to learn from; says how much is needed.
        """

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """The terms of each example; the sum of value times weight is its score.

        A score depends on its example alone, is larger for a better candidate and mostly in [0, 1]; a blank
        candidate has 0 without the head being asked.
        """

    def save(self, folder: str | os.PathLike[str]) -> HeadFolder:
        """Write it to a folder, with :func:`mars_score.scoring.head_folder.write_head`."""

    @classmethod
    def load(cls, saved: HeadFolder, settings: Settings, runtime: Runtime) -> Self:
        """Make it again from what ``save`` wrote; models and settings have been compared."""


def load_head(head: str | os.PathLike[str], settings: Settings, runtime: Runtime) -> LearnedHead:
    """A saved head of any kind.

    Args:
        head: a folder.
        settings: of the scorer that asks for it.
        runtime: of this scorer.

    Raises:
        FileNotFoundError: there is no such head.
        ValueError: its folder is damaged, was written by another version or holds something else; it was trained
            with other models or settings, or is of a kind that this version lacks.
    """
    saved = read_head(head)
    if saved.kind not in KINDS:
        raise ValueError(f"{saved.path}: a head of kind {saved.kind!r}; this version has: {', '.join(KINDS)}")
    check_fits(saved, settings)
    module, _, cls = KINDS[saved.kind].partition(".")
    made: LearnedHead = getattr(import_module(f"mars_score.learning.{module}"), cls).load(saved, settings, runtime)
    return made


def check_fits(saved: HeadFolder, settings: Settings) -> None:
    """Raise ValueError where a head was trained with other models or settings."""
    for name, trained in saved.models.items():
        found = str(fingerprint(getattr(settings.models, name)))
        if not may_be(found, trained):
            raise ValueError(
                f"{saved.path}: the head was trained with {name} {trained}, but here it is {found}; use the "
                "preset that it was trained with, or train a head with this one"
            )
    here = dict(settings.items())
    for name, value in saved.settings.items():
        if here.get(name) != value:
            raise ValueError(
                f"{saved.path}: the head was trained with {name}={value!r}, but here it is {here.get(name)!r}; "
                f"leave {name} out, or train a head with it"
            )


def learned_from(sets: Sequence[TrainingSet]) -> list[dict[str, Any]]:
    """What a head was trained on, for its ``head.json``: names and sizes, no texts."""
    return [
        {
            "name": one.name,
            "ratings": len(one.rows),
            "groups": len(set(one.groups)),
            "within_groups": one.within_groups,
        }
        for one in sets
    ]


class HeadLoader:
    """The head that the setting ``learned`` names; loaded when first asked for, and again when its folder changes.

    Args:
        settings: of the scorer.
        runtime: of the scorer.

    Raises:
        FileNotFoundError, ValueError: see :func:`load_head`; of its weights alone nothing is known yet.
    """

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._current: Current[LearnedHead] | None = None
        if settings.learned is not None:
            head = settings.learned
            check_fits(read_head(head), settings)
            self._current = Current(head, lambda: load_head(head, settings, runtime))

    def get(self) -> LearnedHead | None:
        """None where the setting is None."""
        return self._current.get() if self._current else None
