"""The model calls of a scorer: encode, log_probability, entails and infill, with a cache."""

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
    from mars_score.models.encoder import Encoding
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings

    # Fills the blanks of different (context, template) pairs, and yields each pair with its text.
    Infiller = Callable[
        [Sequence[tuple[str, Template]], PaperConfig], Iterable[tuple[tuple[str, Template], FilledTemplate]]
    ]

# Parts of the keys of stored values; raised when the code changes what a model computes.
_VERSIONS = {"encodings": 5, "log_probabilities": 3, "entailments": 5, "infills": 3}
# The setting that names the model of a kind of call, and how reports of progress name the call.
_MODELS_AND_STAGES = {
    "encodings": ("encoder", "encode"),
    "log_probabilities": ("language_model", "likelihood"),
    "entailments": ("entailment_model", "contradiction"),
    "infills": ("language_model", "infill"),
}
_MEMORY_BYTES = 2**28  # Size of the values that are kept in memory.
_VALUE_BYTES = 500  # Approximate size of a value without its arrays.


class ModelCalls:
    """Calls the models that the settings name, and loads them when they are first needed.

    Args:
        models: the names of the models, and their number type.
        runtime: device, batch sizes, store, and progress reports.

    Attributes:
        infiller: if set, fills blanks instead of the language model; its infills are not stored.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self.models, self.runtime = models, runtime
        self.infiller: Infiller | None = None
        self._current: dict[str, tuple[Source, Any]] = {}
        self._memory: LastUsed[Any, Any] = LastUsed(_MEMORY_BYTES)

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> dict[str, Encoding]:
        """Encode each different text, with vectors of its tokens if ``tokens``.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """
        from mars_score.models.encoder import Encoding

        codec = Codec(Encoding.to_bytes, Encoding.from_bytes)
        return self._cached(
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
        return self._cached("log_probabilities", method, pairs, compute, json_codec(LogProbability))

    def entails(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Entailment]:
        """Compute the entailment and contradiction probabilities of each different (premise, hypothesis).

        Raises:
            ModelUnavailableError: the NLI model cannot be loaded.
            UnsupportedModelError: it has no classes for entailment and contradiction.
        """
        codec = json_codec(Entailment)
        return self._cached(
            "entailments", [], pairs, lambda missing: self._model("entailment_model").entails(missing), codec
        )

    def infill(
        self, pairs: Iterable[tuple[str, Template]], config: PaperConfig
    ) -> dict[tuple[str, Template], FilledTemplate]:
        """Fill the blanks of each different (context, template) by Algorithm 2."""
        from mars_score.infilling.jobs import FilledTemplate

        if (infiller := self.infiller) is not None:
            different = list(dict.fromkeys(pairs))
            return dict(self.runtime.reported("infill", lambda missing: infiller(missing, config), different))
        # The cache makes keys of texts and numbers, not of templates.
        pair_of = {(pair[0], pair[1].reference, pair[1].blanks): pair for pair in pairs}

        def compute(missing: Sequence[Any]) -> Iterable[tuple[Any, FilledTemplate]]:
            from mars_score.infilling.batched import BatchedInfiller

            infiller = BatchedInfiller(self.language_model(), config, self.runtime.batch_size)
            for (context, template), filled in infiller.infill(pair_of[item] for item in missing):
                yield (context, template.reference, template.blanks), filled

        names = ["sigma", "max_context_tokens", "planner"]
        if config.planner != "none":
            names += [field.name for field in dataclasses.fields(config) if field.name.startswith("plan_")]
        method = [getattr(config, name) for name in names]
        filled = self._cached("infills", method, pair_of, compute, json_codec(FilledTemplate))
        return {pair_of[item]: template for item, template in filled.items()}

    def token_offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Return the character spans of the tokens of each text; loads the encoder."""
        return dict(zip(texts, self._model("encoder").offsets(texts), strict=True)) if texts else {}

    def encoder(self) -> Any:
        """Return the ``SentenceTransformer``; raises ModelUnavailableError."""
        return self._model("encoder").model

    def load(self, kind: str) -> None:
        """Load the model of a kind of call (:data:`mars_score.cache.KINDS`); raises ModelUnavailableError."""
        self._model(_MODELS_AND_STAGES[kind][0])

    def language_model(self) -> CausalLanguageModel:
        """Return the language model; raises ModelUnavailableError or UnsupportedModelError."""
        model: CausalLanguageModel = self._model("language_model")
        if locate(self.models.language_model).revision is None:
            model.prompts.clear()  # Its weights may have changed since the last call.
        return model

    def _model(self, name: str) -> Any:
        """Return a setting's model in its wrapper, made again when the files behind its name have changed."""
        spec = getattr(self.models, name)
        with loading_lock:
            source, wrapped = self._current.get(name, (None, None))
            if wrapped is None or source != locate(spec):
                model: Any = shared_model(name, self.models, self.runtime)
                if name == "encoder":
                    from mars_score.models.encoder import SentenceEncoder

                    model = SentenceEncoder(model, self.runtime.encoder_batch_size)
                elif name == "entailment_model":
                    from mars_score.models.nli import NliModel

                    network, tokenizer = model
                    model = NliModel(network, tokenizer, self.runtime.encoder_batch_size)
                self._current[name] = locate(spec), model  # Loading may have made the revision known.
            elif name == "encoder" and source.revision is None:
                # The prompt and the window of an object may have changed since the last call.
                self._current[name] = source, type(wrapped)(wrapped.model, self.runtime.encoder_batch_size)
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
        if not different:  # No model is fetched from the Hub for nothing.
            return {}
        source = locate(getattr(self.models, name))
        if self.runtime.store.folder and isinstance(source, HubModel) and source.revision is None:
            # It was never fetched from the Hub; its revision is known only when it is loaded.
            shared_model(name, self.models, self.runtime)
            source = locate(getattr(self.models, name))
        dtype = number_type(self.models.dtype, self.runtime.device)
        common: list[Any] | None = [source.name, source.revision, dtype, _VERSIONS[kind], *method]
        if source.revision is None:  # The model may change between calls, so nothing is kept.
            common = None
        key = kind, str(common)
        known = {item: self._memory.get((key, item)) for item in different} if common else {}
        values = {item: value for item, value in known.items() if value is not None}
        missing = [item for item in different if item not in values]
        reported = partial(self.runtime.reported, stage, compute)
        values |= cached(self.runtime.store, kind, common, missing, reported, codec)
        for item, value in values.items() if common else ():
            size = _VALUE_BYTES + sum(getattr(part, "nbytes", 0) for part in value)
            self._memory.put((key, item), value, size)
        return values
