"""Surprisal of a text given its context: minus the language model's log probability, in nats per token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.codec import TextCodec
from mars_score.models.kv_cache import KeyValueCache
from mars_score.models.running import BatchSize, cache_bytes, ordinary_mode

MOST_TEXTS = 128  # default batch size
TEXT_TOKENS = 1024  # of a text that are read; far more are no candidate, and would take minutes
SHORT = 32  # tokens; prompts as short as that are read with all other short ones
MASK_ENTRIES = 2**23  # attention mask entries of a forward pass over several such rows


@dataclass(frozen=True)
class Reading:
    """A text after a prompt, in token ids."""

    prompt: tuple[int, ...]  # all of it, or as much as fits into the window
    length: int  # how many of its tokens are read before the text
    tokens: tuple[int, ...]  # those of the text
    cut: bool  # whether the end of the prompt or of the text is left out

    @classmethod
    def of(cls, codec: TextCodec, window: int, context: Sequence[int], text: str, most: int | None) -> Reading:
        """At most ``most`` tokens of the context's beginning, fewer where they do not fit."""
        tokens = codec.encode((" " if context else "") + text.strip())
        beginning = context[:most]
        prompt = codec.prompt(beginning)
        cut = len(beginning) < len(context) or len(prompt) + len(tokens) > window or len(tokens) > TEXT_TOKENS
        tokens = tokens[: min(window - 1, TEXT_TOKENS)]
        return cls(tuple(prompt[: window - 1]), min(len(prompt), window - len(tokens)), tuple(tokens), cut)


@dataclass(frozen=True)
class Surprisal:
    """Surprisal of a text given its context."""

    mean: float  # over its tokens, in nats; infinite if it has none
    cut: bool  # whether the end of the context or of the text is left out


def surprisals(
    model: CausalLanguageModel,
    pairs: Sequence[tuple[str, str]],
    batch_size: int | None = None,
    max_context_tokens: int | None = None,
) -> list[Surprisal]:
    """The surprisal of each text given its context (blank: begin-of-text only), each of which is read once.

    The model remembers contexts from call to call; ``max_context_tokens`` of the beginning of each are read.
    """
    contexts = {context: model.codec.encode_context(context) for context in {context for context, _ in pairs}}
    different = {
        (context, text): Reading.of(model.codec, model.window, contexts[context], text, max_context_tokens)
        for context, text in dict.fromkeys(pairs)
    }
    readings = [reading for reading in dict.fromkeys(different.values()) if reading.tokens]
    means: dict[Reading, float] = {}

    def read(size: int) -> None:
        for of_batch in _read(model, [reading for reading in readings if reading not in means], size):
            means.update(of_batch)

    if readings:
        with model.exclusive(), ordinary_mode():
            BatchSize(batch_size or MOST_TEXTS).run(read, len(readings))
    return [Surprisal(means.get(different[pair], math.inf), different[pair].cut) for pair in pairs]


