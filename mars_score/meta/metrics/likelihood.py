"""Perplexity of candidates under the preset's language model, without and with the context before them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch

from mars_score.fingerprints import fingerprint, is_here
from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.tokens import TextCodec
from mars_score.memory import cache_bytes
from mars_score.meta.metrics.base import Family, Metric
from mars_score.rows import Row
from mars_score.torch_modes import ordinary_mode

T = TypeVar("T")
_METHOD = 1  # to be raised when scores change
_MOST_ROWS = 128  # texts a forward pass unless told


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens behind begin-of-text: -exp(mean surprisal).

    It is at least minus the size of the vocabulary, the perplexity of a uniform guess.
    """

    title = "-perplexity"
    family: Family = "likelihood"
    note = (
        "under the preset's language model behind begin-of-text alone, without the context; at least minus the "
        "size of the vocabulary"
    )
    with_context: ClassVar[bool] = False

    def key(self) -> Sequence[Any]:
        """See the base class."""
        models = self.models.settings.models
        if not is_here(models.language_model):  # its revision is known once it has been fetched
            self.models.language_model()
        return [self.title, fingerprint(models.language_model), models.dtype, _METHOD]

    @cached_property
    def _model(self) -> CausalLanguageModel:
        return CausalLanguageModel(*self.models.language_model())

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """A uniform guess."""
        return -float(self._model.vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        pairs = [(context if self.with_context else "", candidate) for candidate, _, context in rows]
        means = mean_surprisals(self._model, pairs, self.models.batch_size or _MOST_ROWS)
        most = math.log(self._model.vocabulary)
        return [self.minimum if mean >= most else -math.exp(mean) for mean in means]


class ContextPerplexity(Perplexity):
    """As :class:`Perplexity`, behind the context and a space; the context is cut from its end."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model behind the context and a space; the context is cut from its end to "
        "what the window leaves; at least minus the size of the vocabulary"
    )
    with_context: ClassVar[bool] = True


@dataclass(frozen=True)
class _Reading:
    """Tokens behind a prompt.

    Attributes:
        prompt: the whole of it, or as much as the window takes.
        length: how many of its tokens are read before the text.
        tokens: the text's.
    """

    prompt: tuple[int, ...]
    length: int
    tokens: tuple[int, ...]

    @classmethod
    def of(cls, codec: TextCodec, window: int, context: str, text: str) -> _Reading:
        """The text comes first where both do not fit; tokens as in :func:`mars_score.infilling.jobs.make_job`."""
        before = codec.encode(context.strip()) if context.strip() else []
        tokens = codec.encode((" " if before else "") + text.strip())[: window - 1]
        prompt = ([codec.begin] if codec.adds_begin or not before else []) + before
        return cls(tuple(prompt[: window - 1]), min(len(prompt), window - len(tokens)), tuple(tokens))

    @property
    def end(self) -> int:
        """Positions that it takes."""
        return self.length + len(self.tokens)


def mean_surprisals(model: CausalLanguageModel, pairs: Sequence[tuple[str, str]], most_rows: int) -> list[float]:
    """Mean surprisal in nats of each text's tokens behind its context; infinite if it has none.

    Args:
        model: the language model.
        pairs: contexts (blank: begin-of-text alone) and texts; each context is read once.
        most_rows: texts a forward pass, at most.
    """
    different = {pair: _Reading.of(model.codec, model.window, *pair) for pair in dict.fromkeys(pairs)}
    readings = [reading for reading in dict.fromkeys(different.values()) if reading.tokens]
    lengths: dict[tuple[int, ...], int] = {}
    for reading in readings:
        lengths[reading.prompt] = max(lengths.get(reading.prompt, 0), reading.length)
    means: dict[_Reading, float] = {}
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
    return [means.get(different[pair], math.inf) for pair in pairs]


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
    readings: Sequence[_Reading],
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
