"""How probable it is that a candidate contradicts a text: the entailment model is loaded only for new pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mars_score.models.fingerprints import Current
from mars_score.models.stored import Readings
from mars_score.settings import ModelSettings
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.models.engine.entailment import Model, Pair

LIKELY = 0.5  # probability above which a candidate is said to contradict
_METHOD = 1  # part of the keys of stored results


def contradictions(models: ModelSettings, runtime: Runtime) -> Readings[tuple[Model, int], Pair, float]:
    """The probability in [0, 1] that the second text of a pair contradicts the first."""
    method = (models.dtype, "contradiction", _METHOD)
    model = Current(models.entailment_model, partial(_load, models, runtime))
    compute = partial(_compute, size=runtime.encoder_batch_size)
    return Readings("scores", model, method, compute, parts=lambda pair: pair)


def _load(models: ModelSettings, runtime: Runtime) -> tuple[Model, int]:
    """The model and the number of its class for contradictions."""
    from mars_score.models.engine.entailment import contradiction_class
    from mars_score.models.loading import model_and_tokenizer

    model = model_and_tokenizer("classification", models.entailment_model, models.dtype, runtime)
    return model, contradiction_class(model)


def _compute(
    loaded: tuple[Model, int], pairs: list[Pair], done: Callable[[Pair, float], None], size: int | None
) -> None:
    from mars_score.models.engine.entailment import classify

    model, number = loaded
    classify(model, pairs, lambda pair, probabilities: done(pair, probabilities[number]), size)
