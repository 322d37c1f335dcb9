"""MARS as a scorer of Inspect, which finds it by the entry point ``mars_score/mars``."""

import asyncio
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from mars_score.integrations.harness_options import read_options


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def mars(**settings: Any) -> Scorer:
    """Make a scorer that judges a completion by the sample's target and ``metadata["context"]``.

    Args:
        settings: ``context``, the field of ``metadata`` that holds the context; ``use_references``; arguments and
            settings of :class:`mars_score.MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """
    options = read_options(settings)

    async def score(state: TaskState, target: Target) -> Score:
        row = state.output.completion, list(target), state.metadata
        judged = await asyncio.to_thread(options.judge, *row, where=f"metadata of sample {state.sample_id}")
        return Score(value=judged["score"], explanation=judged["reason"], metadata=judged["metadata"])

    return score
