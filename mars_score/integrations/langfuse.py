"""MARS as an evaluator of an experiment of Langfuse."""

from collections.abc import Callable, Mapping
from typing import Any

from langfuse import Evaluation

from mars_score.integrations.harness_options import read_options


def mars_evaluator(name: str = "mars", **settings: Any) -> Callable[..., Evaluation]:
    """Make an evaluator that judges an output by ``expected_output`` and ``metadata["context"]`` of its item.

    Args:
        name: of the evaluation. Its value is the score, and its comment the reason.
        settings: ``context``, the field of ``metadata`` that holds the context; ``use_references``; arguments and
            settings of :class:`mars_score.MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """
    options = read_options(settings)

    def mars(
        *, output: str, expected_output: Any = None, metadata: Mapping[str, object] | None = None, **_: object
    ) -> Evaluation:
        judged = options.judge(output, expected_output, metadata or {}, where="metadata")
        return Evaluation(name=name, value=judged["score"], comment=judged["reason"], metadata=judged["metadata"])

    return mars
