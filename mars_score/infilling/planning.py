"""Decoding one token, with plain logits or planned towards the text that follows (Eq. 3-6).

The paper's constants (eta = 0.02, k = 3) are those of plug-and-play language models (PPLM, Dathathri et
al. 2020), and so is the algorithm: the cached keys and values take k normalised gradient steps that increase
the reward of the future text, and the next token is decoded from the changed cache. Taken literally, Eq. 4 is
the expected gradient of a reward that does not depend on the action, which is zero; the constants are those of
the gradient of the reward itself, through the cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mars_score.infilling.perturbation import LayerPerturbation
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.codec import padded
from mars_score.models.kv_cache import KeyValueCache, LayerStates
from mars_score.settings.stages import PlanningSettings


@dataclass(frozen=True)
class Step:
    """One decoding step of several rows."""

    plain: Tensor  # logits from the unperturbed cache, (rows, vocabulary)
    scores: Tensor  # by which the next token is chosen, (rows, vocabulary)
    # Per layer, keys and values of the fed token from the unperturbed cache, (heads, rows, head size).
    states: LayerStates


def plain_step(model: CausalLanguageModel, cache: KeyValueCache, tokens: Tensor) -> Step:
    """Feed ``tokens`` (rows,) after the cached ones; the next token is chosen by the plain logits."""
    feed = model.feed([1] * len(tokens), [[length] for length in cache.lengths], cache)
    hidden, states = model.forward(tokens, model.tensor(cache.lengths), feed)
    logits = model.logits(hidden)
    return Step(logits, logits, states)


def planned_step(
    model: CausalLanguageModel,
    cache: KeyValueCache,
    tokens: Tensor,
    futures: Sequence[Sequence[int]],
    settings: PlanningSettings,
) -> Step:
    """As ``plain_step``, but from a cache changed towards ``futures``, the distinct token ids of what follows."""
    # Each row's future tokens, padded, and their weights: 1 / their number, 0 for padding.
    future = model.tensor(padded(futures, 0))
    shares = padded([[1 / len(row)] * len(row) for row in futures], 0.0)
    weights = torch.tensor(shares, dtype=model.precise, device=model.device)
    positions = model.tensor(cache.lengths)
    feed = model.feed([1] * len(tokens), [[length] for length in cache.lengths], cache, precision=model.precise)
    feed.perturbations = perturbations = [LayerPerturbation() for _ in range(model.layers)]
    for iteration in range(settings.plan_iterations + 1):
        climbing = iteration < settings.plan_iterations
        with torch.set_grad_enabled(climbing):
            hidden, states = model.forward(tokens, positions, feed)
            logits = model.logits(hidden)
        if iteration == 0:
            plain = logits.detach().clone()
            plain_states = [(keys.detach(), values.detach()) for keys, values in states]
        planned = logits.detach().div_(settings.plan_temperature)
        if climbing:
            # The gradient, with respect to the logits, of the reward (Eq. 5: the mean log-probability of the
            # future's tokens) is the future's weights - the probabilities, over xi.
            upstream = torch.softmax(planned, dim=-1).mul_(-1 / settings.plan_temperature)
            upstream.scatter_add_(1, future, weights / settings.plan_temperature)
            places = [place for of_layer in perturbations for place in (of_layer.scores, of_layer.output)]
            gradients = torch.autograd.grad(logits, places, upstream)
            for of_layer, of_scores, of_output in zip(perturbations, gradients[::2], gradients[1::2], strict=True):
                of_layer.climb(of_scores, of_output, settings.plan_step, settings.plan_norm_exponent)
    scores = planned
    if settings.plan_fusion < 1:
        planned = torch.log_softmax(planned, dim=-1)
        scores = settings.plan_fusion * planned + (1 - settings.plan_fusion) * torch.log_softmax(plain, dim=-1)
    return Step(plain, scores, plain_states)
