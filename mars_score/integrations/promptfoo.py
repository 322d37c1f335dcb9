"""MARS as a Python assertion of promptfoo."""

from collections.abc import Mapping
from typing import Any

from mars_score.integrations.harness_options import read_options
from mars_score.judging import Gate


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, object]:
    """Judge an output by the variables ``reference`` and ``context`` of its test.

    Args:
        output: the model's text.
        context: ``vars`` of the test and ``config`` of the assertion, from promptfoo. ``config`` may have
            ``threshold``, the least score that passes (default: every score passes unless a sentence is
            contradicted); ``allow_contradictions``; ``reference`` and ``context``, names of other variables;
            ``use_references``; arguments and settings of :class:`mars_score.MarsScorer`.

    Returns:
        A ``GradingResult``. Its ``named_scores`` are what each term adds to the score, and how far a summary is
        ``supported``.

    Raises:
        TypeError, ValueError: a variable is missing, an unknown setting, or one that is out of range.
    """
    config = dict(context.get("config") or {})
    reference = config.pop("reference", "reference")
    gate = Gate(config.pop("threshold", None), config.pop("allow_contradictions", False))
    row = output, context["vars"].get(reference), context["vars"]
    judged = read_options(config).judge(*row, where="vars of the test", gate=gate)
    terms, supported = judged["metadata"]["terms"], judged["metadata"]["supported"]
    return {
        "pass": judged["passed"] is not False,
        "score": judged["score"],
        "reason": judged["reason"],
        "named_scores": {name: term["value"] * term["weight"] for name, term in terms.items()}
        | ({} if supported is None else {"supported": supported}),
    }
