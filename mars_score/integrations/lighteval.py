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

from mars_score.data.checking import check_candidates
from mars_score.integrations.harness_options import HarnessOptions, PlaceInDocuments, read_options

__all__ = ["Metrics"]


class MarsComputation(SampleLevelComputation):  # type: ignore[misc]
    """A computation that scores all rows of a task in one call; its attributes are the options of the metric."""

    def compute(self, docs: Sequence[Any], responses: Sequence[Any], **_: Any) -> list[float]:
        """Score the first text of each response.

        Raises:
            TypeError, ValueError: a bad document, with its id.
        """
        options = self.options()
        golds = [doc.get_golds() if doc.choices else () for doc in docs]
        contexts = [options.find_context(doc.specific or {}, f"`specific` of {_name(doc)}") for doc in docs]
        names = {"references": "choices[gold_index]", "contexts": f"specific[{options.context!r}]"}
        place = PlaceInDocuments(names=names, documents=list(map(_name, docs)))
        examples = options.check(golds, contexts, place)
        candidates = check_candidates([response.final_text[0] for response in responses])
        rows = [example.with_candidate(text) for example, text in zip(examples, candidates, strict=True)]
        return options.scorer.score_rows(rows).scores

    def options(self) -> HarnessOptions:
        """Read the options from the attributes."""
        return read_options(vars(self))


def _name(doc: Any) -> str:
    return f"document {doc.id} of task {doc.task_name}"


class MarsMetric(SampleLevelMetric):  # type: ignore[misc]
    """The metric of ``Docs``, whose references are their gold choices; ``sample_params`` are its options.

    They are ``context``, the field of ``Doc.specific`` that holds the context (default: ``"context"``),
    ``context_task``, what the contexts are (``"text"``, ``"summary"``, ``"dialogue"`` or ``"data"``),
    ``use_references`` (default: True), and arguments and settings of :class:`mars_score.MarsScorer`. Wrong ones
    raise TypeError or ValueError when they are given.
    """

    def __call__(self, sample_params: Mapping[str, object]) -> MarsMetric:
        """Set and check options; the name of the metric in the results shows them."""
        super().__call__(sample_params)
        self.sample_level_fn.options()
        return self


_MARS = MarsMetric("mars", True, SamplingMethod.GENERATIVE, MarsComputation(), np.mean, batched_compute=True)
extend_enum(Metrics, "mars", _MARS)
