"""Cached keys and values of rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LayerStates = list[tuple[Tensor, Tensor]]  # per layer: keys and values, each (rows, heads, tokens, head size)


class KeyValueCache:
    """Keys and values per layer, left-aligned: a row's i-th token is in slot i.

    Slots beyond a row's length hold rubbish that the attention mask hides and later tokens overwrite.
    """

    def __init__(self, layers: LayerStates, lengths: Tensor) -> None:
        self.layers = layers
        self.lengths = lengths  # (rows,)

    @classmethod
    def empty(cls, like: LayerStates, rows: int, capacity: int) -> KeyValueCache:
        """A cache of ``capacity`` slots for ``rows`` rows with the shapes and types of ``like``.

        One slot more catches what is appended but not counted.
        """
        layers = [
            tuple(state.new_zeros(rows, state.shape[1], capacity + 1, state.shape[3]) for state in layer)
            for layer in like
        ]
        lengths = torch.zeros(rows, dtype=torch.long, device=like[0][0].device)
        return cls(layers, lengths)  # type: ignore[arg-type]

    @property
    def slots(self) -> int:
        """Slots up to the longest row's end."""
        return int(self.lengths.max())

    @property
    def past(self) -> LayerStates:
        """Views of keys and values up to the longest row's end."""
        slots = self.slots
        return [(keys[:, :, :slots], values[:, :, :slots]) for keys, values in self.layers]

    def select(self, rows: Sequence[int], capacity: int) -> KeyValueCache:
        """A copy that holds the given rows in the given order (a row may come several times)."""
        index = torch.tensor(rows, device=self.lengths.device)
        lengths = self.lengths[index]
        slots = int(lengths.max())
        chosen = KeyValueCache.empty(self.layers, len(rows), capacity)
        for old, new in zip(self.layers, chosen.layers, strict=True):
            for source, target in zip(old, new, strict=True):
                target[:, :, :slots] = source[index, :, :slots]
        chosen.lengths = lengths
        return chosen

    def view(self, start: int, stop: int) -> KeyValueCache:
        """The rows ``start`` to ``stop``, sharing storage: appending to the view appends here."""
        layers = [(keys[start:stop], values[start:stop]) for keys, values in self.layers]
        return KeyValueCache(layers, self.lengths[start:stop])

    def append(self, states: LayerStates, counts: Tensor | int = 1) -> None:
        """Write new tokens behind each row's end; of each row the first ``counts`` are kept."""
        tokens = states[0][0].shape[2]
        slots = self.lengths[:, None] + torch.arange(tokens, device=self.lengths.device)  # (rows, tokens)
        slots.clamp_(max=self.layers[0][0].shape[2] - 1)  # the slot that catches uncounted tokens
        for layer, new in zip(self.layers, states, strict=True):
            for storage, state in zip(layer, new, strict=True):
                storage.scatter_(2, slots[:, None, :, None].expand(state.shape), state)
        self.lengths += counts
