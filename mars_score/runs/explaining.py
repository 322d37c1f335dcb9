"""The explanations of a run's lowest rows."""

from __future__ import annotations

import heapq
from typing import Any

from mars_score.runs.run import Run
from mars_score.scoring.evidence import Reader
from mars_score.scoring.explain.explainer import explain
from mars_score.scoring.form import Form
from mars_score.scoring.result import RowScore
from mars_score.store.results import ResultStore

EXPLANATIONS = "explanations"  # the name of the fact in the run's records


def explained(run: Run, rows: int) -> list[dict[str, Any]]:
    """The explanations of the ``rows`` lowest rows, the lowest first, as plain data.

    Each with its line of the input, ``"line"``, and as readable text, ``"text"``.
    """
    scores = (
        (row.score.score, part.number, place) for part, scored in run.scored() for place, row in enumerate(scored)
    )
    lowest = [(number, place) for _, number, place in heapq.nsmallest(rows, scores)]
    found: dict[tuple[int, int], tuple[int, str, str, RowScore]] = {}
    for part, scored in run.scored():
        for place in [place for number, place in lowest if number == part.number]:
            line = part.file.numbers[place] + 1
            found[part.number, place] = line, part.candidates[place], part.contexts[place], scored[place].score
    plan = run.spec.plan
    reader = Reader(plan.settings, plan.runtime(ResultStore(plan.store), run.chunk_progress))
    lines, candidates, contexts, of_rows = zip(*(found[row] for row in lowest), strict=True)
    explanations = explain(candidates, contexts, of_rows, reader, Form.of(plan.settings.similarity))
    return [
        {"line": line, "text": str(one), **one.to_dict()} for line, one in zip(lines, explanations, strict=True)
    ]
