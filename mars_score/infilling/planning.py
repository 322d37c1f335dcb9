"""Decode one token, by plain logits or planned towards the text that follows (Eq. 3-6).

The constants (eta = 0.02, k = 3) and most of the algorithm are those of plug-and-play language models (PPLM,
Dathathri et al. 2020). The cached keys and values take k normalised gradient steps that increase the reward of the
future text, and the next token is decoded from the changed cache. Two things differ from PPLM: the norm of the
gradient is over all layers (Eq. 6), and the steps of each token begin at the unchanged cache.

Taken literally, Eq. 4 is zero: it is the expected gradient of a reward that does not depend on the action. This
module uses the gradient of the reward itself, through the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mars_score.metrics.paper import PaperConfig
from mars_score.models.attention import KeyValueCache, LayerStates
from mars_score.models.causal_lm import CausalLanguageModel

EPSILON = 1e-15  # added to the norm of the gradient, as in PPLM


@dataclass(frozen=True)
class Step:
    """The output of a decoding step."""

    plain: Tensor  # logits from the unchanged cache, (rows, vocabulary)
    scores: Tensor  # scores that choose the next token, (rows, vocabulary)
    states: LayerStates  # unchanged keys and values of the input tokens, (heads, rows, head size) per layer


def plain_step(model: CausalLanguageModel, cache: KeyValueCache, tokens: Tensor) -> Step:
    """Decode the next token of each row by the plain logits, with the arguments of :func:`planned_step`."""
    batch = model.packed_batch([1] * len(tokens), [[length] for length in cache.lengths], cache)
    hidden, states = model.forward(tokens, model.tensor(cache.lengths), batch)
    logits = model.logits(hidden)
    return Step(logits, logits, states)


def planned_step(
    model: CausalLanguageModel,
    cache: KeyValueCache,
    tokens: Tensor,
    futures: Sequence[Sequence[int]],
    config: PaperConfig,
) -> Step:
    """Decode the next token of each row from a cache that is changed towards the future text.

    Args:
        model: the language model.
        cache: cache of the earlier tokens, which stays as it is.
        tokens: ids of the last tokens, (rows,).
        futures: distinct token ids of the text that follows, one sequence per row.
        config: the settings.
    """
    reward = _Reward(model, futures, config.plan_temperature)
    positions = model.tensor(cache.lengths)
    batch = model.packed_batch(
        [1] * len(tokens), [[length] for length in cache.lengths], cache, dtype=model.logit_dtype
    )
    batch.perturbations = changes = [LayerPerturbation() for _ in range(model.layers)]
    for iteration in range(config.plan_iterations + 1):
        with torch.set_grad_enabled(iteration < config.plan_iterations):
            hidden, states = model.forward(tokens, positions, batch)
            logits = model.logits(hidden)
        if iteration == 0:
            plain = logits.detach().clone()
            plain_states = [(keys.detach(), values.detach()) for keys, values in states]
        planned = logits.detach().div_(config.plan_temperature)
        if iteration < config.plan_iterations:
            _climb(logits, reward.gradient(planned), changes, config)
    if config.plan_fusion != 1:  # a mixture with the plain distribution, as in PPLM
        planned = config.plan_fusion * torch.log_softmax(planned, dim=-1)
        planned += (1 - config.plan_fusion) * torch.log_softmax(plain, dim=-1)
    return Step(plain, planned, plain_states)


class _Reward:
    """The reward of each row: the mean log probability of its future tokens as the next token (Eq. 5)."""

    def __init__(self, model: CausalLanguageModel, futures: Sequence[Sequence[int]], temperature: float) -> None:
        self._temperature = temperature
        self._future = model.padded_tensor(futures, 0)
        # 1 / number of future tokens, and 0 for padding
        weights = [[1 / len(future)] * len(future) for future in futures]
        self._weights = model.padded_tensor(weights, 0.0, model.logit_dtype)

    def gradient(self, planned: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, (weights of the future - probabilities) / xi.

        Args:
            planned: logits divided by the temperature xi, (rows, vocabulary).
        """
        gradient = torch.softmax(planned, dim=-1).mul_(-1 / self._temperature)
        return gradient.scatter_add_(1, self._future, self._weights / self._temperature)


