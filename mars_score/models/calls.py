"""The model calls of a scorer, each one cached: encode, log_probability, entails and infill."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mars_score.cache import Codec, Item, LastUsed, Value, cached, json_codec
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

    # Fills the blanks of different (context, template), each of which it yields with its text.
    Infiller = Callable[
        [Sequence[tuple[str, Template]], PaperConfig], Iterable[tuple[tuple[str, Template], FilledTemplate]]
    ]

# Parts of the keys of stored values; raised when the same model comes to give other values.
_VERSIONS = {"encodings": 5, "log_probabilities": 3, "entailments": 5, "infills": 3}
# The setting that names the model of a kind of call, and how reports of progress name the call.
_MODELS_AND_STAGES = {
    "encodings": ("encoder", "encode"),
    "log_probabilities": ("language_model", "likelihood"),
    "entailments": ("entailment_model", "contradiction"),
    "infills": ("language_model", "infill"),
}
_MEMORY_BYTES = 2**28  # of values that are kept in memory
_VALUE_BYTES = 500  # of a value without arrays, about


class ModelCalls:
    """Calls the models of some settings, which are loaded when they are first needed.

    Args:
        models: which models, and their number type.
        runtime: device, batch sizes, the store, and where progress is reported.

    Attributes:
        infiller: fills blanks in the place of the language model, if it is set; its infills are not stored.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self.models, self.runtime = models, runtime
        self.infiller: Infiller | None = None
        self._current: dict[str, tuple[Source, Any]] = {}
        self._memory: LastUsed[Any, Any] = LastUsed(_MEMORY_BYTES)

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> dict[str, Encoding]:
        """Encode each different text, with vectors of its tokens if asked for.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """
        from mars_score.models.encoder import Encoding

        codec = Codec(Encoding.to_bytes, Encoding.from_bytes)
        return self._cached(
            "encodings", [tokens], texts, lambda missing: self._encoder().encode(missing, tokens=tokens), codec
        )

    def log_probability(
        self, pairs: Iterable[tuple[str, str]], max_context_tokens: int | None
    ) -> dict[tuple[str, str], LogProbability]:
        """Compute the log probability of each different (context, text), with the context and alone.

        Args:
            pairs: texts with their contexts, of which ``max_context_tokens`` are used.
            max_context_tokens: None: as many as fit the language model's window.
        """

        def compute(missing: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], LogProbability]]:
            from mars_score.models.likelihood import in_and_out_of_context

            return in_and_out_of_context(self.language_model(), missing, max_context_tokens)

        codec = json_codec(LogProbability)
        return self._cached("log_probabilities", [max_context_tokens], pairs, compute, codec)

    def entails(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Entailment]:
        """Compute the entailment and contradiction probabilities of each different (premise, hypothesis).

        Raises:
            ModelUnavailableError: the NLI model cannot be loaded.
            UnsupportedModelError: it has no classes for entailment and contradiction.
        """
        codec = json_codec(Entailment)
        return self._cached("entailments", [], pairs, lambda missing: self._nli().entails(missing), codec)

    def infill(
        self, pairs: Iterable[tuple[str, Template]], config: PaperConfig
    ) -> dict[tuple[str, Template], FilledTemplate]:
        """Fill the blanks of each different (context, template) by Algorithm 2."""
        from mars_score.infilling.jobs import FilledTemplate

        if (infiller := self.infiller) is not None:
            different = list(dict.fromkeys(pairs))
            return dict(self.runtime.reported("infill", lambda missing: infiller(missing, config), different))
        # What the cache makes a key of.
        parts = {
            (context, template.reference, template.blanks): (context, template) for context, template in pairs
        }

        def compute(missing: Sequence[Any]) -> Iterable[tuple[Any, FilledTemplate]]:
            from mars_score.infilling.batched import BatchedInfiller

            infiller = BatchedInfiller(self.language_model(), config, self.runtime.batch_size)
            for (context, template), filled in infiller.infill(parts[item] for item in missing):
                yield (context, template.reference, template.blanks), filled

        names = ["sigma", "max_context_tokens", "planner"]
        if config.planner != "none":
            names += [field.name for field in dataclasses.fields(config) if field.name.startswith("plan_")]
        method = [getattr(config, name) for name in names]
        filled = self._cached("infills", method, parts, compute, json_codec(FilledTemplate))
        return {parts[item]: template for item, template in filled.items()}

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
        method: Sequence[Any],
        items: Iterable[Item],
        compute: Callable[[Sequence[Item]], Iterable[tuple[Item, Value]]],
        codec: Codec[Value],
    ) -> dict[Item, Value]:
        """Return the value of each different item: from memory, from the store, or computed."""
        name, stage = _MODELS_AND_STAGES[kind]
        different = list(dict.fromkeys(items))
        if not different:  # no model is fetched from the Hub for nothing
            return {}
        source = locate(getattr(self.models, name))
        if self.runtime.store.folder and isinstance(source, HubModel) and source.revision is None:
            # Never fetched from the Hub: its revision is known only when it is loaded.
            shared_model(name, self.models, self.runtime)
        common = self._common(kind, name, method)
        key = kind, str(common)
        # Without it nothing is kept: the model is an object that may change between calls.
        known = {item: self._memory.get((key, item)) for item in different} if common else {}
        values = {item: value for item, value in known.items() if value is not None}
        missing = [item for item in different if item not in values]
        reported = partial(self.runtime.reported, stage, compute)
        values |= cached(self.runtime.store, kind, common, missing, reported, codec)
        for item, value in values.items() if common else ():
            size = _VALUE_BYTES + sum(getattr(part, "nbytes", 0) for part in value)
            self._memory.put((key, item), value, size)
        return values

    def _common(self, kind: str, name: str, method: Sequence[Any]) -> list[Any] | None:
        """Return what all values of a call depend on; None: the model cannot be identified."""
        model = locate(getattr(self.models, name))
        dtype = number_type(self.models.dtype, self.runtime.device)
        return None if model.revision is None else [model.name, model.revision, dtype, _VERSIONS[kind], *method]
