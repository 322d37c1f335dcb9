"""Attention over a cache that is handed in from outside and never copied.

Transformers' own cache appends each new token by copying all cached keys and values, in every layer and
step. Here a model writes its new keys and values into :class:`NewStates`, and the attention function gets
the past beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from mars_score.infilling.cache import LayerStates

NAME = "mars_split"


class NewStates(Cache):  # type: ignore[misc]
    """Collects the keys and values of the tokens being fed, layer by layer."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.states: LayerStates = []

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Note the new keys and values of a layer and hand back only them."""
        if layer_idx != len(self.states):
            raise NotImplementedError("layers that share keys and values")
        self.states.append((key_states, value_states))
        return key_states, value_states


def _split_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    mars_past: LayerStates | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of new tokens over the past and themselves, in the precision of the past.

    Takes query, key and value of the new tokens, (rows, heads, tokens, head size) with fewer heads for key
    and value where heads share them; the mask, (rows, 1, tokens, slots + tokens), is added to the scores.
    ``mars_past`` holds per layer the past's keys and values, (rows, key heads, slots, head size); None: no
    past. Returns (rows, tokens, heads, head size) in the query's type.
    """
    output: Tensor
    if mars_past is None:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        return output, None
    past_key, past_value = mars_past[module.layer_idx]
    mask, new_query, new_key, new_value = (
        state.to(past_key.dtype) for state in (attention_mask, query, key, value)
    )
    if query.shape[2] > 1:  # a copy of the past is small beside the work
        keys, values = torch.cat([past_key, new_key], dim=2), torch.cat([past_value, new_value], dim=2)
        output, _ = sdpa_attention_forward(module, new_query, keys, values, mask, scaling=scaling, **kwargs)
    else:
        scale = scaling if scaling is not None else query.shape[-1] ** -0.5
        output = _one_token(new_query, new_key, new_value, past_key, past_value, mask, scale)
    return output.to(query.dtype), None


def _one_token(
    query: Tensor, key: Tensor, value: Tensor, past_key: Tensor, past_value: Tensor, mask: Tensor, scaling: float
) -> Tensor:
    """One new token a row: scores with the past and with itself are joined, keys and values are not."""
    rows, heads, _, size = query.shape
    slots = past_key.shape[2]
    grouped = query.reshape(rows, key.shape[1], -1, size) * scaling  # query heads by the key head they share
    scores = torch.cat([grouped @ past_key.transpose(2, 3), (grouped * key).sum(-1, keepdim=True)], dim=-1)
    weights = torch.softmax(scores + mask, dim=-1)  # (rows, key heads, query heads a key head, slots + 1)
    output = weights[..., :slots] @ past_value + weights[..., slots:] * value
    return output.reshape(rows, 1, heads, size)


AttentionInterface.register(NAME, _split_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def split_attention(config: Any) -> Iterator[None]:
    """Let the model of ``config`` attend as above, and as before afterwards."""
    usual = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = usual
