"""The model calls of a scorer, each one cached: encode, log_probability, entails and infill."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mars_score.cache import Codec, Done, Item, Value, cached, json_codec
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.loading import loading_lock, shared_model
from mars_score.models.running import number_type
from mars_score.models.sources import HubModel, Source, locate
from mars_score.rows import Entailment, LogProbability

if TYPE_CHECKING:
    from mars_score.infilling.jobs import FilledTemplate
    from mars_score.models.causal_lm import CausalLanguageModel
    from mars_score.models.encoder import Encoding, SentenceEncoder
    from mars_score.models.nli import NliModel
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings

Pair = tuple[str, str]
# Parts of the keys of stored values; raised when the same model comes to give other values.
_VERSIONS = {"encodings": 5, "log_probabilities": 3, "entailments": 5, "infills": 3}
_CHUNK_SIZE = 256  # pairs whose log probabilities are computed before they are saved
_MEMORY_BYTES = 2**28  # of values that are kept in memory
_VALUE_BYTES = 500  # of a value without arrays, about


class ModelCalls:
    """Calls the models of some settings, which are loaded when they are first needed.

    Args:
        models: which models, and their number type.
        runtime: device, batch sizes, the store, and where progress is reported.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self.models, self.runtime = models, runtime
        self._current: dict[str, tuple[Source, Any]] = {}
        self._memory: OrderedDict[Any, Any] = OrderedDict()  # values by key and item, the last used last
        self._bytes = 0

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> dict[str, Encoding]:
        """Encode each different text, with vectors of its tokens if asked for.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """

        def compute(missing: list[str], done: Done[str, Encoding]) -> None:
            self._encoder().encode(missing, done, tokens=tokens)

        return self._cached("encodings", "encoder", [tokens], texts, compute, _encoding_codec())

    def log_probability(self, pairs: Iterable[Pair], max_context_tokens: int | None) -> dict[Pair, LogProbability]:
        """Compute the log probability of each different (context, text), with the context and alone.

        Args:
            pairs: texts with their contexts, of which ``max_context_tokens`` are used.
            max_context_tokens: None: as many as fit the language model's window.
        """

        def compute(missing: list[Pair], done: Done[Pair, LogProbability]) -> None:
            from mars_score.models.likelihood import log_probabilities

            model = self.language_model()
            least = -math.log(model.vocabulary)  # a uniform guess
            alone: dict[str, float] = {}
            in_order = sorted(missing)  # pairs of one context together
            for start in range(0, len(in_order), _CHUNK_SIZE):
                chunk = in_order[start : start + _CHUNK_SIZE]
                new = list(dict.fromkeys(text for _, text in chunk if text not in alone))
                both = [*chunk, *(("", text) for text in new)]
                found = log_probabilities(model, both, max_context_tokens=max_context_tokens)
                after_begin = zip(new, found[len(chunk) :], strict=True)
                alone.update((text, max(one.mean, least)) for text, one in after_begin)
                for pair, one in zip(chunk, found, strict=False):
                    done(pair, LogProbability(max(one.mean, least), alone[pair[1]], one.truncated))

        codec = json_codec(LogProbability)
        return self._cached(
            "log_probabilities", "language_model", [max_context_tokens], pairs, compute, codec, "likelihood"
        )

    def entails(self, pairs: Iterable[Pair]) -> dict[Pair, Entailment]:
        """Compute the entailment and contradiction probabilities of each different (premise, hypothesis).

        Raises:
            ModelUnavailableError: the NLI model cannot be loaded.
            UnsupportedModelError: it has no classes for entailment and contradiction.
        """

        def compute(missing: list[Pair], done: Done[Pair, Entailment]) -> None:
            self._nli().entails(missing, done)

        codec = json_codec(Entailment)
        return self._cached("entailments", "entailment_model", [], pairs, compute, codec, "contradiction")

    def infill(
        self, pairs: Iterable[tuple[str, Template]], config: PaperConfig
    ) -> dict[tuple[str, Template], FilledTemplate]:
        """Fill the blanks of each different (context, template) by Algorithm 2."""
        from mars_score.infilling.jobs import FilledTemplate

        templates = {(context, one.reference, one.blanks): (context, one) for context, one in pairs}

        def compute(missing: list[Any], done: Done[Any, FilledTemplate]) -> None:
            from mars_score.infilling.batched import BatchedInfiller

            infiller = BatchedInfiller(self.language_model(), config, self.runtime.batch_size)
            infiller.infill(
                [templates[item] for item in missing],
                lambda pair, filled: done((pair[0], pair[1].reference, pair[1].blanks), filled),
            )

        names = ["sigma", "max_context_tokens", "planner"]
        if config.planner != "none":
            names += [field.name for field in dataclasses.fields(config) if field.name.startswith("plan_")]
        method = [getattr(config, name) for name in names]
        codec = json_codec(FilledTemplate)
        found = self._cached("infills", "language_model", method, templates, compute, codec, "infill")
        return {templates[item]: filled for item, filled in found.items()}

    def token_offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Return the character spans of the tokens of each text; loads the encoder."""
        return dict(zip(texts, self._encoder().offsets(texts), strict=True)) if texts else {}

    def encoder(self) -> Any:
        """Return the ``SentenceTransformer``; raises ModelUnavailableError."""
        return self._encoder().model

    def load(self, kind: str) -> None:
        """Load the model of a kind of call (:data:`mars_score.cache.KINDS`); raises ModelUnavailableError."""
        {"encodings": self._encoder, "entailments": self._nli}.get(kind, self.language_model)()

    def language_model(self) -> CausalLanguageModel:
        """Return the language model; raises ModelUnavailableError or UnsupportedModelError."""
        model: CausalLanguageModel = self._make("language_model", lambda model: model)
        if locate(self.models.language_model).revision is None:
            model.prompts.clear()  # its weights may have changed since the last call
        return model

    def _encoder(self) -> SentenceEncoder:
        from mars_score.models.encoder import SentenceEncoder

        encoder: SentenceEncoder = self._make(
            "encoder", lambda model: SentenceEncoder(model, self.runtime.encoder_batch_size)
        )
        return encoder

    def _nli(self) -> NliModel:
        from mars_score.models.nli import NliModel

        model: NliModel = self._make(
            "entailment_model", lambda pair: NliModel(pair[0], pair[1], self.runtime.encoder_batch_size)
        )
        return model

    def _make(self, name: str, wrap: Callable[[Any], Any]) -> Any:
        """Return a model in its wrapper, made again when the files behind its name have changed."""
        spec = getattr(self.models, name)
        with loading_lock:
            if name not in self._current or self._current[name][0] != locate(spec):
                model = wrap(shared_model(name, self.models, self.runtime))
                self._current[name] = locate(spec), model  # a revision may be known only now
            return self._current[name][1]

    def _cached(
        self,
        kind: str,
        name: str,
        method: Sequence[Any],
        items: Iterable[Item],
        compute: Callable[[list[Item], Done[Item, Value]], object],
        codec: Codec[Value],
        stage: str = "encode",
    ) -> dict[Item, Value]:
        """Return the value of each different item: from memory, from the store, or computed."""
        different = list(dict.fromkeys(items))
        if not different:  # no model is fetched from the Hub for nothing
            return {}
        source = locate(getattr(self.models, name))
        if self.runtime.store.folder and isinstance(source, HubModel) and source.revision is None:
            # Never fetched from the Hub: its revision is known only when it is loaded.
            shared_model(name, self.models, self.runtime)
        common = self._common(kind, name, method)

        def reporting(missing: list[Item], done: Done[Item, Value]) -> None:
            count = 0

            def report(item: Item, value: Value) -> None:
                nonlocal count
                count += 1
                done(item, value)
                self.runtime.report(stage, count, len(missing))

            self.runtime.report(stage, 0, len(missing))
            compute(missing, report)

        key = kind, str(common)
        values = {item: self._memory[key, item] for item in different if common and (key, item) in self._memory}
        missing = [item for item in different if item not in values]
        values |= cached(self.runtime.store, kind, common, missing, reporting, codec)
        if common:  # else the model is an object that may change between calls
            for item, value in values.items():
                self._remember((key, item), value)
        return values

    def _common(self, kind: str, name: str, method: Sequence[Any]) -> list[Any] | None:
        """Return what all values of a call depend on; None: the model cannot be identified."""
        model = locate(getattr(self.models, name))
        dtype = number_type(self.models.dtype, self.runtime.device)
        return None if model.revision is None else [model.name, model.revision, dtype, _VERSIONS[kind], *method]

    def _remember(self, key: Any, value: Any) -> None:
        """Keep a value in memory, as the last used, and drop the least recently used beyond the limit."""
        if key not in self._memory:
            self._bytes += _size(value)
        self._memory[key] = value
        self._memory.move_to_end(key)
        while self._bytes > _MEMORY_BYTES and len(self._memory) > 1:
            self._bytes -= _size(self._memory.popitem(last=False)[1])


def _size(value: Any) -> int:
    return _VALUE_BYTES + sum(getattr(part, "nbytes", 0) for part in value)


def _encoding_codec() -> Codec[Encoding]:
    from mars_score.models.encoder import Encoding

    return Codec(Encoding.to_bytes, Encoding.from_bytes)
