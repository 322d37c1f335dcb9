"""MARS in a ``Trainer`` of transformers. Token ids are decoded to texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mars_score.data.frames import entries_of
from mars_score.errors import brief
from mars_score.integrations.distributed import distributed, score_once


def compute_metrics(
    mars: Any,
    tokenizer: Any,
    contexts: Sequence[object] | None = None,
    *,
    samples: Sequence[str] | Sequence[Sequence[str]] | None = None,
    tasks: str | Sequence[str] | None = None,
    use_references: bool = True,
) -> Callable[..., dict[str, float]]:
    """Make the ``compute_metrics`` of a ``Trainer`` or, with ``predict_with_generate=True``, ``Seq2SeqTrainer``.

    Token ids may be NumPy arrays, tensors or lists. With ``batch_eval_metrics=True`` the texts of the batches are
    kept and scored together after the last one.

    In a distributed run each process has all rows. The first one scores them and broadcasts the score. A
    ``Seq2SeqTrainer`` then pads the last batches with repeated rows, which are dropped if ``contexts`` are given.

    Args:
        mars: the metric from ``evaluate.load``, or a :class:`mars_score.MarsScorer`.
        tokenizer: decodes predictions, labels and inputs. Special tokens are dropped.
        contexts: of the evaluation set, in its order. None: the model's inputs, if the trainer passes them
            (``include_for_metrics=["inputs"]``). They must not contain the reference, as they do in causal
            language modelling.
        samples: of the evaluation set, in its order; see :meth:`mars_score.MarsScorer.score`.
        tasks: of the evaluation set, in its order, or one for all rows; see the same method.
        use_references: whether the labels count. If not, predictions are scored by their contexts alone.

    Returns:
        A function from ``EvalPrediction`` to ``{"mars": score}``, or to ``{}`` with ``compute_result=False``. It
        raises ValueError for logits, for missing labels, and for missing contexts unless ``mars`` has
        ``use_context=False``.
    """
    names = ("predictions", "references", "contexts")
    kept: dict[str, list[str] | None] = {}  # texts of the batches so far

    def compute(prediction: Any, compute_result: bool = True) -> dict[str, float]:
        before = dict(kept)
        kept.clear()  # A batch that fails leaves no rows behind.
        texts = _decode(prediction, tokenizer, with_labels=use_references, with_inputs=contexts is None)
        for name, batch in zip(names, texts, strict=True):
            earlier = before.get(name)
            kept[name] = batch if batch is None or earlier is None else earlier + batch
        if not compute_result:
            return {}
        rows: dict[str, Any] = {**kept, "samples": samples, "tasks": tasks}
        kept.clear()
        if contexts is not None:
            _drop_repeated(rows, len(contexts))
            rows["contexts"] = contexts
        is_metric = hasattr(mars, "compute")
        try:
            mean = score_once(lambda: mars.compute(**rows)["mars"] if is_metric else mars.score(**rows).score)
            return {"mars": mean}
        except ValueError as error:
            if rows["contexts"] is None:
                error.add_note('A Trainer passes its inputs on with include_for_metrics=["inputs"].')
            raise

    return compute


def _decode(
    prediction: Any, tokenizer: Any, *, with_labels: bool, with_inputs: bool
) -> tuple[list[str], list[str] | None, list[str] | None]:
    """Decode the predictions and, if wanted, the labels and the inputs. The inputs may be missing."""
    labels, inputs = prediction.label_ids, getattr(prediction, "inputs", None)
    if with_labels and labels is None:
        raise ValueError(
            "label_ids are missing: give the evaluation set labels, or score by the contexts alone with "
            "use_references=False"
        )
    return (
        _texts(tokenizer, "predictions", prediction.predictions),
        _texts(tokenizer, "labels", labels) if with_labels else None,
        _texts(tokenizer, "inputs", inputs) if with_inputs and inputs is not None else None,
    )


def _drop_repeated(rows: dict[str, Any], count: int) -> None:
    """Drop rows beyond ``count`` if all of them are repeated. The scorer refuses other rows."""
    texts = rows["references"] or rows["predictions"]
    if set(texts[count:]) <= set(texts[:count]) and distributed():
        for name in ("predictions", "references"):
            rows[name] = rows[name] and rows[name][:count]


def _texts(tokenizer: Any, name: str, ids: Any) -> list[str]:
    """Decode rows of token ids. Negative ids (-100) are padding."""
    rows = [[token for token in row if token >= 0] for row in _token_rows(name, ids)]
    return list(tokenizer.batch_decode(rows, skip_special_tokens=True))


def _token_rows(name: str, ids: Any) -> list[list[int]]:
    """Return token ids as lists.

    Raises:
        ValueError: these are not token ids.
    """
    if isinstance(ids, Mapping):  # the whole batch, with batch_eval_metrics=True
        ids = ids.get("input_ids")
    if isinstance(ids, tuple):  # Models may return more than token ids.
        ids = ids[0]
    if isinstance(ids, list) and any(isinstance(batch, tuple) or getattr(batch, "ndim", 1) == 2 for batch in ids):
        # a list of batches, with eval_do_concat_batches=False
        return [row for batch in ids for row in _token_rows(name, batch)]
    shape = tuple(getattr(ids, "shape", ()))
    rows = entries_of(ids) if len(shape) in (0, 2) else None  # Logits have three dimensions.
    lists: list[Any] = [row.tolist() if hasattr(row, "tolist") else row for row in rows or ()]
    are_ids = all(isinstance(row, list) and all(isinstance(token, int) for token in row) for row in lists)
    if rows is None or not are_ids:
        got = f"{ids.dtype} of shape {shape}" if shape else brief(ids)
        raise ValueError(
            f"{name} must be token ids, (rows, tokens), got {got}; use a Seq2SeqTrainer with "
            "predict_with_generate=True, or preprocess_logits_for_metrics"
        )
    return lists
