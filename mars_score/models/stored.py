"""What a model says of texts, stored or new: the model is loaded only for what is new."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mars_score.models.fingerprints import Current, model_key
from mars_score.store.lookup import Done, Item, Results, Value, from_json, get_or_compute, to_json
from mars_score.store.results import ResultStore

Model = TypeVar("Model")


@dataclass(frozen=True)
class Readings(Generic[Model, Item, Value]):
    """Results of one model and method."""

    kind: str  # of results in the store
    model: Current[Model]  # reads what is not stored
    # What the results depend on besides the model and the item, a number to raise when the same inputs come to
    # give other results among it.
    method: Sequence[Any]
    # Called as ``compute(model, missing, done)``; see :func:`mars_score.store.lookup.get_or_compute`.
    compute: Callable[[Model, list[Item], Done[Item, Value]], None]
    parts: Callable[[Item], Sequence[Any]] = lambda item: (item,)  # see :class:`mars_score.store.lookup.Results`
    encode: Callable[[Value], bytes] = to_json
    decode: Callable[[bytes], Value] = from_json

    def read(
        self, store: ResultStore, items: Iterable[Item], progress: Callable[[int, int], None] | None = None
    ) -> dict[Item, Value]:
        """The result of each different item; ``progress`` counts the new ones."""
        different = list(dict.fromkeys(items))
        if not different:
            return {}
        common = model_key(self.model.spec, self.model.get, *self.method)
        results = Results(self.kind, common, self.parts, self.encode, self.decode)

        def compute(missing: list[Item], done: Done[Item, Value]) -> None:
            self.compute(self.model.get(), missing, done)

        return get_or_compute(store, results, different, compute, progress)
