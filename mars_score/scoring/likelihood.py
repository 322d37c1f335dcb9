"""How likely a candidate is given its context, kept or new; the language model is loaded only for new ones."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mars_score.models.fingerprints import Current, model_key
from mars_score.models.loading import causal_model
from mars_score.settings import Settings
from mars_score.store.lookup import Results, get_or_compute
from mars_score.store.runtime import Runtime

Pair = tuple[str, str]  # context and candidate
_METHOD = 1  # part of the keys of what is kept
_FORMAT = "<dd?"
_PART = 256  # pairs that are scored before their likelihoods are saved


@dataclass(frozen=True)
class Likelihood:
    """Mean log probabilities of a text's tokens, in nats; at least those of a uniform guess.

    Attributes:
        given_context: given the context and a space.
        alone: given begin-of-text.
        cut: whether the end of the context or of the text is left out.
    """

    given_context: float
    alone: float
    cut: bool

    @property
    def lift(self) -> float:
        """What the context adds; 0 without one."""
        return self.given_context - self.alone

    @property
    def kept(self) -> bytes:
        """As bytes."""
        return struct.pack(_FORMAT, self.given_context, self.alone, self.cut)

    @classmethod
    def of(cls, kept: bytes) -> Likelihood:
        """From what ``kept`` gave."""
        return cls(*struct.unpack(_FORMAT, kept))


class LikelihoodReader:
    """Reads candidates with the causal language model.

    Args:
        settings: name it, its number type and how much of a context it reads.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        remember: whether contexts that were read last stay in memory. Likelihoods then depend on earlier calls in
            their last digits.
    """

    def __init__(self, settings: Settings, runtime: Runtime, *, remember: bool = False) -> None:
        self._models, self._runtime, self._remember = settings.models, runtime, remember
        self._max_context_tokens = settings.infilling.max_context_tokens
        self._model = Current(self._models.language_model, partial(causal_model, self._models, runtime))

    def read(
        self, pairs: Sequence[Pair], progress: Callable[[int, int], None] | None = None
    ) -> dict[Pair, Likelihood]:
        """The likelihood of each different candidate given its context; ``progress`` counts the new ones.

        Raises:
            ModelUnavailableError: the language model cannot be loaded.
        """
        if not pairs:
            return {}
        models = self._models
        method = ["likelihood", _METHOD, self._max_context_tokens]
        common = model_key(models.language_model, self._model.get, models.dtype, *method)

        def compute(missing: list[Pair], done: Callable[[Pair, Likelihood], None]) -> None:
            in_order = sorted(missing)  # pairs of one context together
            alone: dict[str, float] = {}
            for start in range(0, len(in_order), _PART):
                part = in_order[start : start + _PART]
                for pair, one in zip(part, self._read(part, alone), strict=True):
                    done(pair, one)

        results: Results[Pair, Likelihood] = Results(
            "scores",
            common,
            parts=lambda pair: pair,
            encode=lambda likelihood: likelihood.kept,
            decode=Likelihood.of,
        )
        return get_or_compute(self._runtime.store, results, pairs, compute, progress)

    def _read(self, pairs: Sequence[Pair], alone: dict[str, float]) -> list[Likelihood]:
        """The likelihood of each pair; ``alone`` holds candidates that were read alone before, and is added to."""
        from mars_score.models.engine.surprisal import surprisals

        model = self._model.get()
        prompts = model.prompts if self._remember else None
        most = math.log(model.vocabulary)
        new = list(dict.fromkeys(candidate for _, candidate in pairs if candidate not in alone))
        both = [*pairs, *(("", candidate) for candidate in new)]
        found = surprisals(model, both, self._runtime.batch_size, prompts, self._max_context_tokens)
        alone.update((candidate, one.mean) for candidate, one in zip(new, found[len(pairs) :], strict=True))
        return [
            Likelihood(-min(given.mean, most), -min(alone[candidate], most), given.cut)
            for (_, candidate), given in zip(pairs, found, strict=False)
        ]
