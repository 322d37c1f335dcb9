"""Compute log probabilities of texts given their contexts with a causal language model, in nats per token.

The texts of a prompt are packed into one row. The model encodes the prompt once, and each text attends to the
prompt and to itself. Rows of several prompts make a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import torch

from mars_score.models.attention import KeyValueCache
from mars_score.models.causal_lm import CausalLanguageModel, flat
from mars_score.models.codec import TextCodec
from mars_score.models.running import BatchSize, cache_bytes, exclusive, ordinary_mode
from mars_score.rows import LogProbability

ContextAndText = tuple[str, str]
CHUNK_SIZE = 256  # pairs that are computed together, and then saved
MAX_TEXT_TOKENS = 1024  # longer texts are truncated, as they would take minutes
SHORT_PROMPT = 32  # tokens up to which empty slots cost less than another forward pass


class TextLogProbability(NamedTuple):
    """The log probability of a text given its context."""

    mean: float  # over the tokens, in nats, or -inf if there are none
    truncated: bool  # whether the end of the context or of the text was left out


@dataclass(frozen=True)
class PromptedText:
    """A text after a prompt, in token ids."""

    prompt: tuple[int, ...]  # as much as the model takes
    prompt_length: int  # tokens of the prompt that come before the text
    tokens: tuple[int, ...]  # of the text
    truncated: bool  # whether the end of the prompt or of the text is left out

    @classmethod
    def of(
        cls, codec: TextCodec, window: int, context: Sequence[int], text: str, max_context_tokens: int | None
    ) -> PromptedText:
        """Put a text after as much of its context (token ids) as fits into the model's window."""
        tokens = codec.encode((" " if context else "") + text.strip())
        beginning = context[:max_context_tokens]
        prompt = codec.prompt(beginning)
        context_cut = len(beginning) < len(context) or len(prompt) + len(tokens) > window
        truncated = context_cut or len(tokens) > MAX_TEXT_TOKENS
        tokens = tokens[: min(window - 1, MAX_TEXT_TOKENS)]
        prompt_length = min(len(prompt), window - len(tokens))
        return cls(tuple(prompt[: window - 1]), prompt_length, tuple(tokens), truncated)


def in_and_out_of_context(
    model: CausalLanguageModel, pairs: Iterable[ContextAndText], max_context_tokens: int | None
) -> Iterator[tuple[ContextAndText, LogProbability]]:
    """Yield each different (context, text) with the log probability of the text with the context and alone.

    Neither is lower than that of a uniform guess. Args are those of :func:`log_probabilities`.
    """
    least = -math.log(model.vocabulary)
    alone: dict[str, float] = {}
    by_context = sorted(pairs)
    for start in range(0, len(by_context), CHUNK_SIZE):
        chunk = by_context[start : start + CHUNK_SIZE]
        new_texts = dict.fromkeys(("", text) for _, text in chunk if text not in alone)
        computed = dict(log_probabilities(model, [*chunk, *new_texts], max_context_tokens=max_context_tokens))
        alone.update((pair[1], max(computed[pair].mean, least)) for pair in new_texts)
        for pair in chunk:
            in_context = computed[pair]
            yield pair, LogProbability(max(in_context.mean, least), alone[pair[1]], in_context.truncated)


def log_probabilities(
    model: CausalLanguageModel,
    pairs: Iterable[ContextAndText],
    pass_tokens: int | None = None,
    max_context_tokens: int | None = None,
) -> Iterator[tuple[ContextAndText, TextLogProbability]]:
    """Yield each different (context, text) with the mean log probability of the text given the context.

    Args:
        model: the language model. It caches the contexts of earlier calls.
        pairs: contexts with texts. A text with a blank context follows the begin-of-text token alone.
        pass_tokens: maximum tokens of texts per forward pass, which has at least one text. None for the device's
            default. It is halved when memory runs out.
        max_context_tokens: first tokens of a context to use, or None for as many as the model takes.
    """
    encode_context = cache(model.codec.encode_context)
    pairs_of: dict[PromptedText, list[ContextAndText]] = {}
    for context, text in dict.fromkeys(pairs):
        prompted = PromptedText.of(model.codec, model.window, encode_context(context), text, max_context_tokens)
        pairs_of.setdefault(prompted, []).append((context, text))
    batch, waiting = BatchSize(pass_tokens or model.pass_tokens), dict.fromkeys(pairs_of)
    while waiting:
        with batch.attempt(sum(len(prompted.tokens) for prompted in waiting)) as size:
            for prompted, mean in _run(list(waiting), model, size):
                del waiting[prompted]
                for pair in pairs_of[prompted]:
                    yield pair, TextLogProbability(mean, prompted.truncated)


