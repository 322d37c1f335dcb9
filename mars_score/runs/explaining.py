"""The explanations of a run's lowest rows."""

from __future__ import annotations

import heapq
from typing import Any

from mars_score.explain.explainer import explain
from mars_score.result import RowScore
from mars_score.runs.chunks import augmented_of, samples_of
from mars_score.runs.run import Run
from mars_score.similarity.features import Reader
from mars_score.store.results import ResultStore

EXPLANATIONS = "explanations"  # the name of the fact in the run's records


def explained(run: Run, rows: int) -> list[dict[str, Any]]:
    """The explanations of the ``rows`` lowest rows, the lowest first, as plain data.

    Each with its line of the input, ``"line"``, and as readable text, ``"text"``.
    """
    scores = (
        (score, part.file.start + place)
        for part, scored in run.scored()
        for place, score in enumerate(scored.scores)
    )
    lowest = [row for _, row in heapq.nsmallest(rows, scores)]
    found: dict[int, tuple[str, str, RowScore]] = {}
    sampling = run.spec.plan.settings.sampling
    for part, scored in run.scored():
        wanted = [row for row in lowest if 0 <= row - part.file.start < len(part.candidates)]
        if wanted:
            of_part = scored.rows(augmented_of(part, run.records), samples_of(part, run.records, sampling))
            for row in wanted:
                place = row - part.file.start
                found[row] = part.candidates[place], part.contexts[place].strip(), of_part[place]
    plan = run.spec.plan
    reader = Reader(plan.settings, plan.runtime(ResultStore(plan.store), run.chunk_progress))
    candidates, contexts, of_rows = zip(*(found[row] for row in lowest), strict=True)
    explanations = explain(candidates, contexts, of_rows, reader, plan.settings.similarity)
    return [
        {"line": row + 1, "text": str(one), **one.to_dict()} for row, one in zip(lowest, explanations, strict=True)
    ]
