"""How likely a candidate is given its context, stored or new: the language model is loaded only for new ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.data.contexts import as_prose
from mars_score.lookup import Results, from_json
from mars_score.models.fingerprints import Current
from mars_score.models.loading import shared_model
from mars_score.models.served import ServedModel, is_served, served_model
from mars_score.progress import Runtime
from mars_score.settings import Settings

if TYPE_CHECKING:
    from mars_score.models.causal_lm import CausalLanguageModel

Pair = tuple[str, str]  # context and candidate
_METHOD = 2  # part of the keys of stored likelihoods
_PART = 256  # pairs that are scored before their likelihoods are saved


class Likelihood(NamedTuple):
    """Mean log probabilities of a text's tokens, in nats; at least those of a uniform guess."""

    given_context: float  # given the context and a space
    alone: float  # given begin-of-text
    cut: bool  # whether the end of the context or of the text is left out

    @property
    def lift(self) -> float:
        """What the context adds; 0 without one."""
        return self.given_context - self.alone


def likelihoods(settings: Settings, runtime: Runtime) -> Results[Pair, Likelihood]:
    """The likelihood of each candidate given its context, of which the settings say how much is read."""
    models, context_tokens = settings.models, settings.infilling.max_context_tokens
    make: Callable[[], Any]
    compute: Callable[..., None]
    if is_served(models.language_model):
        make, numbers, compute = partial(served_model, models.language_model), "served", _compute_served
    else:
        make, numbers = partial(shared_model, "language_model", models, runtime), models.numbers
        compute = partial(_compute, batch_size=runtime.batch_size)
    return Current(models.language_model, make).results(
        "scores",
        (numbers, "likelihood", _METHOD, context_tokens),
        partial(compute, max_context_tokens=context_tokens),
        parts=lambda pair: pair,
        decode=lambda stored: Likelihood(*from_json(stored)),
    )


def _compute(
    model: CausalLanguageModel,
    pairs: list[Pair],
    done: Callable[[Pair, Likelihood], None],
    batch_size: int | None,
    max_context_tokens: int | None,
) -> None:
    """Candidates are read alone, too, each once."""
    from mars_score.models.log_probability import surprisals

    limit = math.log(model.vocabulary)
    in_order = sorted(pairs)  # pairs of one context together
    alone: dict[str, float] = {}
    for start in range(0, len(in_order), _PART):
        part = in_order[start : start + _PART]
        new = list(dict.fromkeys(candidate for _, candidate in part if candidate not in alone))
        both = [*part, *(("", candidate) for candidate in new)]
        read = surprisals(model, both, batch_size, max_context_tokens)
        alone.update((candidate, text.mean) for candidate, text in zip(new, read[len(part) :], strict=True))
        for pair, text in zip(part, read, strict=False):
            done(pair, Likelihood(-min(text.mean, limit), -min(alone[pair[1]], limit), text.cut))


def _compute_served(
    model: ServedModel,
    pairs: list[Pair],
    done: Callable[[Pair, Likelihood], None],
    max_context_tokens: int | None,
) -> None:
    """By a server, several pairs at once; candidates are read alone first."""
    limit = math.log(model.vocabulary) if model.vocabulary else math.inf
    alone: dict[Pair, tuple[float, bool]] = {}

    def read(pair: Pair) -> tuple[float, bool]:
        context, candidate = pair
        logs, cut = model.log_probabilities(as_prose(context), candidate, max_context_tokens)
        return max(sum(logs) / len(logs), -limit), cut

    def finish(pair: Pair, given_context: tuple[float, bool]) -> None:
        mean, cut = given_context
        done(pair, Likelihood(mean, alone["", pair[1]][0], cut))

    for start in range(0, len(pairs), _PART):
        part = pairs[start : start + _PART]
        candidates = dict.fromkeys(("", candidate) for _, candidate in part)
        model.each(read, [pair for pair in candidates if pair not in alone], alone.__setitem__)
        model.each(read, part, finish)
