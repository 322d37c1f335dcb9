"""Attention over unpadded tokens of several rows, with a preallocated cache.

The cache of transformers copies all cached keys and values for each new token, in every layer, and its batches
are padded. Here the tokens of all rows are fed as one sequence; only the attention function, which gets a
:class:`Feed`, knows to which row each token belongs and where its past is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.masking_utils import sdpa_mask

from mars_score.infilling.perturbation import LayerPerturbation
from mars_score.models.kv_cache import KeyValueCache, LayerStates

NAME = "mars"


class NewStates(Cache):  # type: ignore[misc]
    """Collects the keys and values of the fed tokens, layer by layer."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.states: LayerStates = []  # each (rows, heads, tokens, head size)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Record the new keys and values of a layer and return them unchanged."""
        if layer_idx != len(self.states):
            raise NotImplementedError("layers that share keys and values")
        self.states.append((key_states, value_states))
        return key_states, value_states


@dataclass
class Feed:
    """How the tokens of one forward pass belong to rows."""

    counts: Sequence[int]  # number of tokens of each row; the sequence is row after row
    # Added to the attention scores, (rows, 1, longest, slots + longest): for the slots of the cache, then for the
    # row's tokens of this pass.
    mask: Tensor
    cache: KeyValueCache | None = None  # keys and values of earlier tokens; None: there are none
    rows: Tensor | None = None  # the rows of the cache, (rows,); None: all, in order
    slots: int = 0  # number of slots of the cache to attend to
    # Of the cached keys and values, per layer; only with one token per row.
    perturbations: Sequence[LayerPerturbation] | None = None

    def __post_init__(self) -> None:
        self._longest = max(self.counts)
        if self._longest == 1:
            return
        starts = accumulate(self.counts, initial=0)
        # Padding is filled with the row's first token; the mask hides it.
        spread = [
            start + (place if place < count else 0)
            for start, count in zip(starts, self.counts, strict=False)
            for place in range(self._longest)
        ]
        packed = [row * self._longest + place for row, count in enumerate(self.counts) for place in range(count)]
        device = self.mask.device
        self._spread, self._packed = torch.tensor(spread, device=device), torch.tensor(packed, device=device)

    def by_row(self, states: Tensor) -> Tensor:
        """(1, heads, tokens, head size) -> (rows, heads, longest, head size)."""
        if self._longest == 1:
            return states.transpose(0, 2)
        heads, size = states.shape[1], states.shape[3]
        spread = states[0].index_select(1, self._spread)
        return spread.reshape(heads, len(self.counts), self._longest, size).transpose(0, 1)

    def in_sequence(self, output: Tensor) -> Tensor:
        """(rows, heads, longest, head size) -> (1, tokens, heads, head size)."""
        if self._longest == 1:
            return output.permute(2, 0, 1, 3)
        return output.transpose(1, 2).flatten(0, 1).index_select(0, self._packed)[None]


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    *,
    mars_feed: Feed,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of new tokens, (1, heads, tokens, head size), to cached tokens and to each other.

    Keys and values may have fewer heads (grouped-query attention). Returns (1, tokens, heads, head size).
    """
    feed, layer = mars_feed, module.layer_idx
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    new = feed.by_row(query), feed.by_row(key), feed.by_row(value)
    past = feed.cache.past(layer, feed.slots, feed.rows) if feed.cache is not None else None
    if past is not None and max(feed.counts) == 1:
        perturbation = feed.perturbations[layer] if feed.perturbations else None
        output = _single_tokens(new, past, feed.mask, scale, perturbation)
    else:
        output = _several_tokens(new, past, feed.mask, scale)
    return feed.in_sequence(output.to(query.dtype)), None


def _several_tokens(
    new: tuple[Tensor, Tensor, Tensor], past: tuple[Tensor, Tensor] | None, mask: Tensor, scale: float
) -> Tensor:
    """Copies the cached states, which is cheap compared with the attention itself."""
    query, key, value = new
    if past is not None:
        key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
    shared = query.shape[1] // key.shape[1]
    if shared > 1 and query.device.type != "cpu":  # kernels for grouped-query attention take no mask
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    return scaled_dot_product_attention(
        query, key, value, mask, scale=scale, enable_gqa=query.shape[1] != key.shape[1]
    )


def _single_tokens(
    new: tuple[Tensor, Tensor, Tensor],
    past: tuple[Tensor, Tensor],
    mask: Tensor,
    scale: float,
    perturbation: LayerPerturbation | None,
) -> Tensor:
    """Attention of one new token per row to cached tokens and itself, in the mask's precision, without copies."""
    query, key, value, past_key, past_value = (states.to(mask.dtype) for states in (*new, *past))
    rows, _, _, size = query.shape
    grouped = query.reshape(rows, key.shape[1], -1, size) * scale  # query heads by the key head that they share
    scores = grouped @ past_key.transpose(2, 3)
    if perturbation is not None:
        scores = perturbation.add_to_scores(scores, grouped)
    with_itself = (grouped * key).sum(-1, keepdim=True)
    weights = torch.softmax(torch.cat([scores, with_itself], dim=-1) + mask, dim=-1)
    of_past = weights[..., :-1]
    output = of_past @ past_value
    if perturbation is not None:
        output = perturbation.add_to_output(output, of_past)
    return (output + weights[..., -1:] * value).reshape(query.shape)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def mars_attention(config: Any, name: str = NAME) -> Iterator[None]:
    """Within, the model with this ``config`` uses a registered attention; not safe from other threads."""
    usual = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = usual
