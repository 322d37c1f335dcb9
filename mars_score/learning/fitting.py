"""From rated sets to a learned head: what ``mars train`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from mars_score.learning.folder import HeadFolder
from mars_score.learning.heads import load_head
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.terms import TermsHead
from mars_score.scorer import MarsScorer

Kind = Literal["terms", "encoder"]


def train(
    sets: Sequence[TrainingSet],
    folder: str | os.PathLike[str],
    head: Kind = "terms",
    start: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> HeadFolder:
    """Train a head on ratings and save it.

    A stopped training goes on when it is started again: what ``"terms"`` learns from is in the store, and
    ``"encoder"`` writes checkpoints into its folder.

    Args:
        sets: from :func:`mars_score.learning.ratings.training_sets`.
        folder: of the head.
        head: its kind.
        start: a head of this kind to go on from, by folder or name.
        arguments: of :class:`mars_score.MarsScorer`; the head can be used with the same models and settings only.

    Raises:
        ValueError, TypeError, ModelUnavailableError: see ``MarsScorer``; too little to learn from;
            ``learned`` among the arguments.
        OSError: the folder cannot be written.
    """
    scorer = MarsScorer(**arguments)
    if scorer.settings.learned is not None:
        raise ValueError("a head learns from MARS's own score; leave learned out")
    if head == "encoder":
        from mars_score.learning.objectives import EncoderTraining

        return EncoderTraining(start=start).run(folder, scorer.settings, scorer.runtime, sets)
    before = load_head(start, scorer.settings, scorer.runtime) if start else None
    if not isinstance(before, TermsHead | None):
        raise ValueError(f"{start} is a head of kind {before.kind!r}; start from one of kind 'terms'")
    made = TermsHead(scorer.settings, scorer.runtime, start=before.weights if before else None)
    return made.fit(sets, [scorer.examples(one.rows) for one in sets]).save(folder)
