"""MARS as the metric ``mars`` of lm-evaluation-harness, for tasks of class :class:`MarsTask`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lm_eval.api.registry import register_metric
from lm_eval.api.task import ConfigurableTask
from lm_eval.utils import apply_template

from mars_score.data.checking import check_candidates
from mars_score.integrations.harness_options import PlaceInDocuments, read_options
from mars_score.rows import Example, Row

_LM_EVAL_KEYS = ("metric", "aggregation", "higher_is_better", "hf_evaluate")  # lm-eval's own keys of metric_list


@register_metric(metric="mars", higher_is_better=True, aggregation="mean")  # type: ignore[untyped-decorator]
def mars(**_: object) -> float:
    """Raise ValueError, because only the task class gets the documents with the contexts."""
    raise ValueError("the metric mars needs in its task class: !function mars_score.integrations.lm_eval.MarsTask")


class MarsTask(ConfigurableTask):  # type: ignore[misc]
    """A ``generate_until`` task whose ``metric_list`` has the metric ``mars``, and any others.

    ``doc_to_target`` gives a reference or a list of references. The entry of the metric may have ``context``, the
    field or template of a document's context (default: ``"context"``), ``context_task``, what the contexts are
    (``text``, ``summary``, ``dialogue`` or ``data``), ``use_references: false``, and arguments and settings of
    :class:`mars_score.MarsScorer`. The first process scores all rows in one call.

    Raises:
        TypeError, ValueError: an unknown setting, one that is out of range, or another ``output_type``. Before
            anything is generated, also a document without a reference or context, named with its number.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        entries = [entry for entry in config.get("metric_list") or () if entry["metric"] == "mars"]
        if len(entries) != 1 or config.get("output_type", "generate_until") != "generate_until":
            raise ValueError("a MarsTask needs output_type: generate_until and, once in metric_list, metric: mars")
        options = {name: value for name, value in entries[0].items() if name not in _LM_EVAL_KEYS}
        self._options = read_options(options)
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        del self._metric_fn_list["mars"]  # Metrics in this list score each document alone.
        self._aggregation_list["mars"] = self._score

    def construct_requests(self, doc: Mapping[str, object], ctx: object, **options: Any) -> Any:
        """Check a document, and make lm-eval's requests for it."""
        self._example(doc, f"document {options['metadata'][1]}")
        return super().construct_requests(doc, ctx, **options)

    def process_results(self, doc: Mapping[str, object], results: Sequence[str]) -> dict[str, Any]:
        """Return the values of other metrics and, for ``mars``, the row, which is scored later with all others."""
        values: dict[str, Any] = super().process_results(doc, results)
        if "mars" in self._aggregation_list:  # It is missing with --predict_only.
            [candidate] = check_candidates([results[0]])
            values["mars"] = asdict(self._example(doc).with_candidate(candidate))
        return values

    def _example(self, doc: Mapping[str, object], name: str = "a document") -> Example:
        field, name = self._options.context, f"{name} of task {self.config.task}"
        place = PlaceInDocuments(
            names={"references": "the target", "contexts": f"the context ({field})"}, documents=[name]
        )
        context = apply_template(field, doc) if "{" in field else self._options.find_context(doc, name)
        [example] = self._options.check([self.doc_to_target(doc)], [context], place)
        return example

    def _score(self, rows: Sequence[dict[str, Any]]) -> float:
        """Return the mean score, and set each row's score, which lm-eval logs if it runs in one process."""
        result = self._options.scorer.score_rows([Row(**row) for row in rows])
        for row, score in zip(rows, result.scores, strict=True):
            row["score"] = score
        return float(result.score)
