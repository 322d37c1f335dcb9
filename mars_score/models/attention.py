"""Attention over the packed tokens of several rows, with a preallocated key-value cache.

The cache of transformers copies all keys and values at each new token and pads its batches. Here the tokens of all
rows form one sequence. A :class:`PackedBatch` tells the attention function the row and the past of each token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.masking_utils import sdpa_mask

NAME = "mars"  # The attention function's name in transformers.
LayerStates = list[tuple[Tensor, Tensor]]  # Keys and values of each layer.


class KeyValueCache:
    """A key-value cache of rows of different lengths, left-aligned: a row's i-th token is in slot i.

    Attention masks hide the slots beyond a row's length, and later tokens overwrite them.

    Args:
        like: keys and values per layer, (heads, tokens, head size). Only their shapes and types are used.
        rows: maximum number of rows. None of them is in use yet.
        capacity: slots per row.
    """

    def __init__(self, like: LayerStates, rows: int, capacity: int) -> None:
        self._storage: LayerStates = [
            (
                keys.new_zeros(rows, keys.shape[0], capacity, keys.shape[2]),
                values.new_zeros(rows, values.shape[0], capacity, values.shape[2]),
            )
            for keys, values in like
        ]
        self.rows, self.capacity = rows, capacity
        self.lengths: list[int] = []  # of the rows in use

    @property
    def slots(self) -> int:
        """Return the number of slots of the longest row."""
        return max(self.lengths, default=0)

    def past(self, layer: int, slots: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values, (rows, heads, slots, head size), as copies or as views of all rows."""
        keys, values = self._storage[layer]
        used = slice(len(self.lengths)) if rows is None else rows
        return keys[used, :, :slots], values[used, :, :slots]

    def joined(
        self, layer: int, slots: int, rows: Tensor | None, new: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values followed by new ones, (rows, heads, slots + tokens, head size).

        The new ones are written into the next slots if these exist and are free. Otherwise both are copied.
        """
        stop = slots + new[0].shape[2]
        if rows is None and self.slots <= slots and stop <= self.capacity:
            keys, values = (storage[: len(self.lengths), :, :stop] for storage in self._storage[layer])
            keys[:, :, slots:], values[:, :, slots:] = new
            return keys, values
        keys, values = self.past(layer, slots, rows)
        return torch.cat([keys, new[0]], dim=2), torch.cat([values, new[1]], dim=2)

    def write(
        self, states: LayerStates, rows: Sequence[int], slots: Sequence[int], tokens: Sequence[int] | None = None
    ) -> None:
        """Store the keys and values of tokens of a forward pass.

        Args:
            states: keys and values per layer, (heads, tokens, head size), of all tokens of the pass.
            rows: row of each token to store.
            slots: slot of each token to store.
            tokens: indices of the tokens to store, or None for all.
        """
        device = self._storage[0][0].device
        row, slot = torch.tensor([rows, slots], device=device)
        chosen = None if tokens is None else torch.tensor(tokens, device=device)
        for storage, new in zip(self._storage, states, strict=True):
            for target, state in zip(storage, new, strict=True):
                stored = state if chosen is None else state[:, chosen]
                target[row, :, slot] = stored.transpose(0, 1).to(target.dtype)

    def append_row(self, source: KeyValueCache, row: int) -> None:
        """Append a copy of a row of another cache."""
        self.lengths.append(0)
        self.set_row(len(self.lengths) - 1, source, row)

    def set_row(self, row: int, source: KeyValueCache, source_row: int) -> None:
        """Make a row a copy of a row of this or another cache."""
        self.lengths[row] = length = source.lengths[source_row]
        for targets, sources in zip(self._storage, source._storage, strict=True):
            for target, states in zip(targets, sources, strict=True):
                target[row, :, :length] = states[source_row, :, :length]

    def copy_row(self, row: int) -> KeyValueCache:
        """Return a cache of this row alone, without room for more tokens."""
        like = [(keys[row], values[row]) for keys, values in self._storage]
        copy = KeyValueCache(like, rows=1, capacity=self.lengths[row])
        copy.append_row(self, row)
        return copy

    def remove_row(self, row: int) -> None:
        """Remove a row and move the last row to its index."""
        last = len(self.lengths) - 1
        if row != last:
            self.set_row(row, self, last)
        self.lengths.pop()


class NewStates(Cache):  # type: ignore[misc]
    """Collects the keys and values of the tokens of a forward pass, layer by layer."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.states: LayerStates = []  # each (rows, heads, tokens, head size)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Collect the new keys and values of a layer and return them unchanged."""
        if layer_idx != len(self.states):
            raise NotImplementedError("layers that share keys and values")
        self.states.append((key_states, value_states))
        return key_states, value_states


class Perturbation(Protocol):
    """A change to the cached keys and values of one layer, computed without storing the changed ones."""

    def add_to_scores(self, scores: Tensor, query: Tensor) -> Tensor:
        """Return attention scores with the changed keys, (rows, key heads, query heads per key head, slots)."""

    def add_to_output(self, output: Tensor, weights: Tensor) -> Tensor:
        """Return output with the changed values, (rows, key heads, query heads per key head, head size)."""


@dataclass
class PackedBatch:
    """The rows of the packed tokens of a forward pass, and what they attend to.

    Attributes:
        counts: tokens of each row; the sequence holds row after row.
        mask: added to the attention scores, (rows, 1, longest, slots + longest): first the slots of the cache,
            then the row's tokens of this pass.
        cache: keys and values of earlier tokens, if any.
        rows: rows of the cache, (rows,), or None for all in order.
        slots: number of cache slots to attend to.
        perturbations: changes to the cached keys and values, per layer. Each row must then have one token.
    """

    counts: Sequence[int]
    mask: Tensor
    cache: KeyValueCache | None = None
    rows: Tensor | None = None
    slots: int = 0
    perturbations: Sequence[Perturbation] | None = None

    def __post_init__(self) -> None:
        """Compute the indices from packed to padded tokens and back."""
        self._longest = longest = max(self.counts)
        if longest == 1:
            return
        starts = accumulate(self.counts, initial=0)
        # Padding repeats the row's first token; the mask hides it.
        padded = [
            start + (offset if offset < count else 0)
            for start, count in zip(starts, self.counts, strict=False)
            for offset in range(longest)
        ]
        packed = [row * longest + offset for row, count in enumerate(self.counts) for offset in range(count)]
        device = self.mask.device
        self._padded, self._packed = torch.tensor(padded, device=device), torch.tensor(packed, device=device)

    def pad(self, states: Tensor) -> Tensor:
        """Pad packed states: (1, heads, tokens, head size) to (rows, heads, longest, head size)."""
        if self._longest == 1:
            return states.transpose(0, 2)
        heads, size = states.shape[1], states.shape[3]
        padded = states[0].index_select(1, self._padded)
        return padded.reshape(heads, len(self.counts), self._longest, size).transpose(0, 1)

    def pack(self, output: Tensor) -> Tensor:
        """Pack padded states: (rows, heads, longest, head size) to (1, tokens, heads, head size)."""
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
    mars_batch: PackedBatch,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """Let new tokens, (1, heads, tokens, head size), attend to cached tokens and to each other.

    Keys and values may have fewer heads (grouped-query attention). The output is (1, tokens, heads, head size).
    """
    batch, layer = mars_batch, module.layer_idx
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    new = batch.pad(query), batch.pad(key), batch.pad(value)
    if batch.cache is None:
        output = _attend_several_tokens(*new, batch.mask, scale)
    elif max(batch.counts) > 1:
        states = batch.cache.joined(layer, batch.slots, batch.rows, new[1:])
        output = _attend_several_tokens(new[0], *states, batch.mask, scale)
    else:
        past = batch.cache.past(layer, batch.slots, batch.rows)
        perturbation = batch.perturbations[layer] if batch.perturbations else None
        output = _attend_single_tokens(new, past, batch.mask, scale, perturbation)
    return batch.pack(output.to(query.dtype)), None


def _attend_several_tokens(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Attend without repeating keys and values: query heads that share a key head become more tokens of it."""
    rows, heads, _, size = key.shape
    shared = query.shape[1] // heads
    grouped = query.reshape(rows, heads, -1, size)
    output = scaled_dot_product_attention(grouped, key, value, mask.repeat(1, 1, shared, 1), scale=scale)
    return output.reshape(query.shape)


def _attend_single_tokens(
    new: tuple[Tensor, Tensor, Tensor],
    past: tuple[Tensor, Tensor],
    mask: Tensor,
    scale: float,
    perturbation: Perturbation | None,
) -> Tensor:
    """Let one new token per row attend to cached tokens and itself, in the mask's precision, without copies."""
    query, key, value, past_key, past_value = (states.to(mask.dtype) for states in (*new, *past))
    rows, _, _, size = query.shape
    grouped = query.reshape(rows, key.shape[1], -1, size) * scale  # query heads by the key head that they share
    scores = grouped @ past_key.transpose(2, 3)
    if perturbation is not None:
        scores = perturbation.add_to_scores(scores, grouped)
    new_score = (grouped * key).sum(-1, keepdim=True)
    weights = torch.softmax(torch.cat([scores, new_score], dim=-1) + mask, dim=-1)
    past_weights = weights[..., :-1]
    output = past_weights @ past_value
    if perturbation is not None:
        output = perturbation.add_to_output(output, past_weights)
    return (output + weights[..., -1:] * value).reshape(query.shape)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def mars_attention(config: Any) -> Iterator[None]:
    """Let the model with this ``config`` use this attention. Other threads must not run it meanwhile."""
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
