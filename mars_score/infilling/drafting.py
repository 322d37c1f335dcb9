"""The two halves of Algorithm 2 for a batch of jobs: generate a draft of a blank, and judge how much to keep.

All prefixes of a draft of n tokens are judged in one forward pass. One sequence holds n copies of the next text
block, one after each prefix; the attention mask and the position ids let each copy see its own prefix only. The
block's last token is not fed: nothing is predicted from it yet, and it is fed when the next blank begins.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch

from mars_score.infilling.jobs import JobState
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.codec import token_kind
from mars_score.models.kv_cache import KeyValueCache
from mars_score.settings.stages import PlanningSettings

MASK_ENTRIES = 2**26  # attention mask entries of one judging pass


class Batch:
    """Jobs that are written together: job i has ``states[i]`` and row i of the cache."""

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.states: list[JobState] = []

    @property
    def room(self) -> int:
        """How many jobs can be added."""
        return self.cache.rows - len(self.states)

    def add(self, state: JobState, source: KeyValueCache, row: int) -> None:
        """Add a job whose written tokens are a row of another cache."""
        self.cache.add(source, row)
        self.states.append(state)

    def remove(self, index: int) -> JobState:
        """Take a job out; the last one takes its place."""
        self.cache.remove(index)
        state, last = self.states[index], self.states.pop()
        if last is not state:
            self.states[index] = last
        return state


class Drafter:
    """Generates drafts and judges them."""

    def __init__(self, model: CausalLanguageModel, planning: PlanningSettings, sigma: int) -> None:
        self.model = model
        self.planning = planning
        self.sigma = sigma
        self._allowed = torch.from_numpy(model.codec.allowed(model.vocabulary)).to(model.device)

    def write(self, batch: Batch, *, plan: bool) -> None:
        """Add the best allowed token to each draft; with ``plan`` the best in view of the text that follows."""
        model, states = self.model, batch.states
        tokens = model.tensor([state.pending for state in states])
        if plan:
            step = planned_step(model, batch.cache, tokens, [state.future for state in states], self.planning)
        else:
            step = plain_step(model, batch.cache, tokens)
        batch.cache.write(step.states, range(len(states)), batch.cache.lengths)
        batch.cache.lengths = [length + 1 for length in batch.cache.lengths]
        kinds = [
            token_kind(
                first=not state.draft,
                begins_word=state.blank.begins_word,
                line_breaks=state.job.line_breaks,
                whole=state.whole,
            )
            for state in states
        ]
        chosen = step.scores.masked_fill(~self._allowed[model.tensor(kinds)], -torch.inf).argmax(-1)
        starts = model.tensor([(state.blank.after or (0,))[0] for state in states])
        both = step.plain.gather(1, torch.stack([chosen, starts], dim=1))
        surprise = step.plain.logsumexp(-1, keepdim=True) - both
        for state, token, (of_token, of_start) in zip(states, chosen.tolist(), surprise.tolist(), strict=True):
            state.write(token, of_token, of_start)

    def finished_drafts(self, batch: Batch) -> list[int]:
        """Jobs whose draft is long enough; one without a prefix of whole characters is begun again with such."""
        finished = []
        for index, state in enumerate(batch.states):
            if len(state.draft) < state.blank.length + self.sigma:
                continue
            state.complete = [True] * len(state.draft) if state.whole else self.model.codec.complete(state.draft)
            if any(state.complete):
                finished.append(index)
            else:
                batch.cache.lengths[index] -= len(state.draft)
                state.start_draft(whole=True)
        return finished

    def judge(self, batch: Batch, finished: Sequence[int]) -> None:
        """Choose how many tokens of each finished draft to keep; write them and the text block that follows."""
        for index in finished:
            state = batch.states[index]
            if not state.blank.after:  # at the end of the text: judged on what is written and the prefix
                state.keep([0.0] * len(state.draft))
        judged = [index for index in finished if not batch.states[index].finished]
        judged.sort(key=lambda index: _layout_size(batch.states[index]))
        while judged:
            size = _layout_size(batch.states[judged[-1]])
            count = max(1, MASK_ENTRIES // (size * (batch.cache.slots + size)))
            _judge(self.model, batch, judged[-count:])
            del judged[-count:]


def _judge(model: CausalLanguageModel, batch: Batch, indices: Sequence[int]) -> None:
    """Judge drafts that a text block follows; afterwards the cache holds all written tokens but the last."""
    states = [batch.states[index] for index in indices]
    starts = [batch.cache.lengths[index] - len(batch.states[index].draft) + 1 for index in indices]
    layouts = [_layout(state, start) for state, start in zip(states, starts, strict=True)]
    counts = [len(layout) for layout in layouts]
    prefixes = [[prefix for prefix, *_ in layout] for layout in layouts]
    # All of a draft but its last token is in the cache. That one stands in the branch of the copy after all of it.
    reach = [
        [start + min(prefix, len(state.draft) - 1) for prefix in of_job]
        for state, start, of_job in zip(states, starts, prefixes, strict=True)
    ]
    feed = model.feed(counts, reach, batch.cache, indices, branches=prefixes)
    _, positions, tokens, targets = model.tensor([entry for layout in layouts for entry in layout]).T
    hidden, new = model.forward(tokens, positions, feed)
    surprise = model.surprisal(hidden, targets).double().cpu()

    places: list[tuple[int, int, int]] = []  # of each token of this pass that is written: row, slot and token
    first = 0
    of_jobs = zip(indices, states, starts, layouts, torch.split(surprise, counts), strict=True)
    for index, state, start, layout, of_job in of_jobs:
        fed = len(state.blank.after) - 1
        of_copies = of_job[1:].reshape(len(state.draft), fed).sum(1).tolist()
        of_starts = [*state.next_surprise, float(of_job[0])]
        kept = state.keep([a + b for a, b in zip(of_starts, of_copies, strict=True)])
        places += [
            (index, position, token)
            for token, (prefix, position, _, _) in enumerate(layout, first)
            if prefix == kept
        ]
        batch.cache.lengths[index] = start + kept + fed
        first += len(layout)
    if places:
        batch.cache.write(new, *zip(*places, strict=True))


def _layout_size(state: JobState) -> int:
    """Tokens that judging a job's draft takes."""
    return 1 + len(state.draft) * (len(state.blank.after) - 1)


def _layout(state: JobState, start: int) -> list[tuple[int, int, int, int]]:
    """For each token to feed: length of the prefix before its copy, its position, the token, and the next token.

    The draft's last token comes first, then the copies of the text block; the draft begins at position ``start``.
    """
    draft, block = len(state.draft), state.blank.after
    copies = [
        (prefix, start + prefix + place, token, following)
        for prefix in range(1, draft + 1)
        for place, (token, following) in enumerate(pairwise(block))
    ]
    return [(draft, start + draft - 1, state.draft[-1], block[0]), *copies]