def _read(
    model: CausalLanguageModel, readings: Sequence[Reading], batch_size: int
) -> Iterator[dict[Reading, float]]:
    """Mean surprisals, batch by batch; a prompt's last token is read with its texts: it predicts their first."""
    lengths: dict[tuple[int, ...], int] = {}
    for reading in readings:
        lengths[reading.prompt] = max(lengths.get(reading.prompt, 0), reading.length)
    room = cache_bytes(model.device) // 2 // model.token_bytes  # the other half is for copies of the attention
    waiting = sorted(lengths, key=lengths.__getitem__, reverse=True)
    while waiting:
        longest = lengths[waiting[0]]
        count = max(1, min(batch_size, room // longest))
        # Slots are as many as the longest prompt's: far shorter ones would leave most of theirs empty.
        prompts = [prompt for prompt in waiting[:count] if lengths[prompt] >= longest // 2 - SHORT]
        waiting = waiting[len(prompts) :]
        cache = model.prompts.read(model, [prompt[: lengths[prompt] - 1] for prompt in prompts])
        rows = {prompt: row for row, prompt in enumerate(prompts)}
        packs = _packs([reading for reading in readings if reading.prompt in rows], batch_size, model.pack_tokens)
        for batch in _batches(packs, batch_size):
            yield _read_packs(model, batch, cache, [rows[pack[0].prompt] for pack in batch])


def _packs(readings: Sequence[Reading], most: int, most_tokens: int) -> list[list[Reading]]:
    """Texts of one prompt: at most ``most`` of ``most_tokens`` together, or one longer; longest packs first."""
    packs: list[list[Reading]] = []
    room = 0
    for reading in sorted(readings, key=lambda reading: (reading.prompt, reading.length, len(reading.tokens))):
        room -= len(reading.tokens)
        same = packs and (packs[-1][0].prompt, packs[-1][0].length) == (reading.prompt, reading.length)
        if room < 0 or len(packs[-1]) == most or not same:
            packs.append([])
            room = most_tokens - len(reading.tokens)
        packs[-1].append(reading)
    return sorted(packs, key=_tokens, reverse=True)


def _tokens(pack: Sequence[Reading]) -> int:
    """Number of tokens that are read: the prompt's last, and of each text all but the last."""
    return 1 + sum(len(reading.tokens) - 1 for reading in pack)


def _batches(packs: Sequence[list[Reading]], most: int) -> Iterator[list[list[Reading]]]:
    """Packs that are read together: at most ``most`` texts, and no more padding than tokens."""
    batch: list[list[Reading]] = []
    for pack in packs:
        longest, slots = _tokens((batch or [pack])[0]), max(texts[0].length for texts in (*batch, pack))
        fed = (len(batch) + 1) * longest
        full = sum(map(len, batch)) + len(pack) > most or fed * (slots + longest) > MASK_ENTRIES
        if batch and (full or fed > 2 * sum(map(_tokens, (*batch, pack)))):
            yield batch
            batch = []
        batch.append(pack)
    if batch:
        yield batch


def _read_packs(
    model: CausalLanguageModel, packs: Sequence[Sequence[Reading]], prompts: KeyValueCache, rows: Sequence[int]
) -> dict[Reading, float]:
    """Mean surprisal of each text; those of a pack see its prompt, in its row of the cache, not each other."""
    counts = [_tokens(pack) for pack in packs]
    before = [pack[0].length - 1 for pack in packs]
    # Branch 0 is the prompt's last token, which all see.
    branches = [
        [0, *(number for number, reading in enumerate(pack, 1) for _ in reading.tokens[1:])] for pack in packs
    ]
    feed = model.feed(counts, [[length] for length in before], prompts, rows, branches=branches)
    tokens, positions = list[int](), list[int]()
    for pack, length in zip(packs, before, strict=True):
        tokens.append(pack[0].prompt[length])
        positions.append(length)
        for reading in pack:
            tokens += reading.tokens[:-1]
            positions += range(length + 1, length + len(reading.tokens))
    hidden, _ = model.forward(model.tensor(tokens), model.tensor(positions), feed)
    readings = [reading for pack in packs for reading in pack]
    predicting = []  # for each text the states before its tokens: that of the prompt's last token, then its own
    for pack, states in zip(packs, torch.split(hidden, counts), strict=True):
        of_texts = torch.split(states[1:], [len(reading.tokens) - 1 for reading in pack])
        predicting += [part for of_text in of_texts for part in (states[:1], of_text)]
    targets = model.tensor([token for reading in readings for token in reading.tokens])
    surprise = model.surprisal(torch.cat(predicting), targets).double().cpu()
    of_readings = torch.split(surprise, [len(reading.tokens) for reading in readings])
    return {reading: float(of_tokens.mean()) for reading, of_tokens in zip(readings, of_readings, strict=True)}
