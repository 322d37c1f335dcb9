"""An NLI classifier that encodes a premise once for all its hypotheses.

Tokens of the premise attend to the premise alone; tokens of a hypothesis attend to the premise and to themselves.
So the hypotheses of a premise stand in one sequence, and none changes what is computed for another. The positions
of each hypothesis follow those of the premise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PADDING = -1  # block of a token that only fills a sequence
Group = tuple[Sequence[int], Sequence[Sequence[int]]]  # token ids of a premise and of its hypotheses


class Packed(NamedTuple):
    """Sequences of a premise and its hypotheses.

    Attributes:
        ids: of the tokens, (sequences, tokens).
        blocks: 0 for a token of the premise, then the number of its hypothesis from 1, or :data:`PADDING`.
        positions: of the tokens, from 0.
        starts: sequence and token at which each hypothesis begins, (hypotheses, 2), in the order of the groups.
    """

    ids: Tensor
    blocks: Tensor
    positions: Tensor
    starts: Tensor


def pack(groups: Sequence[Group], pad_id: int, device: Any = "cpu") -> Packed:
    """Put each premise and its hypotheses, token ids with their special tokens, into one sequence."""
    length = max(len(premise) + sum(map(len, hypotheses)) for premise, hypotheses in groups)
    ids = torch.full((len(groups), length), pad_id)
    blocks = torch.full_like(ids, PADDING)
    positions = torch.zeros_like(ids)
    starts = []
    for number, (premise, hypotheses) in enumerate(groups):
        start = 0
        for block, tokens in enumerate([premise, *hypotheses]):
            inside = slice(start, start + len(tokens))
            first = len(premise) if block else 0
            ids[number, inside] = torch.tensor(list(tokens))
            blocks[number, inside] = block
            positions[number, inside] = torch.arange(first, first + len(tokens))
            if block:
                starts.append((number, start))
            start += len(tokens)
    return Packed(*(part.to(device) for part in (ids, blocks, positions, torch.tensor(starts))))


class PrefixClassifier(nn.Module):
    """A BERT or MPNet encoder, and a classifier of the first token of each hypothesis.

    Args:
        encoder: a ``BertModel`` or ``MPNetModel``.
        labels: names of the classes.
    """

    def __init__(self, encoder: Any, labels: Sequence[str]) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder, self.labels = encoder, tuple(labels)
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, len(labels))

    def forward(self, packed: Packed) -> Tensor:
        """Return the logits of each hypothesis, (hypotheses, classes)."""
        embeddings = self.encoder.embeddings
        first = embeddings.padding_idx + 1 if self._is_mpnet else 0
        hidden = embeddings(input_ids=packed.ids, position_ids=packed.positions + first)
        layers = [(layer, next(layer.parameters()).dtype) for layer in self.encoder.encoder.layer]
        masks = {dtype: self._attention_mask(packed, dtype) for _, dtype in layers}
        for layer, dtype in layers:
            output = layer(hidden.to(dtype), attention_mask=masks[dtype])
            hidden = output[0] if isinstance(output, tuple) else output
        sequences, tokens = packed.starts.T
        pooled = torch.tanh(self.dense(hidden[sequences, tokens].to(self.dense.weight.dtype)))
        logits: Tensor = self.classifier(pooled)
        return logits

    def set_number_type(self, dtype: torch.dtype) -> None:
        """Let the model compute in a number type, but the first layer and the classifier at least in float32.

        These are small, and it is their rounding by which probabilities change most.
        """
        self.to(torch.promote_types(dtype, torch.float32))
        for layer in self.encoder.encoder.layer[1:]:
            layer.to(dtype)

    @property
    def _is_mpnet(self) -> bool:
        return hasattr(self.encoder.encoder, "relative_attention_bias")

    def _attention_mask(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Return what is added to attention: which tokens see which, and MPNet's bias by their distance."""
        own, others = packed.blocks[:, :, None], packed.blocks[:, None, :]
        unseen = ((others != 0) & (others != own))[:, None]
        mask = torch.zeros_like(unseen, dtype=dtype).masked_fill(unseen, torch.finfo(dtype).min)
        if not self._is_mpnet:
            return mask
        encoder = self.encoder.encoder
        distances = packed.positions[:, None, :] - packed.positions[:, :, None]
        bias: Tensor = encoder.relative_attention_bias(encoder.relative_position_bucket(distances))
        return mask + bias.permute(0, 3, 1, 2).to(dtype)
