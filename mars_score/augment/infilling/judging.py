"""Judging how many of the generated tokens to keep (Algorithm 2): all prefix lengths in one forward pass.

One sequence holds n copies of the next text block, one after each prefix of the n generated tokens; the
attention mask and the position ids let each copy see its own prefix only. The block's last token is not fed:
nothing is predicted from it yet, and it is fed when the next blank begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from mars_score.augment.infilling.job_state import JobState
from mars_score.models.engine.attention import Feed
from mars_score.models.engine.batch import Batch
from mars_score.models.engine.language_model import CausalLanguageModel


def judge(model: CausalLanguageModel, batch: Batch[JobState], indices: Sequence[int]) -> None:
    """Choose how many tokens of drafts to keep, and cache them with the text block that follows.

    Args:
        model: the language model.
        batch: with a cache of the written tokens and all generated ones but the last; afterwards of all
            written tokens but the last, the chosen prefixes and the text blocks being written.
        indices: jobs of the batch with a finished draft and a text block after the blank.
    """
    states = [batch.states[index] for index in indices]
    cached = [batch.cache.lengths[index] for index in indices]
    layouts = [_layout(state) for state in states]
    counts = [layout_size(state) for state in states]
    feed = _feed(model, batch, indices, counts, layouts)
    positions = [
        length if copy == 0 else length - len(state.draft) + 1 + copy + place
        for state, length, layout in zip(states, cached, layouts, strict=True)
        for copy, place, _, _ in layout
    ]
    tokens = [token for layout in layouts for _, _, token, _ in layout]
    targets = [target for layout in layouts for _, _, _, target in layout]
    hidden, new = model.forward(model.tensor(tokens), model.tensor(positions), feed)
    surprise = model.surprisal(hidden, model.tensor(targets)).double().cpu()

    places: list[tuple[int, int, int]] = []  # row and slot of each token of this pass that is kept
    start = 0
    of_jobs = zip(indices, states, counts, cached, torch.split(surprise, counts), strict=True)
    for index, state, count, length, of_job in of_jobs:
        draft, block = len(state.draft), len(state.blank.after) - 1
        of_copies = of_job[1:].reshape(draft, block).sum(1).tolist()
        of_starts = [*state.next_surprise, float(of_job[0])]
        kept = state.keep([a + b for a, b in zip(of_starts, of_copies, strict=True)])
        copy = range(start + 1 + (kept - 1) * block, start + 1 + kept * block)
        begin = length - draft + 1 + min(kept, draft - 1)
        written = [start, *copy] if kept == draft else [*copy]
        places += [(token, index, begin + offset) for offset, token in enumerate(written)]
        batch.cache.lengths[index] = begin + len(written)
        start += count
    if places:
        kept_tokens, in_rows, in_slots = zip(*places, strict=True)
        batch.cache.write(new, in_rows, in_slots, kept_tokens)


def layout_size(state: JobState) -> int:
    """Tokens that judging a job's draft takes."""
    return 1 + len(state.draft) * (len(state.blank.after) - 1)


def _layout(state: JobState) -> list[tuple[int, int, int, int]]:
    """For each token to feed: the prefix length of its copy, its place in the copy, the token, and the next token.

    The first is the last generated token, as copy 0; then the text block without its last token, once per prefix.
    """
    block = state.blank.after
    inside = [(place, token, following) for place, (token, following) in enumerate(pairwise(block))]
    copies = range(1, len(state.draft) + 1)
    return [(0, 0, state.draft[-1], block[0]), *((copy, *one) for copy in copies for one in inside)]


def _feed(
    model: CausalLanguageModel,
    batch: Batch[JobState],
    indices: Sequence[int],
    counts: Sequence[int],
    layouts: Sequence[Sequence[tuple[int, int, int, int]]],
) -> Feed:
    """Copy m sees the written tokens and the first m generated ones; the last generated one is in this pass."""
    longest = max(counts)
    padded = [[*layout, *[(0, 0, 0, 0)] * (longest - len(layout))] for layout in layouts]
    copy, place = model.tensor([[one[:2] for one in layout] for layout in padded]).unbind(-1)
    drafted, cached = model.tensor(
        [[len(batch.states[index].draft), batch.cache.lengths[index]] for index in indices]
    ).T[:, :, None]
    is_copy = copy > 0
    reach = torch.where(is_copy, cached - drafted + 1 + copy.minimum(drafted - 1), cached)
    slots = max(batch.cache.lengths[index] for index in indices)
    past = torch.arange(slots, device=model.device) < reach[:, :, None]
    within = (copy[:, :, None] == copy[:, None, :]) & (place[:, None, :] <= place[:, :, None])
    within &= is_copy[:, None, :]
    within[:, :, 0] |= copy == drafted
    within |= torch.eye(longest, dtype=torch.bool, device=model.device)
    mask = model.mask(torch.cat([past, within], dim=2))
    return Feed(counts, mask, batch.cache, model.tensor(indices), slots)
