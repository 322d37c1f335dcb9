"""The model calls of a scorer, whose values are kept in memory and in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.cache import Codec, Item, LastUsed, Value, cached, json_codec
from mars_score.models.loading import loading_lock, shared_model
from mars_score.models.locating import locate
from mars_score.models.running import number_type
from mars_score.models.sources import HubModel, ReadyMade, Source
from mars_score.rows import Entailment, LogProbability

if TYPE_CHECKING:
    from mars_score.models.causal_lm import CausalLanguageModel
    from mars_score.models.encoder import Encoding
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings


class _Call(NamedTuple):
    """A kind of call: the setting of its model, its stage in reports of progress, and its version.

    The version is a part of the keys of stored values; it is raised when the code changes what a model computes.
    """

    model: str
    stage: str
    version: int


class _Loaded(NamedTuple):
    """A model in its wrapper, and the source that it was loaded from."""

    source: Source
    model: Any


_CALLS = {
    "encodings": _Call("encoder", "encode", 5),
    "log_probabilities": _Call("language_model", "likelihood", 3),
    "entailments": _Call("entailment_model", "contradiction", 6),
    "infills": _Call("language_model", "infill", 3),
}
_MEMORY_BYTES = 2**28  # Size of the values that are kept in memory.
_VALUE_BYTES = 500  # Approximate size of a value without its arrays.


class ModelCalls:
    """Calls the models that the settings name, and loads them when they are first needed.

    Args:
        models: the names of the models, and their number type.
        runtime: device, batch sizes, store, and progress reports.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self.models, self.runtime = models, runtime
        self._loaded: dict[str, _Loaded] = {}  # by setting
        self._memory: LastUsed[Any, Any] = LastUsed(_MEMORY_BYTES)

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> dict[str, Encoding]:
        """Encode each different text, with vectors of its tokens if ``tokens``.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """
        from mars_score.models.encoder import Encoding

        codec = Codec(Encoding.to_bytes, Encoding.from_bytes)
        return self.cached(
            "encodings",
            [tokens],
            texts,
            lambda missing: self._model("encoder").encode(missing, tokens=tokens),
            codec,
        )

    def log_probability(
        self, pairs: Iterable[tuple[str, str]], max_context_tokens: int | None
    ) -> dict[tuple[str, str], LogProbability]:
        """Compute the log probability of each different text with its context and without.

        Args:
            pairs: (context, text) pairs.
            max_context_tokens: number of tokens of a context to use; None for as many as fit the window.
        """

        def compute(missing: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], LogProbability]]:
            from mars_score.models.likelihood import in_and_out_of_context

            return in_and_out_of_context(self.language_model(), missing, max_context_tokens)

        method = [max_context_tokens]
        return self.cached("log_probabilities", method, pairs, compute, json_codec(LogProbability))

    def entails(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Entailment]:
        """Compute the entailment and contradiction probabilities of each different (premise, hypothesis).

        Raises:
            ModelUnavailableError: the NLI model cannot be loaded.
            UnsupportedModelError: it has no classes for entailment and contradiction.
        """
        codec = json_codec(Entailment.from_json)
        return self.cached(
            "entailments", [], pairs, lambda missing: self._model("entailment_model").entails(missing), codec
        )

    def cached(
        self,
        kind: str,
        method: Sequence[Any],
        items: Iterable[Item],
        compute: Callable[[Sequence[Item]], Iterable[tuple[Item, Value]]],
        codec: Codec[Value],
    ) -> dict[Item, Value]:
        """Return the value of each different item: from memory, from the store, or computed.

        Args:
            kind: of :data:`mars_score.cache.KINDS`.
            method: what the values depend on besides the model and the item.
            items: strings, or tuples of strings and numbers.
            compute: yields each of the missing items with its value.
            codec: writes and reads the values in the store.

        Raises:
            ModelUnavailableError: a model of the Hub cannot be loaded.
        """
        call = _CALLS[kind]
        different = list(dict.fromkeys(items))
        if not different:  # No model is fetched from the Hub for nothing.
            return {}
        source = self._source(call.model)
        dtype = number_type(self.models.dtype, self.runtime.device)
        common: list[Any] | None = [source.name, source.revision, dtype, call.version, *method]
        if source.revision is None:  # The model may change between calls, so nothing is kept.
            common = None
        key = kind, str(common)
        known = {item: self._memory.get((key, item)) for item in different} if common else {}
        values = {item: value for item, value in known.items() if value is not None}
        missing = [item for item in different if item not in values]
        reported = partial(self.runtime.reported, call.stage, compute)
        values |= cached(self.runtime.store, kind, common, missing, reported, codec)
        for item, value in values.items() if common else ():
            size = _VALUE_BYTES + sum(getattr(part, "nbytes", 0) for part in value)
            self._memory.put((key, item), value, size)
        return values

    def token_offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Return the character spans of the tokens of each text; loads the encoder."""
        return dict(zip(texts, self._model("encoder").offsets(texts), strict=True)) if texts else {}

    def encoder(self) -> Any:
        """Return the ``SentenceTransformer``; raises ModelUnavailableError."""
        return self._model("encoder").model

    def load(self, kind: str) -> None:
        """Load the model of a kind of call (:data:`mars_score.cache.KINDS`); raises ModelUnavailableError."""
        self._model(_CALLS[kind].model)

    def language_model(self) -> CausalLanguageModel:
        """Return the language model; raises ModelUnavailableError or UnsupportedModelError."""
        model: CausalLanguageModel = self._model("language_model")
        if isinstance(locate(self.models.language_model), ReadyMade):
            model.prompts.clear()  # Its weights may have changed since the last call.
        return model

    def _source(self, name: str) -> Source:
        """Return the source of a setting's model, with its revision where outputs are to be stored."""
        source = locate(getattr(self.models, name))
        if self.runtime.store.folder and isinstance(source, HubModel) and source.revision is None:
            shared_model(name, self.models, self.runtime)  # Only loading tells the revision.
            source = locate(getattr(self.models, name))
        return source

    def _model(self, name: str) -> Any:
        """Return a setting's model in its wrapper, loaded when first needed, or if its name stands for another."""
        spec = getattr(self.models, name)
        with loading_lock:
            loaded = self._loaded.get(name)
            if loaded is None or loaded.source != locate(spec):
                model = self._wrap(name, shared_model(name, self.models, self.runtime))
                loaded = _Loaded(locate(spec), model)  # Only loading tells the revision of a model of the Hub.
            elif name == "encoder" and isinstance(loaded.source, ReadyMade):
                # The prompt and the window of an object may have changed since the last call.
                loaded = loaded._replace(model=self._wrap(name, loaded.model.model))
            self._loaded[name] = loaded
            return loaded.model

    def _wrap(self, name: str, model: Any) -> Any:
        if name == "encoder":
            from mars_score.models.encoder import SentenceEncoder

            return SentenceEncoder(model, self.runtime.encoder_batch_size)
        if name == "entailment_model":
            from mars_score.models.nli import NliModel

            network, tokenizer = model
            return NliModel(network, tokenizer, self.runtime.encoder_batch_size)
        return model
