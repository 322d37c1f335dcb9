"""A causal language model with an explicit cache, positions and attention mask."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from mars_score.errors import UnsupportedModelError
from mars_score.models.attention import Feed, NewStates, mars_attention
from mars_score.models.codec import TextCodec, padded
from mars_score.models.kv_cache import KeyValueCache, LayerStates
from mars_score.models.running import exclusive, ordinary_mode, position_limit

CHUNK = 512  # most tokens of a row per forward pass of read(); bounds the attention mask
PASS_TOKENS = 4096  # most tokens of all rows per forward pass of read(); bounds the activations
PROMPT_BYTES = 2**29  # about 11,000 tokens of preset mini's language model
VOCABULARY_ROWS = 128  # most hidden states turned into logits at once; bounds their memory


class CausalLanguageModel:
    """A transformers model with a full-attention cache and explicit position ids, for one thread at a time.

    Raises:
        UnsupportedModelError: the model's cache, positions or attention cannot be set (sliding windows,
            ALiBi, recurrent layers, ...); the message says which.
    """

    pack_tokens = 128  # of texts that are read as one row, after the prompt that they share

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.codec = TextCodec(tokenizer)
        self.head = model.get_output_embeddings()
        self.dtype: torch.dtype = model.dtype
        self.device: torch.device = model.device
        self.vocabulary: int = self.head.weight.shape[0]
        # The number type of logits, perplexities and perturbations.
        self.precise = torch.promote_types(self.dtype, torch.float32)
        positions = position_limit(model)
        if positions is None:
            raise UnsupportedModelError(
                f"the configuration of {type(model).__name__} has no max_position_embeddings"
            )
        self.window = positions
        self.prompts = PromptMemory(PROMPT_BYTES)
        try:
            with self.exclusive(), ordinary_mode():
                self._check()
        except (UnsupportedModelError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # models of other architectures fail in many ways
            raise UnsupportedModelError(
                f"{type(model).__name__} does not work with an explicit cache and attention mask ({error}); "
                "choose a GPT-2 or Llama style language_model"
            ) from error

    def exclusive(self) -> AbstractContextManager[None]:
        """The model for this thread alone; see :func:`mars_score.models.running.exclusive`."""
        return exclusive(self.model)

    def _check(self) -> None:
        """Compare logits with an explicit cache and masks with those of a plain forward pass."""
        name = type(self.model).__name__
        parameters = inspect.signature(self.model.base_model.forward).parameters
        # The name that transformers has from 5.24 on, or the one before.
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
        tokens = [token % self.vocabulary for token in range(6)]
        inputs = torch.tensor([tokens], device=self.device)
        plain = self.model(input_ids=inputs, use_cache=False).logits[0, -1]
        feed = Feed([6], torch.ones(1, 1, 6, 6, dtype=self.dtype, device=self.device).tril().log())
        _, self._states = self.forward(inputs[0], torch.arange(6, device=self.device), feed)
        cache = self.new_cache(rows=2, capacity=6)
        cache.lengths = [0, 0]
        self.read([tokens[:2], tokens[:4]], cache)
        hidden = self.read([tokens[2:], tokens[4:]], cache)
        ours = self.logits(torch.stack([row[-1] for row in hidden]))
        tolerance = 1e-2 if self.dtype in (torch.float16, torch.bfloat16) else 1e-4
        scale = plain.abs().max().clamp(min=1e-6)
        if not ((ours - plain).abs() / scale < 5 * tolerance).all():
            raise UnsupportedModelError(
                f"{name} gives different logits with an explicit cache and attention mask than in a plain forward "
                "pass; choose a GPT-2 or Llama style language_model"
            )

    @property
    def layers(self) -> int:
        """Number of layers with keys and values."""
        return len(self._states)

    @property
    def token_bytes(self) -> int:
        """Memory of the cached keys and values of one token, in bytes."""
        return sum(state.shape[0] * state.shape[2] * state.itemsize for layer in self._states for state in layer)

    def new_cache(self, rows: int, capacity: int) -> KeyValueCache:
        """A cache for at most ``rows`` rows of ``capacity`` tokens, none of them in use."""
        return KeyValueCache(self._states, rows, capacity)

    def forward(self, tokens: Tensor, positions: Tensor, feed: Feed) -> tuple[Tensor, LayerStates]:
        """Feed tokens (tokens,) at positions (tokens,), row after row, which attend as the feed says.

        Returns hidden states of the last layer, (tokens, hidden size), and per layer the new keys and values,
        (heads, tokens, head size).
        """
        new = NewStates()
        with self.exclusive(), mars_attention(self.model.config):
            hidden: Tensor = self.model.base_model(
                input_ids=tokens[None],
                position_ids=positions[None],
                attention_mask=feed.mask,
                use_cache=True,
                mars_feed=feed,
                **{self.cache_name: new},
            ).last_hidden_state
        return hidden[0], [(keys[0], values[0]) for keys, values in new.states]

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., hidden size) to (..., vocabulary), in float32 or better."""
        logits: Tensor = self.head(hidden)
        return logits.to(self.precise)

    def surprisal(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """-log p(target) in nats; hidden (n, hidden size), targets (n,) -> (n,)."""
        parts = zip(*(torch.split(rows, VOCABULARY_ROWS) for rows in (hidden, targets)), strict=True)
        return torch.cat([self._surprisal(*part) for part in parts])

    def _surprisal(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """As :meth:`surprisal`, of few rows."""
        logits = self.logits(hidden)
        return logits.logsumexp(-1) - logits.gather(-1, targets[:, None])[:, 0]

    def read(
        self, texts: Sequence[Sequence[int]], cache: KeyValueCache, rows: Sequence[int] | None = None
    ) -> list[Tensor]:
        """Feed texts (token ids, at least one each) after the cached tokens of their rows, and cache them.

        Without ``rows`` the texts are those of all rows in order. Returns for each text the hidden states of its
        tokens, (tokens, hidden size).
        """
        rows = range(len(texts)) if rows is None else rows
        hidden: list[list[Tensor]] = [[] for _ in texts]
        for part in _passes(texts):
            of_part = [rows[index] for index, _, _ in part]
            counts = [stop - start for _, start, stop in part]
            before = [cache.lengths[row] for row in of_part]
            all_rows = of_part == list(range(len(cache.lengths)))  # then nothing need be copied
            feed = self.feed(counts, [[length] for length in before], cache, None if all_rows else of_part)
            fed = [
                (row, slot, token)
                for (index, start, stop), row, length in zip(part, of_part, before, strict=True)
                for slot, token in enumerate(texts[index][start:stop], length)
            ]
            of_tokens, slots, tokens = zip(*fed, strict=True)
            states, new = self.forward(self.tensor(tokens), self.tensor(slots), feed)
            cache.write(new, of_tokens, slots)
            for (index, _, _), row, of_text in zip(part, of_part, torch.split(states, counts), strict=True):
                cache.lengths[row] += len(of_text)
                hidden[index].append(of_text)
        return [torch.cat(parts) for parts in hidden]

    def feed(
        self,
        counts: Sequence[int],
        reach: Sequence[Sequence[int]],
        cache: KeyValueCache,
        rows: Sequence[int] | None = None,
        *,
        branches: Sequence[Sequence[int]] | None = None,
        precision: torch.dtype | None = None,
    ) -> Feed:
        """What tokens attend to: themselves, cached tokens, and tokens before them in the same pass.

        Args:
            counts: number of tokens of each row.
            reach: for each row and token, or once for all tokens of a row, how many cached tokens are seen.
            cache: of the earlier tokens.
            rows: of the cache; None: all, in order.
            branches: for each row and token a number: tokens of the same branch, and those of branch 0, are seen.
                None: there is one branch.
            precision: number type of the mask; None: the model's.
        """
        longest, slots = max(counts), max(map(max, reach))
        past = torch.arange(slots, device=self.device) < self.tensor(padded(reach, 0))[:, :, None]
        if branches is None:
            within = torch.ones(1, longest, longest, dtype=torch.bool, device=self.device)
        else:
            branch = self.tensor(padded(branches, -1))
            within = (branch[:, :, None] == branch[:, None]) | (branch[:, None] == 0)
        visible = [part.expand(len(counts), longest, -1) for part in (past, within.tril())]
        chosen = None if rows is None else self.tensor(rows)
        return Feed(counts, self.mask(torch.cat(visible, dim=2), precision), cache, chosen, slots)

    def tensor(self, values: Any) -> Tensor:
        """Numbers in (nested) lists of equal lengths as a tensor on the model's device."""
        return torch.tensor(values, device=self.device)

    def mask(self, visible: Tensor, precision: torch.dtype | None = None) -> Tensor:
        """What each token attends to (bool) as an additive mask, (rows, 1, tokens, slots + tokens)."""
        precision = precision or self.dtype
        mask = torch.zeros(visible.shape, dtype=precision, device=self.device)
        return mask.masked_fill_(~visible, torch.finfo(precision).min)[:, None]


def _passes(texts: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, int, int]]]:
    """The parts of texts (text, start, stop) of each forward pass."""
    for start in range(0, max(map(len, texts)), CHUNK):
        part: list[tuple[int, int, int]] = []
        room = PASS_TOKENS
        for index, text in enumerate(texts):
            count = min(len(text) - start, CHUNK)
            if count <= 0:
                continue
            if part and count > room:
                yield part
                part, room = [], PASS_TOKENS
            part.append((index, start, start + count))
            room -= count
        if part:
            yield part


