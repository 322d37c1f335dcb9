"""MARS in a ``Trainer`` of transformers, which passes token ids where MARS needs texts."""

from collections.abc import Callable, Sequence
from typing import Any

from mars_score.integrations.distributed import distributed, score_once


def compute_metrics(
    mars: Any,
    tokenizer: Any,
    contexts: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    samples: Sequence[str] | Sequence[Sequence[str]] | None = None,
    use_references: bool = True,
) -> Callable[[Any], dict[str, float]]:
    """Make the ``compute_metrics`` of a ``Trainer`` or, with ``predict_with_generate=True``, ``Seq2SeqTrainer``.

    Each process of a distributed run has all rows; the first one scores them and broadcasts the score. There a
    ``Seq2SeqTrainer`` pads the last batches with repeated rows; they are dropped if ``contexts`` are given, whose
    number is known.

    Args:
        mars: the metric from ``evaluate.load``, or a :class:`mars_score.MarsScorer`.
        tokenizer: decodes predictions, labels and inputs; special tokens are dropped.
        contexts: of the evaluation set, in its order. None: the model's inputs, if the trainer passes them
            (``include_for_metrics=["inputs"]``); not for models whose input contains the reference, as in causal
            language modelling.
        samples: of the evaluation set, in its order; see :meth:`mars_score.MarsScorer.score`. None: none.
        use_references: False: the labels do not count, and predictions are scored by their contexts alone.

    Returns:
        A function from ``EvalPrediction`` to ``{"mars": score}``. It raises ValueError for logits, or without
        any contexts unless ``mars`` has ``use_context=False``.
    """

    def compute(prediction: Any) -> dict[str, float]:
        given = contexts
        if given is None and getattr(prediction, "inputs", None) is not None:
            given = _texts(tokenizer, "inputs", prediction.inputs)
        rows = {
            "predictions": _texts(tokenizer, "predictions", prediction.predictions),
            "references": _texts(tokenizer, "labels", prediction.label_ids),
            "contexts": given,
            "samples": samples,
        }
        if contexts is not None:
            _drop_repeated(rows)
        if not use_references:
            rows["references"] = None
        is_metric = hasattr(mars, "compute")
        try:
            return {
                "mars": score_once(lambda: mars.compute(**rows)["mars"] if is_metric else mars.score(**rows).score)
            }
        except ValueError as error:
            if given is None:
                error.add_note('A Trainer passes its inputs on with include_for_metrics=["inputs"].')
            raise

    return compute


def _drop_repeated(rows: dict[str, Any]) -> None:
    """Drop rows beyond the contexts if all of them are repeated; the scorer refuses any others."""
    count, references = len(rows["contexts"]), rows["references"]
    if set(references[count:]) <= set(references[:count]) and distributed():
        rows["references"] = references[:count]
        rows["predictions"] = rows["predictions"][:count]


def _texts(tokenizer: Any, what: str, ids: Any) -> list[str]:
    """Decoded rows of token ids; negative ones (-100) are padding."""
    if isinstance(ids, tuple):  # models may add more to their output
        ids = ids[0]
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be token ids, (rows, tokens), got {ids.dtype} of shape {ids.shape}; "
            "use a Seq2SeqTrainer with predict_with_generate=True, or preprocess_logits_for_metrics"
        )
    rows = [[int(token) for token in row if token >= 0] for row in ids]
    return list(tokenizer.batch_decode(rows, skip_special_tokens=True))
