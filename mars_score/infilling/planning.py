"""Decoding one token, plainly or planned towards the words that follow (Eq. 3-6).

The paper's constants (eta = 0.02, k = 3) are those of plug-and-play language models (PPLM, Dathathri et
al. 2020), and so is the reading followed here: the cached keys and values are moved k normalised gradient
steps up the reward of the future text, and the next token is decoded from the moved cache. Read literally,
Eq. 4 asks for the expected gradient of a reward that does not depend on the action, which is zero; the
gradient of the reward itself, through the cache, is what the constants belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mars_score.infilling.cache import KeyValueCache, LayerStates
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.settings import PlanningSettings

EPSILON = 1e-15  # added to the gradient's norm, as in PPLM


@dataclass(frozen=True)
class Step:
    """One decoding step of some rows.

    Attributes:
        plain: logits from the unperturbed cache, (rows, vocabulary).
        scores: what the next token is chosen by, (rows, vocabulary).
        states: keys and values of the fed token, from the unperturbed cache.
        rewards: the reward before and after each gradient step, (plan_iterations + 1, rows); None if plain.
    """

    plain: Tensor
    scores: Tensor
    states: LayerStates
    rewards: Tensor | None = None


def _feed(
    model: CausalLanguageModel, cache: KeyValueCache, tokens: Tensor, past: LayerStates
) -> tuple[Tensor, LayerStates]:
    """Feed one token a row behind the cache; ``past`` stands in for the cache's own keys and values."""
    filled = torch.arange(cache.slots, device=model.device) < cache.lengths[:, None]
    visible = torch.cat([filled, filled.new_ones(len(tokens), 1)], dim=1)[:, None]
    hidden, states = model.forward(tokens[:, None], cache.lengths[:, None], visible, past)
    return model.logits(hidden[:, -1]), states


def plain_step(model: CausalLanguageModel, cache: KeyValueCache, tokens: Tensor) -> Step:
    """Feed ``tokens`` (rows,) behind the cache; the next token is chosen by the plain logits."""
    logits, states = _feed(model, cache, tokens, cache.past)
    return Step(logits, logits, states)


def planned_step(
    model: CausalLanguageModel,
    cache: KeyValueCache,
    tokens: Tensor,
    futures: Sequence[Sequence[int]],
    settings: PlanningSettings,
) -> Step:
    """As :func:`plain_step`, but the next token is decoded from a cache moved towards the future text.

    Args:
        model: the language model.
        cache: all written tokens but the last; it is left as it is.
        tokens: (rows,) the last written token of each row.
        futures: per row the distinct token ids of the text blocks to come, at least one.
        settings: step length, number of steps, temperature, norm exponent and fusion.
    """
    future, counts = model.pad(futures)
    weights = (torch.arange(future.shape[1], device=model.device) < counts[:, None]) / counts[:, None].to(
        model.precise
    )
    past = [(keys.detach().to(model.precise), values.detach().to(model.precise)) for keys, values in cache.past]
    rewards = []
    for iteration in range(settings.plan_iterations + 1):
        climbing = iteration < settings.plan_iterations
        leaves = [state.requires_grad_(climbing) for layer in past for state in layer]
        with torch.set_grad_enabled(climbing):
            logits, states = _feed(model, cache, tokens, past)
            planned = torch.log_softmax(logits / settings.plan_temperature, dim=-1)
            reward = (planned.gather(1, future) * weights).sum(1)  # Eq. 5, mean over the future's tokens
        rewards.append(reward.detach())
        if iteration == 0:
            plain = logits.detach()
            kept = [(keys.detach().to(model.dtype), values.detach().to(model.dtype)) for keys, values in states]
        if climbing:
            gradients = torch.autograd.grad(reward, leaves, torch.ones_like(reward))
            past = _ascend(past, gradients, settings)
    scores = planned
    if settings.plan_fusion < 1:
        scores = settings.plan_fusion * planned + (1 - settings.plan_fusion) * torch.log_softmax(plain, dim=-1)
    return Step(plain, scores, kept, torch.stack(rewards))


def _ascend(past: LayerStates, gradients: Sequence[Tensor], settings: PlanningSettings) -> LayerStates:
    """One gradient step, normalised per row and layer over keys and values together (Eq. 6)."""
    moved = []
    pairs = zip(gradients[::2], gradients[1::2], strict=True)
    for (keys, values), (keys_gradient, values_gradient) in zip(past, pairs, strict=True):
        norms = [torch.linalg.vector_norm(one, dim=(1, 2, 3)) for one in (keys_gradient, values_gradient)]
        norm = torch.hypot(*norms)
        length = (settings.plan_step / (norm**settings.plan_norm_exponent + EPSILON))[:, None, None, None]
        # In place: the gradients are of no other use, and as large as the cache.
        moved.append((keys_gradient.mul_(length).add_(keys), values_gradient.mul_(length).add_(values)))
    return moved
