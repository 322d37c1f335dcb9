"""Cached keys and values of rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LayerStates = list[tuple[Tensor, Tensor]]  # per layer: keys and values


class KeyValueCache:
    """Keys and values per layer, left-aligned: a row's i-th token is in slot i.

    Slots beyond a row's length are uninitialised: attention masks hide them, and later tokens overwrite them. Of
    ``like`` (per layer keys and values, (heads, tokens, head size)) only shapes and types are used.
    """

    def __init__(self, like: LayerStates, rows: int, capacity: int) -> None:
        self._storage: LayerStates = [
            (
                keys.new_zeros(rows, keys.shape[0], capacity, keys.shape[2]),
                values.new_zeros(rows, values.shape[0], capacity, values.shape[2]),
            )
            for keys, values in like
        ]
        self.rows = rows
        self.capacity = capacity
        self.lengths: list[int] = []

    @property
    def slots(self) -> int:
        """Number of slots of the longest row."""
        return max(self.lengths, default=0)

    def past(self, layer: int, slots: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """A layer's keys and values, (rows, heads, slots, head size): views of all rows in use, or copies."""
        keys, values = self._storage[layer]
        if rows is None:
            used = len(self.lengths)
            return keys[:used, :, :slots], values[:used, :, :slots]
        return keys[rows, :, :slots], values[rows, :, :slots]

    def write(
        self, states: LayerStates, rows: Sequence[int], slots: Sequence[int], tokens: Sequence[int] | None = None
    ) -> None:
        """Store keys and values, per layer (heads, tokens, head size), of all or some tokens (indices) of a pass.

        Each stored token has its entry of ``rows`` and ``slots``.
        """
        device = self._storage[0][0].device
        row, slot = torch.tensor([rows, slots], device=device)
        chosen = None if tokens is None else torch.tensor(tokens, device=device)
        for storage, new in zip(self._storage, states, strict=True):
            for target, state in zip(storage, new, strict=True):
                stored = state if chosen is None else state[:, chosen]
                target[row, :, slot] = stored.transpose(0, 1).to(target.dtype)

    def add(self, source: KeyValueCache, row: int, length: int | None = None) -> None:
        """Append a copy of another cache's row, or of its first ``length`` tokens."""
        length = source.lengths[row] if length is None else length
        for target, origin in zip(self._storage, source._storage, strict=True):
            for to, of in zip(target, origin, strict=True):
                to[len(self.lengths), :, :length] = of[row, :, :length]
        self.lengths.append(length)

    def copy(self, row: int) -> KeyValueCache:
        """A cache of its own for a row, without room for more."""
        alone = KeyValueCache([(keys[row], values[row]) for keys, values in self._storage], 1, self.lengths[row])
        alone.add(self, row)
        return alone

    def remove(self, row: int) -> None:
        """Take a row out; the last one takes its place."""
        length = self.lengths.pop()
        if row == len(self.lengths):
            return
        for keys, values in self._storage:
            for states in (keys, values):
                states[row, :, :length] = states[len(self.lengths), :, :length]
        self.lengths[row] = length
