"""Surprisal of a text given its context: minus the language model's log probability, in nats per token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from mars_score.data.contexts import as_prose
from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.tokens import TextCodec
from mars_score.models.memory import BatchSize, cache_bytes
from mars_score.models.torch_modes import ordinary_mode

T = TypeVar("T")
MOST_TEXTS = 128  # default batch size


@dataclass(frozen=True)
class Reading:
    """A text after a prompt, in token ids.

    Attributes:
        prompt: all of it, or as much as fits into the window.
        length: how many of its tokens are read before the text.
        tokens: those of the text.
        cut: whether the end of the prompt or of the text is left out.
    """

    prompt: tuple[int, ...]
    length: int
    tokens: tuple[int, ...]
    cut: bool

    @classmethod
    def of(cls, codec: TextCodec, window: int, context: Sequence[int], text: str) -> Reading:
        """If both do not fit, the prompt is cut first; tokens as in :func:`mars_score.infilling.jobs.make_job`."""
        tokens = codec.encode((" " if context else "") + text.strip())
        prompt = [*([codec.begin] if codec.adds_begin or not context else []), *context]
        cut = len(prompt) + len(tokens) > window
        tokens = tokens[: window - 1]
        return cls(tuple(prompt[: window - 1]), min(len(prompt), window - len(tokens)), tuple(tokens), cut)

    @property
    def end(self) -> int:
        """Number of positions."""
        return self.length + len(self.tokens)


@dataclass(frozen=True)
class Surprisal:
    """Surprisal of a text given its context.

    Attributes:
        mean: over its tokens, in nats; infinite if it has none.
        cut: whether the window leaves out the end of the context or of the text.
    """

    mean: float
    cut: bool


def mean_surprisals(
    model: CausalLanguageModel, pairs: Sequence[tuple[str, str]], batch_size: int | None = None
) -> list[float]:
    """The means of :func:`surprisals`."""
    return [one.mean for one in surprisals(model, pairs, batch_size)]


def surprisals(
    model: CausalLanguageModel, pairs: Sequence[tuple[str, str]], batch_size: int | None = None
) -> list[Surprisal]:
    """The surprisal of each text given its context.

    Args:
        model: the language model.
        pairs: contexts (blank: begin-of-text only) and texts; each context is read once.
        batch_size: largest number of texts per forward pass; None: 128. Halved where memory runs out.
    """
    contexts = {
        context: model.codec.encode(as_prose(context.strip())) if context.strip() else []
        for context in dict.fromkeys(context for context, _ in pairs)
    }
    different = {
        (context, text): Reading.of(model.codec, model.window, contexts[context], text)
        for context, text in dict.fromkeys(pairs)
    }
    readings = [reading for reading in dict.fromkeys(different.values()) if reading.tokens]
    means: dict[Reading, float] = {}

    def read(size: int) -> None:
        for found in _read(model, [reading for reading in readings if reading not in means], size):
            means.update(found)

    if readings:
        with model.exclusive(), ordinary_mode():
            BatchSize(batch_size or MOST_TEXTS).run(read, len(readings))
    return [Surprisal(means.get(different[pair], math.inf), different[pair].cut) for pair in pairs]


def _read(
    model: CausalLanguageModel, readings: Sequence[Reading], batch_size: int
) -> Iterator[dict[Reading, float]]:
    """Mean surprisals, batch by batch."""
    lengths: dict[tuple[int, ...], int] = {}
    for reading in readings:
        lengths[reading.prompt] = max(lengths.get(reading.prompt, 0), reading.length)
    for prompts in _fitting(model, list(lengths), lengths.__getitem__, batch_size):
        cache, hidden = model.read([prompt[: lengths[prompt]] for prompt in prompts], capacity=lengths[prompts[0]])
        rows = {prompt: row for row, prompt in enumerate(prompts)}
        of_prompts = [reading for reading in readings if reading.prompt in rows]
        for batch in _fitting(model, of_prompts, lambda reading: reading.end, batch_size):
            before = [hidden[rows[reading.prompt]][reading.length - 1] for reading in batch]
            found = _read_batch(model, batch, cache, [rows[reading.prompt] for reading in batch], before)
            yield dict(zip(batch, found, strict=True))


def _fitting(
    model: CausalLanguageModel, items: Sequence[T], length: Callable[[T], int], batch_size: int
) -> Iterator[list[T]]:
    """Batches of similar length, the longest first, whose cached tokens take half of the memory for caches."""
    room = cache_bytes(model.device) // 2 // model.token_bytes
    waiting = sorted(items, key=length, reverse=True)
    while waiting:
        count = max(1, min(batch_size, room // length(waiting[0])))
        yield waiting[:count]
        waiting = waiting[count:]


def _read_batch(
    model: CausalLanguageModel,
    readings: Sequence[Reading],
    prompts: KeyValueCache,
    rows: Sequence[int],
    before: Sequence[torch.Tensor],
) -> list[float]:
    """Mean surprisal of each text after its prompt.

    Args:
        model: the language model.
        readings: texts and prompts.
        prompts: a cache of the prompts.
        rows: the row of each reading's prompt.
        before: hidden state of the last token of each reading's prompt, (hidden size,).
    """
    cache = model.new_cache(len(readings), max(reading.end for reading in readings))
    for reading, row in zip(readings, rows, strict=True):
        cache.add(prompts, row, reading.length)
    _, hidden = model.read([reading.tokens for reading in readings], cache)
    seen = [torch.cat([first[None], states[:-1]]) for first, states in zip(before, hidden, strict=True)]
    targets = model.tensor([token for reading in readings for token in reading.tokens])
    surprise = model.surprisal(torch.cat(seen), targets).double().cpu()
    return [float(one.mean()) for one in torch.split(surprise, [len(reading.tokens) for reading in readings])]
