"""Where a run's mean score lies between its anchors."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from mars_score.compare.anchors import anchor_rows, find_anchors
from mars_score.runs.run import Run

if TYPE_CHECKING:
    from mars_score.scorer import MarsScorer

SCALE = "scale"  # the name of the fact in the run's records


def scale_of(run: Run, scorer: MarsScorer, mean: float) -> dict[str, float]:
    """The mean in per cent and the anchors, from the rows of :func:`mars_score.compare.anchors.anchor_rows`.

    Raises:
        ValueError: see :func:`mars_score.compare.anchors.find_anchors`.
    """
    kept = set(anchor_rows(run.survey.rows))
    parts = run.spec.rows.parts(run.spec.chunk_size)
    rows = chain.from_iterable(zip(part.pairs, part.contexts, strict=True) for part in parts)
    chosen = [row for number, row in enumerate(rows) if number in kept]
    references = [[text for _, text in pairs] for pairs, _ in chosen]
    return find_anchors(scorer, references, [context for _, context in chosen]).to_dict(mean)
