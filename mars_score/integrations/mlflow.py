"""MARS as a scorer of ``mlflow.genai.evaluate``."""

import json
from typing import Any

from mlflow.entities import Feedback
from mlflow.genai import Scorer, scorer

from mars_score.integrations.harness_options import read_options
from mars_score.judging import Gate


def mars_scorer(
    name: str = "mars", *, threshold: float | None = None, allow_contradictions: bool = False, **settings: Any
) -> Scorer:
    """Make a scorer that judges ``outputs`` by ``expectations["expected_response"]`` and ``inputs["context"]``.

    Args:
        name: of the feedback. Its value is the score, and its rationale the reason.
        threshold: the least score that passes. ``metadata`` of the feedback says whether the score did.
        allow_contradictions: whether outputs with a contradicted sentence can pass.
        settings: ``context``, the field of ``inputs`` that holds the context; ``use_references``; arguments and
            settings of :class:`mars_score.MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """
    options, gate = read_options(settings), Gate(threshold, allow_contradictions)

    @scorer(name=name)  # type: ignore[untyped-decorator]
    def mars(inputs: dict[str, object], outputs: str, expectations: dict[str, Any] | None) -> Feedback:
        reference = (expectations or {}).get("expected_response")
        judged = options.judge(outputs, reference, inputs, where="inputs", gate=gate)
        metadata = {"passed": judged["passed"], **judged["metadata"]}
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
        return Feedback(name=name, value=judged["score"], rationale=judged["reason"], metadata=texts)

    return mars