def _climb(logits: Tensor, gradient: Tensor, changes: Sequence[LayerPerturbation], config: PaperConfig) -> None:
    """Take a step of eta / |gradient| ** exponent times the gradient, with the norm over all layers (Eq. 6).

    ``gradient`` is that of the reward with respect to the logits.
    """
    targets = [target for change in changes for target in (change.scores, change.output)]
    gradients = torch.autograd.grad(logits, targets, gradient)
    by_layer = list(zip(changes, gradients[::2], gradients[1::2], strict=True))
    square = torch.stack([change.squared_norm(scores, output) for change, scores, output in by_layer]).sum(0)
    length = config.plan_step / (square.clamp(min=0).sqrt() ** config.plan_norm_exponent + EPSILON)
    for change, scores, output in by_layer:
        change.climb(scores, output, length[:, None, None, None])


class LayerPerturbation:
    """The sum of gradient steps on one layer's cached keys and values, kept as low-rank factors.

    In query head h, an input token attends to the key of slot s with the score q_h . K_s, and adds w_hs V_s to the
    output. So the gradients of a reward with respect to the cache are

        dK_s = sum over h of ds_hs q_h        dV_s = sum over h of w_hs do_h

    where ds and do are its gradients with respect to scores and output. The rank of these matrices is at most the
    number of query heads per key head, so the factors are cheap.

    Shapes: factors of the slots (rows, key heads, rank, slots), directions (rows, key heads, rank, head size).
    """

    def __init__(self) -> None:
        self._keys: list[tuple[Tensor, Tensor]] = []  # factor of the slots, direction
        self._values: list[tuple[Tensor, Tensor]] = []

    def add_to_scores(self, scores: Tensor, query: Tensor) -> Tensor:
        """Return attention scores with the changed keys, (rows, key heads, query heads per key head, slots)."""
        if self._keys:
            slots, directions = (torch.cat(factors, dim=2) for factors in zip(*self._keys, strict=True))
            scores = scores + query @ directions.transpose(2, 3) @ slots
        if torch.is_grad_enabled():  # A step follows.
            if not scores.requires_grad:  # first layer
                scores.requires_grad_()
            self._query, self.scores = query.detach(), scores
        return scores

    def add_to_output(self, output: Tensor, weights: Tensor) -> Tensor:
        """Return output with the changed values, (rows, key heads, query heads per key head, head size)."""
        if self._values:
            slots, directions = (torch.cat(factors, dim=2) for factors in zip(*self._values, strict=True))
            output = output + weights @ slots.transpose(2, 3) @ directions
        if torch.is_grad_enabled():
            self._weights, self.output = weights.detach(), output
        return output

    def squared_norm(self, scores_gradient: Tensor, output_gradient: Tensor) -> Tensor:
        """Return the squared norm of the gradient with respect to the cached keys and values, (rows,)."""
        keys = _squared_norm(scores_gradient, self._query)
        return keys + _squared_norm(self._weights, output_gradient)

    def climb(self, scores_gradient: Tensor, output_gradient: Tensor, length: Tensor) -> None:
        """Add the gradient times ``length``, which has the shape (rows, 1, 1, 1)."""
        self._keys.append((scores_gradient, self._query * length))
        self._values.append((self._weights, output_gradient * length))
        del self.scores, self.output, self._query, self._weights


def _squared_norm(slots: Tensor, directions: Tensor) -> Tensor:
    """Return the squared norm of the product of these factors over all heads, (rows,)."""
    gram = (slots @ slots.transpose(2, 3)) * (directions @ directions.transpose(2, 3))
    return gram.sum(dim=(1, 2, 3))
