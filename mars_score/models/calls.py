"""The model calls of a scorer. Their values are kept in memory and in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.cache import Codec, Item, LruCache, Value, cached, json_codec
from mars_score.models.loading import loading_lock, locate, shared_model
from mars_score.models.running import number_type
from mars_score.models.sources import HubModel, ReadyMade, Source
from mars_score.rows import Entailment, LogProbability

if TYPE_CHECKING:
    from mars_score.models.causal_lm import CausalLanguageModel
    from mars_score.models.encoder import Encoding, SentenceEncoder
    from mars_score.models.nli import NliModel
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings


class _Call(NamedTuple):
    """A kind of model call."""

    model: str  # setting that names the model
    stage: str  # name in reports of progress
    version: int  # part of the key of stored values; raise it when the code computes other values


class _Loaded(NamedTuple):
    source: Source
    model: Any  # in its wrapper


_CALLS = {
    "encodings": _Call("encoder", "encode", 5),
    "log_probabilities": _Call("language_model", "likelihood", 3),
    "entailments": _Call("entailment_model", "contradiction", 6),
    "infills": _Call("language_model", "infill", 3),
}
_MEMORY_BYTES = 2**28  # size of the values that are kept in memory
_VALUE_BYTES = 500  # approximate size of a value without its arrays


class ModelCalls:
    """Calls the models that the settings name, and loads each when it is first needed.

    Args:
        models: names of the models, and their number type.
        runtime: device, batch sizes, store, and progress reports.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self.models, self.runtime = models, runtime
        self._loaded: dict[str, _Loaded] = {}  # by setting
        self._memory: LruCache[Any, Any] = LruCache(_MEMORY_BYTES)

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> dict[str, Encoding]:
        """Encode each different text, with vectors of its tokens if ``tokens``.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """
        from mars_score.models.encoder import Encoding

        def compute(missing: Sequence[str]) -> Iterable[tuple[str, Encoding]]:
            encoder: SentenceEncoder = self._model("encoder")
            return encoder.encode(missing, tokens=tokens)

        codec = Codec(Encoding.to_bytes, Encoding.from_bytes)
        return self.cached("encodings", [tokens], texts, compute, codec)

    def log_probability(
        self, pairs: Iterable[tuple[str, str]], max_context_tokens: int | None
    ) -> dict[tuple[str, str], LogProbability]:
        """Compute the log probability of each different text with and without its context.

        Args:
            pairs: (context, text) pairs.
            max_context_tokens: tokens of a context to use, or None for as many as the model takes.
        """

        def compute(missing: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], LogProbability]]:
            from mars_score.models.likelihood import in_and_out_of_context

            return in_and_out_of_context(self.language_model(), missing, max_context_tokens)

        return self.cached("log_probabilities", [max_context_tokens], pairs, compute, json_codec(LogProbability))

    def entails(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Entailment]:
        """Compute the entailment and contradiction probabilities of each different (premise, hypothesis).

        Raises:
            ModelUnavailableError: the NLI model cannot be loaded.
            UnsupportedModelError: it has no classes for entailment and contradiction.
        """

        def compute(missing: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], Entailment]]:
            model: NliModel = self._model("entailment_model")
            return model.entails(missing)

        return self.cached("entailments", [], pairs, compute, json_codec(Entailment.from_json))

    def cached(
        self,
        kind: str,
        method: Sequence[object],
        items: Iterable[Item],
        compute: Callable[[Sequence[Item]], Iterable[tuple[Item, Value]]],
        codec: Codec[Value],
    ) -> dict[Item, Value]:
        """Return the value of each different item from memory or from the store, or compute it.

        Args:
            kind: one of :data:`mars_score.cache.KINDS`.
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
        # A model of unknown revision may change between calls, so nothing is kept.
        is_known = source.revision is not None
        common = [source.name, source.revision, dtype, call.version, *method] if is_known else None
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
        """Return the character spans of the tokens of each text."""
        return dict(zip(texts, self._model("encoder").offsets(texts), strict=True)) if texts else {}

    def encoder(self) -> Any:
        """Return the ``SentenceTransformer``, or raise ModelUnavailableError."""
        return self._model("encoder").model

    def load(self, kind: str) -> None:
        """Load the model of a kind of call (:data:`mars_score.cache.KINDS`), or raise ModelUnavailableError."""
        self._model(_CALLS[kind].model)

    def language_model(self) -> CausalLanguageModel:
        """Return the language model, or raise ModelUnavailableError or UnsupportedModelError."""
        model: CausalLanguageModel = self._model("language_model")
        if isinstance(locate(self.models.language_model), ReadyMade):
            model.prompts.clear()  # Its weights may have changed since the last call.
        return model

    def _source(self, name: str) -> Source:
        """Return the source of a setting's model, with its revision if outputs are to be stored."""
        source = locate(getattr(self.models, name))
        if self.runtime.store.folder and isinstance(source, HubModel) and source.revision is None:
            shared_model(name, self.models, self.runtime)  # The revision is known only after loading.
            source = locate(getattr(self.models, name))
        return source

    def _model(self, name: str) -> Any:
        """Return a setting's model in its wrapper. Load it at first use and whenever its source has changed."""
        spec = getattr(self.models, name)
        with loading_lock:
            loaded = self._loaded.get(name)
            if loaded is None or loaded.source != locate(spec):
                model = self._wrap(name, shared_model(name, self.models, self.runtime))
                loaded = _Loaded(locate(spec), model)  # The revision of a Hub model is known only after loading.
            elif name == "encoder" and isinstance(loaded.source, ReadyMade):
                # The prompt and the maximum length of an object may have changed since the last call.
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
