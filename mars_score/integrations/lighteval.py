"""MARS as ``Metrics.mars`` of lighteval, once this module is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from aenum import extend_enum
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import SamplingMethod

from mars_score.data.validation import check_contexts, check_references
from mars_score.scorer import MarsScorer

__all__ = ["Metrics"]


class Mars(SampleLevelComputation):  # type: ignore[misc]
    """Scores all rows of a task in one call; its attributes are the options of :class:`MarsMetric`."""

    def compute(self, docs: Sequence[Any], responses: Sequence[Any], **_: Any) -> list[float]:
        """The scores of the first text of each response; TypeError, ValueError: a bad document, with its id."""
        field, use_references, scorer = self.options()
        names = [f"document {doc.id} of task {doc.task_name}" for doc in docs]
        references = contexts = None
        if use_references:
            golds = [doc.get_golds() if doc.choices else () for doc in docs]
            references = check_references(golds, where=lambda row: f"choices[gold_index] of {names[row]}")
        if scorer.settings.use_context:
            given = [(doc.specific or {}).get(field) for doc in docs]
            where = f"specific[{field!r}] of {{}}".format
            contexts = check_contexts(given, len(docs), use_context=True, where=lambda row: where(names[row]))
        return scorer.score([response.final_text[0] for response in responses], references, contexts).scores

    def options(self) -> tuple[str, bool, MarsScorer]:
        """The field of contexts, whether references count, and a scorer, which has loaded nothing."""
        given = {"context": "context", "use_references": True, **vars(self)}
        return given.pop("context"), given.pop("use_references"), MarsScorer(**given)


class MarsMetric(SampleLevelMetric):  # type: ignore[misc]
    """The metric of ``Docs``, whose references are their gold choices; ``sample_params`` are its options.

    They are ``context``, the field of ``Doc.specific`` that holds the context (default: ``"context"``),
    ``use_references`` (default: True), and arguments and settings of :class:`MarsScorer`. Wrong ones raise
    TypeError or ValueError when they are given.
    """

    def __call__(self, sample_params: Mapping[str, Any]) -> MarsMetric:
        """Set options, which the name in the results tells."""
        super().__call__(sample_params)
        self.sample_level_fn.options()
        return self


_MARS = MarsMetric("mars", True, SamplingMethod.GENERATIVE, Mars(), np.mean, batched_compute=True)
extend_enum(Metrics, "mars", _MARS)
