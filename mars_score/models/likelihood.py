"""Compute the log probability of a text given its context by a causal language model, in nats per token.

Texts after the same prompt are packed into one row: the model runs over the prompt once, and each text attends to
the prompt and to itself. Rows of several prompts make a batch, by their number of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from mars_score.models.attention import KeyValueCache
from mars_score.models.causal_lm import CausalLanguageModel, flat
from mars_score.models.codec import TextCodec
from mars_score.models.running import BatchSize, cache_bytes, exclusive, ordinary_mode
from mars_score.rows import LogProbability

ContextAndText = tuple[str, str]
CHUNK_SIZE = 256  # Number of pairs that are computed together, and then saved.
MAX_TEXT_TOKENS = 1024  # Longer texts are cut, since they would take minutes.
# Prompts of about this many tokens always share batches, since empty slots cost less than another forward pass.
SHORT_PROMPT = 32


class TextLogProbability(NamedTuple):
    """The log probability of a text given its context."""

    mean: float  # mean over the tokens, in nats, at most 0; -inf if there are none
    truncated: bool  # whether the end of the context or of the text was left out


@dataclass(frozen=True)
class PromptedText:
    """A text after a prompt, in token ids."""

    prompt: tuple[int, ...]  # all of it, or as much as fits into the window
    prompt_length: int  # number of the prompt's tokens before the text
    tokens: tuple[int, ...]  # tokens of the text
    truncated: bool  # whether the end of the prompt or of the text is left out

    @classmethod
    def of(
        cls, codec: TextCodec, window: int, context: Sequence[int], text: str, max_context_tokens: int | None
    ) -> PromptedText:
        """Put a text after the part of its context (token ids) that fits into the window."""
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

    Both are at least the log probability of a uniform guess. Args are those of :func:`log_probabilities`.
    """
    least = -math.log(model.vocabulary)
    alone: dict[str, float] = {}
    in_order = sorted(pairs)  # Pairs of the same context stand together.
    for start in range(0, len(in_order), CHUNK_SIZE):
        chunk = in_order[start : start + CHUNK_SIZE]
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
        model: the language model; it keeps the contexts of earlier calls.
        pairs: contexts with texts; a text after a blank context follows begin-of-text alone.
        pass_tokens: most tokens of texts in a forward pass, which has at least one text; halved where memory runs
            out. None for the device's default.
        max_context_tokens: number of a context's first tokens to use; None for as many as fit the window.
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
    """Yield batches of prompts that share a cache of ``room`` tokens, the longest prompts first."""
    waiting = sorted(lengths, key=lengths.__getitem__, reverse=True)
    while waiting:
        longest = lengths[waiting[0]]
        count = max(1, room // longest)
        # Each has as many slots as the longest prompt; a far shorter prompt would leave most of them empty.
        prompts = [prompt for prompt in waiting[:count] if lengths[prompt] >= longest // 2 - SHORT_PROMPT]
        yield prompts
        waiting = waiting[len(prompts) :]


@dataclass(frozen=True)
class _Pack:
    """Texts after the same prompt in one row; they attend to the prompt, but not to each other.

    The row begins with the prompt's last token, which predicts the first token of every text. Then follows each
    text without its last token, which predicts nothing. The earlier tokens of the prompt are cached.
    """

    texts: Sequence[PromptedText]
    past: int  # number of cached tokens before the row
    tokens: list[int]  # ids of the row
    positions: list[int]  # position of each token of the row
    branches: list[int]  # for each token the number of its text, from 1; 0 for the prompt's last token
    predictors: list[int]  # for each token of each text the index in the row of the token before it

    @classmethod
    def of(cls, texts: Sequence[PromptedText]) -> _Pack:
        """Lay out the row of some texts."""
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
    """Pack texts of one prompt, each time at most ``most`` tokens or one longer text."""
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
    """Yield the packs of each forward pass, longest first: ``most`` tokens, and no more padding than tokens."""
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
    """Return each text with its mean log probability; ``prompts`` has a row for each pack."""
    texts = [text for pack in packs for text in pack.texts]
    hidden = _predicting_states(packs, model, prompts)
    values = model.log_probabilities(hidden, model.tensor(flat([text.tokens for text in texts]))).double().cpu()
    per_text = torch.split(values, [len(text.tokens) for text in texts])
    return [(text, float(log_p.mean())) for text, log_p in zip(texts, per_text, strict=True)]


def _predicting_states(packs: Sequence[_Pack], model: CausalLanguageModel, prompts: KeyValueCache) -> Tensor:
    """Return the hidden state before each token of all texts, (tokens, hidden size)."""
    lengths, past = [len(pack.tokens) for pack in packs], [[pack.past] for pack in packs]
    batch = model.packed_batch(lengths, past, prompts, branches=[pack.branches for pack in packs])
    tokens, positions = flat([pack.tokens for pack in packs]), flat([pack.positions for pack in packs])
    hidden, _ = model.forward(model.tensor(tokens), model.tensor(positions), batch)
    starts = zip(accumulate(lengths, initial=0), packs, strict=False)
    return hidden[model.tensor([start + index for start, pack in starts for index in pack.predictors])]
