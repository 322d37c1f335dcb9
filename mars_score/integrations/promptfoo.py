"""MARS as a Python assertion of promptfoo."""

from collections.abc import Mapping
from typing import Any

from mars_score.integrations.harness_options import read_options


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Judge an output by the variables ``reference`` and ``context`` of its test.

    Args:
        output: the model's text.
        context: ``vars`` of the test and ``config`` of the assertion, from promptfoo. ``config`` may have
            ``threshold``, the least score that passes (default: all do); ``reference`` and ``context``, names of
            other variables; ``use_references``; arguments and settings of :class:`mars_score.MarsScorer`. The
            variant is ``"plus"`` unless given.

    Returns:
        A ``GradingResult``, whose ``named_scores`` are what each term adds to the score.

    Raises:
        TypeError, ValueError: a variable is missing, an unknown setting, or one that is out of range.
    """
    config = {"variant": "plus", **(context.get("config") or {})}
    reference, threshold = config.pop("reference", "reference"), config.pop("threshold", None)
    row = output, context["vars"].get(reference), context["vars"]
    judged = read_options(config).judge(*row, where="vars of the test", threshold=threshold)
    terms = judged["metadata"]["terms"]
    return {
        "pass": judged["passed"] is not False,
        "score": judged["score"],
        "reason": judged["reason"],
        "named_scores": {name: term["value"] * term["weight"] for name, term in terms.items()},
    }
