"""Judging how many of the generated tokens to keep (Algorithm 2): all prefix lengths in one forward pass.

The next text block stands n times side by side in one sequence, once behind each prefix of the n generated
tokens; the attention mask and the position ids make each copy see just its own prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mars_score.infilling.cache import KeyValueCache, LayerStates
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.row import Row


def judge(model: CausalLanguageModel, rows: Sequence[Row], cache: KeyValueCache) -> None:
    """Choose how many tokens of each draft to keep, and cache them with the next text block.

    Args:
        model: the language model.
        rows: with a draft each, and a text block after the blank.
        cache: the written tokens and all generated ones but the last; afterwards all written tokens but the
            last, the chosen prefixes and the text blocks being written.
    """
    drafted = torch.tensor([len(row.draft) for row in rows], device=model.device)
    hidden, states = _forward(model, rows, cache, drafted)
    surprise = _block_surprise(model, rows, hidden)
    written = cache.lengths - (drafted - 1)
    places, in_cache = [], []
    for row, of_block in zip(rows, surprise, strict=True):
        block, n = len(row.blank.after), len(row.draft)
        kept = row.keep(of_block)
        copy = range(1 + (kept - 1) * block, 1 + kept * block)
        places.append([0, *copy] if kept == n else [*copy])
        in_cache.append(min(kept, n - 1))
    cache.lengths[:] = written + torch.tensor(in_cache, device=model.device)
    take, counts = model.pad(places)
    cache.append([(_pick(keys, take), _pick(values, take)) for keys, values in states], counts)
    cache.lengths -= 1  # the last written token is pending: it is fed again


def layout_size(row: Row) -> int:
    """Tokens that judging a row's draft takes."""
    return 1 + len(row.draft) * len(row.blank.after)


def _pick(states: Tensor, places: Tensor) -> Tensor:
    """Of states (rows, heads, tokens, size) the tokens at ``places`` (rows, picked)."""
    index = places[:, None, :, None].expand(-1, states.shape[1], -1, states.shape[3])
    return states.gather(2, index)


def _forward(
    model: CausalLanguageModel, rows: Sequence[Row], cache: KeyValueCache, drafted: Tensor
) -> tuple[Tensor, LayerStates]:
    """Feed each row's last generated token, then a copy of its text block for each prefix length.

    Returns:
        Hidden states (rows, size, hidden size) and new keys and values in this order.
    """
    blocks = [row.blank.after for row in rows]
    lengths = [range(1, len(row.draft) + 1) for row in rows]
    work = list(zip(rows, blocks, lengths, strict=True))
    tokens, _ = model.pad([[row.draft[-1], *(list(block) * len(row.draft))] for row, block, _ in work])
    # Of each token: the prefix length m that its copy belongs to (0: the last generated token, and padding),
    # and its place in the copy.
    copy, _ = model.pad([[0, *(m for m in of_row for _ in block)] for _, block, of_row in work])
    place, _ = model.pad([[0, *(i for _ in of_row for i in range(len(block)))] for _, block, of_row in work])
    drafted = drafted[:, None]
    written = cache.lengths[:, None] - (drafted - 1)
    is_copy = copy > 0
    # Copy m sees the written tokens and the first m generated ones, of which the n-th is not cached.
    reach = torch.where(is_copy, written + copy.minimum(drafted - 1), cache.lengths[:, None])
    past = torch.arange(cache.slots, device=model.device) < reach[:, :, None]
    within = (copy[:, :, None] == copy[:, None, :]) & (place[:, None, :] <= place[:, :, None])
    within &= is_copy[:, None, :]
    within[:, :, 0] |= copy == drafted
    within |= torch.eye(copy.shape[1], dtype=torch.bool, device=model.device)
    positions = torch.where(is_copy, written + copy + place, cache.lengths[:, None])
    return model.forward(tokens, positions, torch.cat([past, within], dim=2), cache.past)


def _block_surprise(model: CausalLanguageModel, rows: Sequence[Row], hidden: Tensor) -> list[list[float]]:
    """Total surprisal of each row's next text block behind each prefix length."""
    vectors, targets = [hidden[:, 0]], [row.blank.after[0] for row in rows]
    for index, row in enumerate(rows):
        n, block = len(row.draft), row.blank.after
        copies = hidden[index, 1 : layout_size(row)].reshape(n, len(block), -1)
        vectors.append(copies[:, :-1].flatten(0, 1))
        targets += block[1:] * n
    surprise = model.surprisal(torch.cat(vectors), torch.tensor(targets, device=model.device)).double()
    firsts, rest = surprise[: len(rows)].tolist(), surprise[len(rows) :]
    totals = []
    for row, first in zip(rows, firsts, strict=True):
        n, others = len(row.draft), len(row.blank.after) - 1
        of_others = rest[: n * others].reshape(n, others).sum(1).tolist()
        rest = rest[n * others :]
        totals.append([a + b for a, b in zip([*row.next_surprise, first], of_others, strict=True)])
    return totals