class PromptMemory:
    """Keys and values of the prompts that were used last, at most ``most_bytes`` of them, of one model."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._read_before: OrderedDict[tuple[int, ...], KeyValueCache] = OrderedDict()  # the last used last
        self._bytes = 0

    def read(self, model: CausalLanguageModel, prompts: Sequence[tuple[int, ...]]) -> KeyValueCache:
        """A cache with one row for each prompt (token ids; may be empty); unknown prompts are read."""
        cache = model.new_cache(len(prompts), max(1, *map(len, prompts)))
        new = []
        for row, prompt in enumerate(prompts):
            if prompt in self._read_before:
                self._read_before.move_to_end(prompt)
                cache.add(self._read_before[prompt], 0)
            else:
                cache.lengths.append(0)
                if prompt:
                    new.append(row)
        if new:
            model.read([prompts[row] for row in new], cache, new)
        for row in new:
            self._add(model, prompts[row], cache, row)
        return cache

    def _add(self, model: CausalLanguageModel, prompt: tuple[int, ...], cache: KeyValueCache, row: int) -> None:
        if prompt in self._read_before or len(prompt) * model.token_bytes > self._most_bytes:
            return
        self._read_before[prompt] = cache.copy(row)
        self._bytes += len(prompt) * model.token_bytes
        while self._bytes > self._most_bytes:
            oldest, _ = self._read_before.popitem(last=False)
            self._bytes -= len(oldest) * model.token_bytes
