"""Count the floating-point operations that infilling needs, and measure those that this machine can do.

Only real tokens count: no padding, no finished job that waits for its batch, nothing computed twice.

- A token in a forward pass takes ``2 x weights`` (the matrices of all layers), ``2 x head`` if its logits are
  needed, and ``4 x width x positions`` a layer for attention to itself and the positions before it.
- A planned token takes k + 1 forward and k backward passes at this price. A backward pass goes through
  activations alone, which costs the same in the matrices. It costs more in attention, which is not counted.
- Each distinct prompt counts once without logits, and the text before the first blank with logits. The last token
  of both is left out, because it counts for the first drafted token.
- To score a draft of n tokens followed by a text block of m tokens takes the last drafted token, and m - 1 tokens
  of the block after each of n prefixes. The logits of the block's last token count for the next draft.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from mars_score.infilling.jobs import FilledBlank, Job
from mars_score.models.causal_lm import CausalLanguageModel

SIZES = (1024, 2048, 4096)


@dataclass(frozen=True)
class Prices:
    """Floating-point operations for one token."""

    body: int  # in the matrices of all layers
    head: int  # for the logits
    position: int  # in all layers, for each position that the token attends to

    @classmethod
    def of(cls, model: CausalLanguageModel) -> Prices:
        """Count the weights of a model."""
        body, config = model.model.base_model, model.model.config
        embeddings = sum(
            module.weight.numel() for module in body.modules() if isinstance(module, torch.nn.Embedding)
        )
        matrices = sum(weight.numel() for weight in body.parameters() if weight.ndim == 2) - embeddings
        heads = config.num_attention_heads
        width = heads * (getattr(config, "head_dim", None) or config.hidden_size // heads)
        return cls(2 * matrices, 2 * model.head.weight.numel(), 4 * width * config.num_hidden_layers)

    def feed(self, first: int, tokens: int, *, logits: bool = True) -> int:
        """Count a forward pass of consecutive tokens. The first one has ``first`` positions before it."""
        positions = tokens * first + tokens * (tokens + 1) // 2
        return tokens * (self.body + self.head * logits) + self.position * positions


def operations(prices: Prices, infills: Mapping[Job, Sequence[FilledBlank]], passes: int) -> int:
    """Count the operations of infilling distinct jobs.

    Args:
        prices: of the model.
        infills: the filled blanks of each job.
        passes: forward and backward passes of a token before a text block. Other tokens take one forward pass.
    """
    lead_follows: dict[tuple[int, ...], bool] = {}
    for job in infills:
        lead_follows[job.prompt] = lead_follows.get(job.prompt, False) or bool(job.lead)
    total = sum(prices.feed(0, len(prompt) - (not lead), logits=False) for prompt, lead in lead_follows.items())
    for job, filled in infills.items():
        written = len(job.prompt) + len(job.lead)
        total += prices.feed(len(job.prompt), max(0, len(job.lead) - 1))
        for blank, infill in zip(job.blanks, filled, strict=True):
            drafted, block = len(infill.perplexities), len(blank.block)
            total += prices.feed(written - 1, drafted) * (passes if block else 1)
            if block:
                total += prices.feed(written + drafted - 1, 1)
                total += sum(prices.feed(written + prefix, block - 1) for prefix in range(1, drafted + 1))
            written += len(infill.tokens) + block
    return total


def matrix_rate(device: torch.device, repeats: int = 3) -> float:
    """Return the operations per second of the fastest of several products of large float32 matrices."""
    best = 0.0
    for size in SIZES:
        one, other = (torch.randn(size, size, device=device) for _ in range(2))
        for _ in range(repeats + 1):
            synchronise(device)
            start = time.perf_counter()
            torch.mm(one, other)
            synchronise(device)
            best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def synchronise(device: torch.device) -> None:
    """Wait until a GPU has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