def _run(
    texts: Sequence[PromptedText], model: CausalLanguageModel, pass_tokens: int
) -> Iterator[tuple[PromptedText, float]]:
    """Yield texts with their mean log probabilities, batch by batch."""
    by_prompt: dict[tuple[int, ...], list[PromptedText]] = {}
    for text in texts:
        if text.tokens:
            by_prompt.setdefault(text.prompt, []).append(text)
        else:
            yield text, -math.inf
    lengths = {prompt: max(text.prompt_length for text in same) for prompt, same in by_prompt.items()}
    room = cache_bytes(model.device) // 2 // model.token_bytes  # The other half is for the rows of a batch.
    for prompts in _prompt_batches(lengths, room):
        most = min(model.pack_tokens, pass_tokens)
        packs = [pack for prompt in prompts for pack in _packs(by_prompt[prompt], most)]
        for batch in _pack_batches(packs, pass_tokens):
            cached = [prompt[: lengths[prompt] - 1] for prompt in (pack.texts[0].prompt for pack in batch)]
            with exclusive(model.model), ordinary_mode():
                prefilled = model.prefill(cached, model.prompts, room=len(batch[0].tokens))
                means = _run_packs(batch, model, prefilled)
            yield from means


def _prompt_batches(lengths: dict[tuple[int, ...], int], room: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield batches of prompts that fit into a cache of ``room`` tokens, longest first."""
    waiting = sorted(lengths, key=lengths.__getitem__, reverse=True)
    while waiting:
        longest = lengths[waiting[0]]
        count = max(1, room // longest)
        # Each has as many slots as the longest one, so a far shorter prompt would leave most of them empty.
        prompts = [prompt for prompt in waiting[:count] if lengths[prompt] >= longest // 2 - SHORT_PROMPT]
        yield prompts
        waiting = waiting[len(prompts) :]


@dataclass(frozen=True)
class _Pack:
    """The texts of a prompt in one row. They attend to the prompt but not to each other.

    The row begins with the prompt's last token, which predicts the first token of every text. Each text follows
    without its last token, which predicts nothing. The earlier tokens of the prompt are cached.
    """

    texts: Sequence[PromptedText]
    past: int  # cached tokens before the row
    tokens: list[int]  # token ids of the row
    positions: list[int]  # position id of each token of the row
    branches: list[int]  # text of each token, counted from 1, or 0 for the prompt's last token
    predictors: list[int]  # for each token of each text, the index in the row of the token before it

    @classmethod
    def of(cls, texts: Sequence[PromptedText]) -> _Pack:
        """Lay out the row."""
        past = texts[0].prompt_length - 1
        pack = cls(texts, past, [texts[0].prompt[past]], [past], [0], [])
        for number, text in enumerate(texts, 1):
            predicting = text.tokens[:-1]
            pack.predictors.extend([0, *range(len(pack.tokens), len(pack.tokens) + len(predicting))])
            pack.tokens.extend(predicting)
            pack.positions.extend(range(past + 1, past + 1 + len(predicting)))
            pack.branches.extend([number] * len(predicting))
        return pack


def _packs(texts: Sequence[PromptedText], most: int) -> list[_Pack]:
    """Pack the texts of one prompt, at most ``most`` tokens or one longer text into each row."""
    packs: list[list[PromptedText]] = []
    room = 0
    for text in sorted(texts, key=lambda text: (text.prompt_length, len(text.tokens))):
        room -= len(text.tokens)
        if not packs or room < 0 or packs[-1][0].prompt_length != text.prompt_length:
            packs.append([])
            room = most - len(text.tokens)
        packs[-1].append(text)
    return [_Pack.of(texts) for texts in packs]


def _pack_batches(packs: Sequence[_Pack], most: int) -> Iterator[list[_Pack]]:
    """Yield the packs of each pass, longest first: at most ``most`` tokens, and no more padding than tokens."""
    batch: list[_Pack] = []
    for pack in sorted(packs, key=lambda pack: len(pack.tokens), reverse=True):
        tokens = sum(len(other.tokens) for other in [*batch, pack])
        if batch and (tokens > most or (len(batch) + 1) * len(batch[0].tokens) > 2 * tokens):
            yield batch
            batch = []
        batch.append(pack)
    if batch:
        yield batch


def _run_packs(
    packs: Sequence[_Pack], model: CausalLanguageModel, prompts: KeyValueCache
) -> list[tuple[PromptedText, float]]:
    """Return each text with its mean log probability, given a cache with a row for each pack."""
    lengths = [len(pack.tokens) for pack in packs]
    batch = model.packed_batch(
        lengths, [[pack.past] for pack in packs], prompts, branches=[pack.branches for pack in packs]
    )
    hidden, _ = model.forward(
        model.tensor(flat([pack.tokens for pack in packs])),
        model.tensor(flat([pack.positions for pack in packs])),
        batch,
    )
    starts = zip(accumulate(lengths, initial=0), packs, strict=False)
    predicting = hidden[model.tensor([start + index for start, pack in starts for index in pack.predictors])]
    texts = flat([pack.texts for pack in packs])
    values = model.log_probabilities(predicting, model.tensor(flat([text.tokens for text in texts])))
    means = [part.mean() for part in torch.split(values.double().cpu(), [len(text.tokens) for text in texts])]
    return list(zip(texts, map(float, means), strict=True))
