"""A causal language model as the engine sees it: explicit cache, positions and attention mask."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from mars_score.errors import UnsupportedModelError
from mars_score.infilling.attention import NewStates, split_attention
from mars_score.infilling.cache import KeyValueCache, LayerStates
from mars_score.infilling.tokens import TextCodec
from mars_score.torch_modes import evaluating, ordinary_mode

CHUNK = 512  # tokens fed at once while a prompt is read; bounds the attention mask
VOCABULARY_ROWS = 512  # hidden states turned into logits at once; bounds their memory


class CausalLanguageModel:
    """A transformers model with a full-attention cache and explicit position ids.

    Args:
        model: any ``...ForCausalLM``; its weights and modes are left as they are.
        tokenizer: its tokenizer.

    Raises:
        UnsupportedModelError: the model's cache, positions or attention cannot be set (sliding windows,
            ALiBi, recurrent layers, ...), named in the message.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.codec = TextCodec(tokenizer)
        self.head = model.get_output_embeddings()
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        self.vocabulary: int = self.head.weight.shape[0]
        # The type in which logits are judged and the cache is perturbed.
        self.precise = torch.promote_types(self.dtype, torch.float32)
        self.window = _window(model)
        try:
            with evaluating(self.model), ordinary_mode():
                self._check()
        except (UnsupportedModelError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # whatever a model of another build stumbles over
            raise UnsupportedModelError(
                f"{type(model).__name__} does not run with an explicit cache and attention mask ({error}); "
                "choose a GPT-2 or Llama style language_model"
            ) from error

    def _check(self) -> None:
        """Compare a short text read through the engine's cache and masks with a plain forward pass."""
        name = type(self.model).__name__
        parameters = inspect.signature(self.model.base_model.forward).parameters
        layers = DynamicCache(config=self.model.config).layers
        full = all(type(layer) is DynamicLayer for layer in layers)
        local = "local" in getattr(self.model.config, "attention_layers", ())
        if "position_ids" not in parameters or "past_key_values" not in parameters or not full or local:
            raise UnsupportedModelError(
                f"{name} has no full-attention cache with explicit positions, which self-planning and judging "
                "need; choose a GPT-2 or Llama style language_model"
            )
        if any(parameter.is_inference() for parameter in self.model.parameters()):
            raise UnsupportedModelError(
                f"{name} was made inside torch.inference_mode and has no gradients; load it outside"
            )
        tokens = torch.arange(6, device=self.device) % self.vocabulary
        plain = self.model(input_ids=tokens[None], use_cache=False).logits[0, -1]
        cache, _ = self.read([tokens[:2].tolist(), tokens[:4].tolist()], capacity=6)
        self.token_bytes = sum(
            state.shape[1] * state.shape[3] * self.precise.itemsize for layer in cache.layers for state in layer
        )
        _, hidden = self.read([tokens[2:].tolist(), tokens[4:].tolist()], cache)
        ours = self.logits(torch.stack([row[-1] for row in hidden]))
        tolerance = 1e-2 if self.dtype in (torch.float16, torch.bfloat16) else 1e-4
        scale = plain.abs().max().clamp(min=1e-6)
        if not ((ours - plain).abs() / scale < 5 * tolerance).all():
            raise UnsupportedModelError(
                f"{name} gives other logits behind an explicit cache and attention mask than in a plain forward "
                "pass; choose a GPT-2 or Llama style language_model"
            )

    def forward(
        self, tokens: Tensor, positions: Tensor, visible: Tensor, past: LayerStates | None
    ) -> tuple[Tensor, LayerStates]:
        """Feed tokens behind a cache.

        Args:
            tokens: (rows, tokens) ids.
            positions: (rows, tokens) position ids.
            visible: (rows, tokens, slots + tokens) bool, what each token attends to: the past's slots, then
                the tokens of this call. Each token sees at least itself.
            past: per layer keys and values, each (rows, heads, slots, head size), or None.

        Returns:
            Hidden states of the last layer, (rows, tokens, hidden size), and the new tokens' keys and values.
        """
        lowest = torch.finfo(self.dtype).min
        mask = torch.zeros(visible.shape, dtype=self.dtype, device=self.device).masked_fill_(~visible, lowest)
        new = NewStates()
        with split_attention(self.model.config), evaluating(self.model):
            hidden: Tensor = self.model.base_model(
                input_ids=tokens,
                position_ids=positions,
                attention_mask=mask[:, None],
                past_key_values=new,
                use_cache=True,
                mars_past=past,
            ).last_hidden_state
        return hidden, new.states

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., hidden size) to (..., vocabulary), in float32 or better."""
        logits: Tensor = self.head(hidden)
        return logits.to(self.precise)

    def surprisal(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """-log p(target) in nats; hidden (n, hidden size), targets (n,) -> (n,)."""
        parts = []
        for start in range(0, len(targets), VOCABULARY_ROWS):
            logits = self.logits(hidden[start : start + VOCABULARY_ROWS])
            tokens = targets[start : start + VOCABULARY_ROWS, None]
            parts.append(logits.logsumexp(-1) - logits.gather(-1, tokens)[:, 0])
        return torch.cat(parts)

    def read(
        self, texts: Sequence[Sequence[int]], cache: KeyValueCache | None = None, capacity: int = 0
    ) -> tuple[KeyValueCache, list[Tensor]]:
        """Feed each row's tokens behind the cache (a new one of ``capacity`` slots if None) and keep them in it.

        Returns:
            The cache and, per row, the hidden state of each token fed, (tokens, hidden size).
        """
        rows = len(texts)
        hidden_parts: list[list[Tensor]] = [[] for _ in texts]
        for start in range(0, max(map(len, texts)), CHUNK):
            parts = [list(text[start : start + CHUNK]) for text in texts]
            tokens, counts = self.pad(parts)
            lengths = cache.lengths if cache else torch.zeros_like(counts)
            past = cache.past if cache else None
            size = tokens.shape[1]
            offsets = torch.arange(size, device=self.device)
            causal = (offsets[None, :] <= offsets[:, None]).expand(rows, size, size)
            filled = torch.arange(cache.slots if cache else 0, device=self.device) < lengths[:, None]
            visible = torch.cat([filled[:, None].expand(-1, size, -1), causal], dim=2)
            positions = (lengths[:, None] + offsets).clamp(max=self.window - 1)  # only padding lies beyond
            hidden, states = self.forward(tokens, positions, visible, past)
            if cache is None:
                cache = KeyValueCache.empty(states, rows, capacity)
            cache.append(states, counts)
            for row, part in enumerate(parts):
                hidden_parts[row].append(hidden[row, : len(part)])
        assert cache is not None
        return cache, [torch.cat(row_parts) for row_parts in hidden_parts]

    def pad(self, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Token ids padded on the right, (rows, longest), and the number of tokens of each row."""
        counts = torch.tensor([len(text) for text in texts], device=self.device)
        longest = int(counts.max())
        padded = [[*text, *[0] * (longest - len(text))] for text in texts]
        return torch.tensor(padded, dtype=torch.long, device=self.device).reshape(len(texts), longest), counts


def _window(model: Any) -> int:
    """The number of positions a model takes."""
    window = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(window, int):
        raise UnsupportedModelError(f"{type(model).__name__} does not say how many positions it takes")
    return window
