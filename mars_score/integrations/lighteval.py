"""MARS as ``Metrics.mars`` of lighteval. The import of this module registers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from aenum import extend_enum
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from mars_score.data.checking import check_candidates
from mars_score.integrations.harness_options import HarnessOptions, PlaceInDocuments, read_options

__all__ = ["Metrics"]


class MarsComputation(SampleLevelComputation):  # type: ignore[misc]
    """A computation that scores all rows of a task in one call. Its attributes are the options of the metric."""

    def compute(self, docs: Sequence[Doc], responses: Sequence[ModelResponse], **_: object) -> list[float]:
        """Score the first text of each response.

        Raises:
            TypeError, ValueError: a bad document. Its id is named.
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


def _name(doc: Doc) -> str:
    return f"document {doc.id} of task {doc.task_name}"


class MarsMetric(SampleLevelMetric):  # type: ignore[misc]
    """A metric of ``Docs``, whose references are their gold choices.

    Its options, ``sample_params``, are ``context``, the field of ``Doc.specific`` that holds the context (default:
    ``"context"``); ``context_task``, what the contexts are (``"text"``, ``"summary"``, ``"dialogue"`` or
    ``"data"``); ``use_references`` (default: True); and arguments and settings of :class:`mars_score.MarsScorer`.
    """

    def __call__(self, sample_params: Mapping[str, object]) -> MarsMetric:
        """Set the options, which the name of the metric in the results shows.

        Raises:
            TypeError, ValueError: an unknown setting, or one that is out of range.
        """
        super().__call__(sample_params)
        self.sample_level_fn.options()
        return self


_MARS = MarsMetric("mars", True, SamplingMethod.GENERATIVE, MarsComputation(), np.mean, batched_compute=True)
extend_enum(Metrics, "mars", _MARS)
