"""Judging how many of the generated tokens to keep (Algorithm 2): all prefix lengths in one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mars_score.infilling.cache import KeyValueCache, LayerStates
from mars_score.infilling.language_model import CausalLanguageModel


@dataclass(frozen=True)
class Continuations:
    """The next text block behind each prefix of the generated tokens, side by side in one sequence.

    A row of this layout holds the last generated token, then n copies of the text block: copy m stands
    behind the first m generated tokens. The cache holds the written tokens and all generated ones but the
    last.

    Attributes:
        tokens: (rows, size) ids, padded on the right.
        copy: (rows, size) which prefix length m a token belongs to; 0 for the last generated token.
        place: (rows, size) index of a token within its copy.
        generated: (rows,) n, the number of generated tokens.
    """

    tokens: Tensor
    copy: Tensor
    place: Tensor
    generated: Tensor

    @classmethod
    def lay_out(
        cls, model: CausalLanguageModel, drafts: Sequence[Sequence[int]], blocks: Sequence[Sequence[int]]
    ) -> Continuations:
        """The layout for each row's generated tokens (at least one) and next text block (maybe empty)."""
        drafted = list(zip(drafts, blocks, strict=True))
        tokens, _ = model.pad([[draft[-1], *(list(block) * len(draft))] for draft, block in drafted])
        copy, _ = model.pad(
            [[0, *(m for m in range(1, len(draft) + 1) for _ in block)] for draft, block in drafted]
        )
        place, _ = model.pad([[0, *(list(range(len(block))) * len(draft))] for draft, block in drafted])
        generated = torch.tensor([len(draft) for draft in drafts], device=model.device)
        return cls(tokens, copy, place, generated)

    def forward(self, model: CausalLanguageModel, cache: KeyValueCache) -> tuple[Tensor, LayerStates]:
        """Hidden states (rows, size, hidden size) of the layout behind the cache, and its keys and values."""
        written = cache.lengths[:, None] - (self.generated[:, None] - 1)
        last = self.copy == 0
        # Copy m sees the written tokens and the first m generated ones, of which the last is not cached.
        reach = torch.where(last, cache.lengths[:, None], written + self.copy.minimum(self.generated[:, None] - 1))
        past = torch.arange(cache.slots, device=model.device) < reach[:, :, None]
        same_copy = self.copy[:, :, None] == self.copy[:, None, :]
        before = self.place[:, None, :] <= self.place[:, :, None]
        whole_draft = (self.copy == self.generated[:, None])[:, :, None]
        first = torch.zeros_like(self.copy, dtype=torch.bool)
        first[:, 0] = True
        within = (same_copy & before & ~last[:, None, :]) | (whole_draft & first[:, None, :])
        within |= torch.eye(self.copy.shape[1], dtype=torch.bool, device=model.device)
        positions = torch.where(last, cache.lengths[:, None], written + self.copy + self.place)
        positions = positions.clamp(max=model.window - 1)  # only padding lies beyond
        return model.forward(self.tokens, positions, torch.cat([past, within], dim=2), cache.past)
