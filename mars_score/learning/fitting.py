"""From rated sets to a learned head: what ``mars train`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mars_score.learning.ratings import TrainingSet
from mars_score.learning.terms import TermsHead
from mars_score.scorer import MarsScorer
from mars_score.scoring.head_folder import HeadFolder, read_head
from mars_score.scoring.heads import check_fits, load_head

if TYPE_CHECKING:
    from mars_score.learning.encoder import EncoderHead


def train(
    sets: Sequence[TrainingSet],
    folder: str | os.PathLike[str],
    start: str | os.PathLike[str] | None = None,
    joined: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> HeadFolder:
    """Train a head "terms" on ratings and save it (an encoder: :mod:`mars_score.learning.objectives`).

    A stopped training goes on when it is started again: what it learns from is in the store.

    Args:
        sets: from :func:`mars_score.learning.ratings.training_sets`.
        folder: of the head.
        start: a head of this kind to go on from, by folder or name.
        joined: folder of a trained encoder whose score becomes a term, too. It must have been trained on other
            sets, and is saved with the head.
        arguments: of :class:`mars_score.MarsScorer`; the head can be used with the same models and settings only.

    Raises:
        ValueError, TypeError, ModelUnavailableError: see ``MarsScorer``; too little to learn from;
            ``learned`` among the arguments.
        OSError: the folder cannot be written.
    """
    scorer = MarsScorer(**arguments)
    if scorer.settings.learned is not None:
        raise ValueError("a head learns from MARS's own score; leave learned out")
    before = load_head(start, scorer.settings, scorer.runtime) if start else None
    if not isinstance(before, TermsHead | None):
        raise ValueError(f"{start} is a head of kind {before.kind!r}; start from one of kind 'terms'")
    encoder = before.encoder if before else None
    if joined is not None:
        if encoder:
            raise ValueError(f"{start} is joined with an encoder already; leave {joined} out")
        encoder = _encoder(joined, scorer)
    made = TermsHead(scorer.settings, scorer.runtime, start=before.weights if before else None, encoder=encoder)
    return made.fit(sets, [scorer.examples(one.rows) for one in sets]).save(folder)


def _encoder(folder: str | os.PathLike[str], scorer: MarsScorer) -> EncoderHead:
    """A trained encoder; it scores the same whatever the scorer's settings besides models."""
    from mars_score.learning.encoder import EncoderHead

    saved = read_head(folder)
    if saved.kind != EncoderHead.kind:
        raise ValueError(f"{folder} is a head of kind {saved.kind!r}; only 'encoder' can be joined with terms")
    check_fits(replace(saved, settings={}), scorer.settings)
    return EncoderHead.load(saved, scorer.settings, scorer.runtime)
