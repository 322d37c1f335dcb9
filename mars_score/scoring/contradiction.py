"""How probable it is that a candidate contradicts a text, kept or new; the model is loaded only for new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mars_score.models.fingerprints import Current, model_key
from mars_score.settings import ModelSettings
from mars_score.store.lookup import Results, get_or_compute
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.models.engine.entailment import Model, Pair

LIKELY = 0.5  # probability above which a candidate is said to contradict
_METHOD = 1  # part of the keys of stored results


class ContradictionReader:
    """Reads candidates with the entailment model.

    Args:
        models: names it and its number type.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self._models, self._runtime = models, runtime
        self._model = Current(models.entailment_model, self._load)

    def _load(self) -> tuple[Model, int]:
        """The model and the number of its class for contradictions."""
        from mars_score.models.engine.entailment import contradiction_class
        from mars_score.models.loading import entailment_model

        model = entailment_model(self._models, self._runtime)
        return model, contradiction_class(model)

    def read(self, pairs: Sequence[Pair], progress: Callable[[int, int], None] | None = None) -> dict[Pair, float]:
        """The probability in [0, 1] that the second text of each pair contradicts the first.

        ``progress`` counts the new ones.

        Raises:
            ModelUnavailableError: the entailment model cannot be loaded.
            UnsupportedModelError: it has no class for contradictions.
        """
        if not pairs:
            return {}
        models = self._models
        common = model_key(models.entailment_model, self._model.get, models.dtype, "contradiction", _METHOD)

        def compute(missing: list[Pair], done: Callable[[Pair, float], None]) -> None:
            from mars_score.models.engine.entailment import classify

            model, number = self._model.get()
            size = self._runtime.encoder_batch_size
            classify(model, missing, lambda pair, found: done(pair, found[number]), size)

        results: Results[Pair, float] = Results("scores", common, parts=lambda pair: pair)
        return get_or_compute(self._runtime.store, results, pairs, compute, progress)
