"""A causal language model with explicit key-value cache, positions and attention mask."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from mars_score.cache import LruCache
from mars_score.errors import UnsupportedModelError
from mars_score.models.attention import KeyValueCache, LayerStates, NewStates, PackedBatch, mars_attention
from mars_score.models.codec import TextCodec
from mars_score.models.running import cache_bytes, exclusive, ordinary_mode, position_limit

T = TypeVar("T")
Prompts = LruCache[tuple[int, ...], KeyValueCache]  # caches of one row, by prompt (token ids)
CHUNK_TOKENS = 512  # maximum tokens of a row per forward pass of extend(), to limit the attention mask
# Maximum tokens of all rows per forward pass. The activations of more tokens do not fit into a CPU's caches.
PASS_TOKENS = {"cpu": 512, "cuda": 8192}
LOGIT_ROWS = 128  # hidden states that are turned into logits at once, to limit memory


class CausalLanguageModel:
    """A transformers model with a full-attention cache and explicit position ids, for one thread at a time.

    Args:
        model: any ``...ForCausalLM`` of transformers.
        tokenizer: its tokenizer.

    Raises:
        UnsupportedModelError: the model's cache, positions or attention cannot be set (sliding windows,
            ALiBi, recurrent layers, ...). The message names the reason.
    """

    pack_tokens = 128  # maximum tokens of the texts that share a row and a prompt

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.codec = TextCodec(tokenizer)
        self.head = model.get_output_embeddings()
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        self.vocabulary: int = self.head.weight.shape[0]
        self.logit_dtype = torch.promote_types(self.dtype, torch.float32)  # also of perturbations
        if (positions := position_limit(model)) is None:
            raise UnsupportedModelError(
                f"the configuration of {type(model).__name__} has no max_position_embeddings"
            )
        self.window = positions
        self.pass_tokens = PASS_TOKENS.get(self.device.type, PASS_TOKENS["cpu"])
        self.prompts = Prompts(cache_bytes(self.device) // 2)
        try:
            with exclusive(self.model), ordinary_mode():
                self._check()
        except (UnsupportedModelError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # Models of other architectures fail in many ways.
            raise UnsupportedModelError(
                f"{type(model).__name__} does not work with an explicit cache and attention mask ({error}); "
                "choose a GPT-2 or Llama style language_model"
            ) from error

    def _check(self) -> None:
        """Raise UnsupportedModelError unless the cache gives the logits of a plain forward pass."""
        name = type(self.model).__name__
        parameters = inspect.signature(self.model.base_model.forward).parameters
        # transformers renamed the argument in 5.24.
        self.cache_name = "cache" if "cache" in parameters else "past_key_values"
        layers = DynamicCache(config=self.model.config).layers
        full = all(type(layer) is DynamicLayer for layer in layers)
        local = "local" in getattr(self.model.config, "attention_layers", ())
        if not {"position_ids", self.cache_name} <= parameters.keys() or not full or local:
            raise UnsupportedModelError(
                f"{name} has no full-attention cache with explicit positions, which infilling needs; choose a "
                "GPT-2 or Llama style language_model"
            )
        if any(parameter.is_inference() for parameter in self.model.parameters()):
            raise UnsupportedModelError(
                f"{name} was created inside torch.inference_mode and has no gradients; create it outside"
            )
        plain, ours = self._logits_both_ways([token % self.vocabulary for token in range(6)])
        tolerance = 5e-2 if self.dtype in (torch.float16, torch.bfloat16) else 5e-4
        scale = plain.abs().max().clamp(min=1e-6)
        if not ((ours - plain).abs() / scale < tolerance).all():
            raise UnsupportedModelError(
                f"{name} gives different logits with an explicit cache and attention mask than in a plain forward "
                "pass; choose a GPT-2 or Llama style language_model"
            )

    def _logits_both_ways(self, tokens: list[int]) -> tuple[Tensor, Tensor]:
        """Return the last token's logits of a plain forward pass, and of two rows that are cached in parts.

        Also count the layers with a cache, and the bytes that a token takes there.
        """
        count, inputs = len(tokens), self.tensor([tokens])
        plain = self.model(input_ids=inputs, use_cache=False).logits[0, -1]
        mask = torch.ones(1, 1, count, count, dtype=self.dtype, device=self.device).tril().log()
        _, self._states = self.forward(
            inputs[0], torch.arange(count, device=self.device), PackedBatch([count], mask)
        )
        self.layers = len(self._states)
        self.token_bytes = sum(
            state.shape[0] * state.shape[2] * state.itemsize for layer in self._states for state in layer
        )
        cache = self.new_cache(rows=2, capacity=count)
        cache.lengths = [0, 0]
        self.extend(cache, [tokens[:2], tokens[:4]])
        hidden = self.extend(cache, [tokens[2:], tokens[4:]])
        return plain, self.logits(torch.stack([states[-1] for states in hidden]))

    def new_cache(self, rows: int, capacity: int) -> KeyValueCache:
        """Make an empty cache for at most ``rows`` rows of ``capacity`` tokens."""
        return KeyValueCache(self._states, rows, capacity)

    def forward(self, tokens: Tensor, positions: Tensor, batch: PackedBatch) -> tuple[Tensor, LayerStates]:
        """Run a forward pass over packed tokens.

        Args:
            tokens: token ids, row after row, (tokens,).
            positions: position ids, (tokens,).
            batch: rows of the tokens, and what they attend to.

        Returns:
            Hidden states of the last layer, (tokens, hidden size), and the new keys and values of each layer,
            (heads, tokens, head size).
        """
        new = NewStates()
        with exclusive(self.model), mars_attention(self.model.config):
            hidden: Tensor = self.model.base_model(
                input_ids=tokens[None],
                position_ids=positions[None],
                attention_mask=batch.mask,
                use_cache=True,
                mars_batch=batch,
                **{self.cache_name: new},
            ).last_hidden_state
        return hidden[0], [(keys[0], values[0]) for keys, values in new.states]

    def logits(self, hidden: Tensor) -> Tensor:
        """Compute logits in at least float32: (..., hidden size) to (..., vocabulary)."""
        logits: Tensor = self.head(hidden)
        return logits.to(self.logit_dtype)

    def log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Compute the log probabilities of tokens, in nats, (n,).

        Args:
            hidden: hidden states of the tokens before them, (n, hidden size).
            targets: token ids, (n,).
        """
        parts = []
        for states, tokens in zip(torch.split(hidden, LOGIT_ROWS), torch.split(targets, LOGIT_ROWS), strict=True):
            logits = self.logits(states)
            parts.append(logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1))
        return torch.cat(parts)

    def extend(
        self, cache: KeyValueCache, texts: Sequence[Sequence[int]], rows: Sequence[int] | None = None
    ) -> list[Tensor]:
        """Run the model over texts that follow the cached tokens of their rows, and cache them.

        Args:
            cache: cache of the earlier tokens.
            texts: token ids, at least one for each text.
            rows: rows of the texts, or None for all rows in order.

        Returns:
            The hidden states of each text's tokens, (tokens, hidden size).
        """
        rows = range(len(texts)) if rows is None else rows
        hidden: list[list[Tensor]] = [[] for _ in texts]
        for chunks in _passes(texts, self.pass_tokens):
            chunk_texts = [texts[index][chunk] for index, chunk in chunks]
            states = self._extend_once(cache, chunk_texts, [rows[index] for index, _ in chunks])
            for (index, _), chunk_states in zip(chunks, states, strict=True):
                hidden[index].append(chunk_states)
        return [torch.cat(chunk_states) for chunk_states in hidden]

    def _extend_once(
        self, cache: KeyValueCache, texts: Sequence[Sequence[int]], rows: Sequence[int]
    ) -> Sequence[Tensor]:
        """Extend a cache as :meth:`extend` does, in one forward pass."""
        counts, starts = [len(text) for text in texts], [cache.lengths[row] for row in rows]
        all_rows = rows == list(range(len(cache.lengths)))  # then nothing is copied
        batch = self.packed_batch(counts, [[start] for start in starts], cache, None if all_rows else rows)
        slots = [slot for start, count in zip(starts, counts, strict=True) for slot in range(start, start + count)]
        hidden, new = self.forward(self.tensor(flat(texts)), self.tensor(slots), batch)
        cache.write(new, [row for row, count in zip(rows, counts, strict=True) for _ in range(count)], slots)
        for row, count in zip(rows, counts, strict=True):
            cache.lengths[row] += count
        return torch.split(hidden, counts)

    def prefill(self, prompts: Sequence[tuple[int, ...]], known: Prompts, room: int = 1) -> KeyValueCache:
        """Make a cache with a row for each prompt, running the model once over each new prompt.

        Args:
            prompts: token ids, perhaps empty.
            known: caches of earlier prompts. The new ones are added.
            room: free slots after the longest prompt.
        """
        cache = self.new_cache(len(prompts), max(map(len, prompts)) + room)
        cache.lengths = [0] * len(prompts)
        rows: dict[tuple[int, ...], int] = {}  # first row of each new prompt
        for row, prompt in enumerate(prompts):
            if prompt and (states := known.get(prompt)):
                cache.set_row(row, states, 0)
            elif prompt:
                rows.setdefault(prompt, row)
        if rows:
            self.extend(cache, list(rows), list(rows.values()))
        for row, prompt in enumerate(prompts):
            if rows.get(prompt, row) != row:
                cache.set_row(row, cache, rows[prompt])
        for prompt, row in rows.items():
            known.put(prompt, cache.copy_row(row), len(prompt) * self.token_bytes)
        return cache

    def packed_batch(
        self,
        counts: Sequence[int],
        past: Sequence[Sequence[int]],
        cache: KeyValueCache,
        rows: Sequence[int] | None = None,
        *,
        branches: Sequence[Sequence[int]] | None = None,
        dtype: torch.dtype | None = None,
    ) -> PackedBatch:
        """Mask packed tokens: each attends to cached tokens, to earlier tokens of the pass, and to itself.

        Args:
            counts: tokens of each row.
            past: visible cached tokens, for each row and token, or one number for all tokens of a row.
            cache: cache of the earlier tokens.
            rows: rows of the cache, or None for all in order.
            branches: branch of each row and token, which sees tokens of its branch and of branch 0, or None for a
                single branch.
            dtype: number type of the mask, or None for the model's.
        """
        longest, slots = max(counts), max(map(max, past))
        cached = torch.arange(slots, device=self.device) < self.padded_tensor(past, 0)[:, :, None]
        if branches is None:
            within = torch.ones(1, longest, longest, dtype=torch.bool, device=self.device)
        else:
            branch = self.padded_tensor(branches, -1)
            within = (branch[:, :, None] == branch[:, None]) | (branch[:, None] == 0)
        visible = [part.expand(len(counts), longest, -1) for part in (cached, within.tril())]
        hidden, dtype = ~torch.cat(visible, dim=2), dtype or self.dtype
        mask = torch.zeros(hidden.shape, dtype=dtype, device=self.device)
        mask.masked_fill_(hidden, torch.finfo(dtype).min)
        return PackedBatch(counts, mask[:, None], cache, None if rows is None else self.tensor(rows), slots)

    def tensor(self, values: Sequence[object], dtype: torch.dtype | None = None) -> Tensor:
        """Make a tensor on the model's device from (nested) lists of numbers."""
        return torch.tensor(values, dtype=dtype, device=self.device)

    def padded_tensor(self, rows: Sequence[Sequence[T]], filler: T, dtype: torch.dtype | None = None) -> Tensor:
        """Make a tensor on the model's device from lists, padded to the length of the longest."""
        longest = max(map(len, rows))
        return self.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], dtype)


def flat(lists: Sequence[Sequence[T]]) -> list[T]:
    """Join lists into one."""
    return list(chain.from_iterable(lists))


def _passes(texts: Sequence[Sequence[int]], most: int) -> Iterator[list[tuple[int, slice]]]:
    """Yield the chunks (index of a text, slice of its tokens) of each pass, of ``most`` tokens or a single one."""
    for start in range(0, max(map(len, texts)), CHUNK_TOKENS):
        chunks: list[tuple[int, slice]] = []
        room = most
        for index, text in enumerate(texts):
            count = min(len(text) - start, CHUNK_TOKENS)
            if count <= 0:
                continue
            if chunks and count > room:
                yield chunks
                chunks, room = [], most
            chunks.append((index, slice(start, start + count)))
            room -= count
        yield chunks
