"""How surprising a language model finds a text behind its context: minus log probability, in nats a token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.tokens import TextCodec
from mars_score.models.memory import cache_bytes
from mars_score.models.torch_modes import ordinary_mode

T = TypeVar("T")
_MOST_ROWS = 128


@dataclass(frozen=True)
class Reading:
    """Tokens behind a prompt.

    Attributes:
        prompt: the whole of it, or as much as the window takes.
        length: how many of its tokens are read before the text.
        tokens: the text's.
        cut: whether the end of the prompt, or of the text, is left out.
    """

    prompt: tuple[int, ...]
    length: int
    tokens: tuple[int, ...]
    cut: bool

    @classmethod
    def of(cls, codec: TextCodec, window: int, context: Sequence[int], text: str) -> Reading:
        """The text comes first where both do not fit; tokens as in :func:`mars_score.infilling.jobs.make_job`."""
        tokens = codec.encode((" " if context else "") + text.strip())
        prompt = [*([codec.begin] if codec.adds_begin or not context else []), *context]
        cut = len(prompt) + len(tokens) > window
        tokens = tokens[: window - 1]
        return cls(tuple(prompt[: window - 1]), min(len(prompt), window - len(tokens)), tuple(tokens), cut)

    @property
    def end(self) -> int:
        """Positions that it takes."""
        return self.length + len(self.tokens)


@dataclass(frozen=True)
class Surprisal:
    """Of a text behind its context.

    Attributes:
        mean: of its tokens, in nats; infinite if it has none.
        cut: whether the window leaves out the end of the context, or of the text.
    """

    mean: float
    cut: bool


def mean_surprisals(
    model: CausalLanguageModel, pairs: Sequence[tuple[str, str]], most_rows: int | None = None
) -> list[float]:
    """The means of :func:`surprisals`."""
    return [one.mean for one in surprisals(model, pairs, most_rows)]


def surprisals(
    model: CausalLanguageModel, pairs: Sequence[tuple[str, str]], most_rows: int | None = None
) -> list[Surprisal]:
    """The surprisal of each text behind its context.

    Args:
        model: the language model.
        pairs: contexts (blank: begin-of-text alone) and texts; each context is read once.
        most_rows: texts a forward pass, at most; None: 128.
    """
    most_rows = most_rows or _MOST_ROWS
    contexts = {
        context: model.codec.encode(context.strip()) if context.strip() else []
        for context in dict.fromkeys(context for context, _ in pairs)
    }
    different = {
        (context, text): Reading.of(model.codec, model.window, contexts[context], text)
        for context, text in dict.fromkeys(pairs)
    }
    readings = [reading for reading in dict.fromkeys(different.values()) if reading.tokens]
    lengths: dict[tuple[int, ...], int] = {}
    for reading in readings:
        lengths[reading.prompt] = max(lengths.get(reading.prompt, 0), reading.length)
    means: dict[Reading, float] = {}
    with ordinary_mode():
        for prompts in _fitting(model, list(lengths), lengths.__getitem__, most_rows):
            cache, hidden = model.read(
                [prompt[: lengths[prompt]] for prompt in prompts], capacity=lengths[prompts[0]]
            )
            rows = {prompt: row for row, prompt in enumerate(prompts)}
            behind = [reading for reading in readings if reading.prompt in rows]
            for part in _fitting(model, behind, lambda reading: reading.end, most_rows):
                before = [hidden[rows[reading.prompt]][reading.length - 1] for reading in part]
                found = _read(model, part, cache, [rows[reading.prompt] for reading in part], before)
                means |= dict(zip(part, found, strict=True))
    return [Surprisal(means.get(different[pair], math.inf), different[pair].cut) for pair in pairs]


def _fitting(
    model: CausalLanguageModel, items: Sequence[T], length: Callable[[T], int], most_rows: int
) -> Iterator[list[T]]:
    """Items of similar length, the longest first, whose cached tokens fill half of the memory for caches."""
    room = cache_bytes(model.device) // 2 // model.token_bytes
    waiting = sorted(items, key=length, reverse=True)
    while waiting:
        count = max(1, min(most_rows, room // length(waiting[0])))
        yield waiting[:count]
        waiting = waiting[count:]


def _read(
    model: CausalLanguageModel,
    readings: Sequence[Reading],
    prompts: KeyValueCache,
    rows: Sequence[int],
    before: Sequence[torch.Tensor],
) -> list[float]:
    """Mean surprisal of each text behind its prompt, which is one of ``rows`` of a cache.

    ``before`` are the hidden states of the prompts' last tokens, (hidden size,) each.
    """
    cache = model.new_cache(len(readings), max(reading.end for reading in readings))
    for reading, row in zip(readings, rows, strict=True):
        cache.add(prompts, row, reading.length)
    _, hidden = model.read([reading.tokens for reading in readings], cache)
    seen = [torch.cat([first[None], states[:-1]]) for first, states in zip(before, hidden, strict=True)]
    targets = model.tensor([token for reading in readings for token in reading.tokens])
    surprise = model.surprisal(torch.cat(seen), targets).double().cpu()
    return [float(one.mean()) for one in torch.split(surprise, [len(reading.tokens) for reading in readings])]
