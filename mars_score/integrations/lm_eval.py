"""MARS as the metric ``mars`` of lm-evaluation-harness, for tasks of class :class:`MarsTask`."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval.api.registry import register_metric
from lm_eval.api.task import ConfigurableTask
from lm_eval.utils import apply_template

from mars_score.data.validation import check_contexts, check_references
from mars_score.scorer import MarsScorer

_OF_LM_EVAL = ("metric", "aggregation", "higher_is_better", "hf_evaluate")  # what an entry of metric_list may have


@register_metric(metric="mars", higher_is_better=True, aggregation="mean")  # type: ignore[untyped-decorator]
def mars(**_: Any) -> float:
    """Raise ValueError: lm-eval passes documents, which hold the contexts, to their task alone."""
    raise ValueError("the metric mars needs in its task class: !function mars_score.integrations.lm_eval.MarsTask")


class MarsTask(ConfigurableTask):  # type: ignore[misc]
    """A ``generate_until`` task whose ``metric_list`` has the metric ``mars``, and any others.

    ``doc_to_target`` gives a reference or a list of them. The entry of the metric may also have ``context``, the
    field or template of a document's context (default: ``"context"``), ``use_references: false``, and arguments
    and settings of :class:`MarsScorer`. All rows are scored in one call, by the first process.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range; another ``output_type``; before
            anything is generated, a document without a reference or context, named with its number.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        entries = [entry for entry in config.get("metric_list") or () if entry["metric"] == "mars"]
        if len(entries) != 1 or config.get("output_type", "generate_until") != "generate_until":
            raise ValueError("a MarsTask needs output_type: generate_until and, once in metric_list, metric: mars")
        options = {name: value for name, value in entries[0].items() if name not in _OF_LM_EVAL}
        self._context = options.pop("context", "context")
        self._use_references = options.pop("use_references", True)
        self._scorer = MarsScorer(**options)  # checks them; loads nothing
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        del self._metric_fn_list["mars"]  # those of others score document by document
        self._aggregation_list["mars"] = self._score

    def construct_requests(self, doc: Mapping[str, Any], ctx: Any, **options: Any) -> Any:
        """lm-eval's requests for a document, which is checked."""
        self._columns(doc, f"document {options['metadata'][1]}")
        return super().construct_requests(doc, ctx, **options)

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """The values of other metrics and, as that of ``mars``, the row, which is scored later with all others."""
        values: dict[str, Any] = super().process_results(doc, results)
        if "mars" in self._aggregation_list:  # not with --predict_only
            values["mars"] = {"prediction": results[0], **self._columns(doc)}
        return values

    def _columns(self, doc: Mapping[str, Any], name: str = "a document") -> dict[str, Any]:
        references = context = None
        if self._use_references:
            where = f"the target of {name} of task {self.config.task}".format
            [references] = check_references([self.doc_to_target(doc)], where=where)
        if self._scorer.settings.use_context:
            where = f"the context ({self._context}) of {name} of task {self.config.task}".format
            given = apply_template(self._context, doc) if "{" in self._context else doc.get(self._context)
            [context] = check_contexts([given], 1, use_context=True, where=where)
        return {"references": references, "context": context}

    def _score(self, rows: Sequence[dict[str, Any]]) -> float:
        """The mean score; rows get their own, too, which the logged samples of a single process then have."""
        columns = ([row[name] for row in rows] for name in ("prediction", "references", "context"))
        result = self._scorer.score(*(None if None in column else column for column in columns))
        for row, score in zip(rows, result.scores, strict=True):
            row["score"] = score
        return float(result.score)
