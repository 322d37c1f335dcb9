"""Keys and values of prompts, so that a prompt that comes again is not read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

from mars_score.models.engine.cache import KeyValueCache

PROMPT_BYTES = 2**29  # about 11,000 tokens of preset mini's language model


class _Model(Protocol):
    """What is needed of :class:`mars_score.models.engine.language_model.CausalLanguageModel`."""

    @property
    def token_bytes(self) -> int: ...

    def new_cache(self, rows: int, slots: int) -> KeyValueCache: ...

    def read(self, prompts: Sequence[tuple[int, ...]], cache: KeyValueCache, rows: Sequence[int]) -> Any: ...


class PromptMemory:
    """Keys and values of the prompts that were used last, of one model.

    Args:
        most_bytes: how much memory they may take.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._read_before: OrderedDict[tuple[int, ...], KeyValueCache] = OrderedDict()  # the last used last
        self._bytes = 0

    def read(self, model: _Model, prompts: Sequence[tuple[int, ...]]) -> KeyValueCache:
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

    def _add(self, model: _Model, prompt: tuple[int, ...], cache: KeyValueCache, row: int) -> None:
        if prompt in self._read_before or len(prompt) * model.token_bytes > self._most_bytes:
            return
        self._read_before[prompt] = model.new_cache(1, len(prompt))
        self._read_before[prompt].add(cache, row)
        self._bytes += len(prompt) * model.token_bytes
        while self._bytes > self._most_bytes:
            oldest, _ = self._read_before.popitem(last=False)
            self._bytes -= len(oldest) * model.token_bytes
