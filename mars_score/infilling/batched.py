"""Batched infilling (Algorithm 2): jobs are at different blanks, and a finished job makes room for the next.

``tests/oracle_infilling.py`` has the same method in a readable form. Here one forward pass compares all prefixes
of a draft of n tokens: a row holds n copies of the next text block, one per prefix, and the attention mask lets
each copy attend to its own prefix only. The last token of the block is fed when the next blank begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mars_score.infilling.jobs import FilledBlank, FilledTemplate, Job, JobState, TemplateInContext, make_job
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.attention import KeyValueCache, LayerStates
from mars_score.models.causal_lm import CausalLanguageModel, Prompts, flat
from mars_score.models.codec import token_kind
from mars_score.models.running import BatchSize, cache_bytes, ordinary_mode

CPU_JOBS, GPU_JOBS = 128, 1024  # default batch sizes; larger ones are hardly faster on a CPU
MASK_ENTRIES = 2**26  # most entries of the attention mask of a pass that compares prefixes: 256 MiB in float32


class BatchedInfiller:
    """Fills the blanks of templates with a causal language model.

    Args:
        model: the language model.
        config: the settings.
        batch_size: most jobs in a batch, halved if memory runs out.
    """

    def __init__(self, model: CausalLanguageModel, config: PaperConfig, batch_size: int | None = None) -> None:
        self.model = model
        self.config = config
        self.batch = BatchSize(batch_size or (CPU_JOBS if model.device.type == "cpu" else GPU_JOBS))
        self._drafter = Drafter(model, config)

    def infill(self, pairs: Iterable[TemplateInContext]) -> Iterator[tuple[TemplateInContext, FilledTemplate]]:
        """Yield each distinct (context, template) with its augmented reference."""
        pairs_of: dict[Job, list[tuple[TemplateInContext, bool]]] = {}
        for pair in dict.fromkeys(pairs):
            job, context_cut = self.make_job(*pair)
            pairs_of.setdefault(job, []).append((pair, context_cut))
        for job, filled in self.infill_jobs(pairs_of):
            infills = [self.model.codec.decode(blank.tokens) for blank in filled]
            for pair, context_cut in pairs_of[job]:
                template = pair[1]
                # The infill of a leading blank begins with the space after the context.
                text = template.fill(infills).strip()
                yield pair, FilledTemplate(text, context_cut, reference_cut=len(filled) < len(template.blanks))

    def make_job(self, context: str, template: Template) -> tuple[Job, bool]:
        """Encode a template by :func:`mars_score.infilling.jobs.make_job`."""
        return make_job(context, template, self.model.codec, self.model.window, self.config)

    def infill_jobs(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, tuple[FilledBlank, ...]]]:
        """Yield each distinct job with its filled blanks."""
        distinct = dict.fromkeys(jobs)
        yield from ((job, ()) for job in distinct if not job.blanks)  # All blanks are beyond the window.
        waiting = {job: None for job in distinct if job.blanks}
        while waiting:
            longest_jobs, fitting = self._next_run(list(waiting))
            with self.batch.attempt(fitting) as size:
                for job, filled in _Run(self._drafter, longest_jobs, size):
                    del waiting[job]
                    yield job, filled

    def _next_run(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], int]:
        """Return all jobs, or the longest if not all fit in memory, and the size of a batch that fits."""
        sigma = self.config.sigma
        longest = max(job.most_tokens(sigma) for job in jobs)
        fitting = cache_bytes(self.model.device) // (self.model.token_bytes * longest)
        if fitting >= min(self.batch.size, len(jobs)):
            return jobs, len(jobs)
        return [job for job in jobs if 2 * job.most_tokens(sigma) > longest], max(1, fitting)


class _Run:
    """Infills some jobs in batches of at most ``size``."""

    def __init__(self, drafter: Drafter, jobs: Sequence[Job], size: int) -> None:
        self.drafter = drafter
        self.model = drafter.model
        self.size = min(size, len(jobs))
        self._waiting = _by_work(jobs, drafter.config.sigma)[::-1]  # The next job is the last.
        self._finished: list[JobState] = []
        capacity = max(job.most_tokens(drafter.config.sigma) for job in jobs)
        self._prompts = Prompts(capacity * self.model.token_bytes)  # keeps the last prompt for the next job
        # If no text follows the current blank, there is nothing to plan towards. Such jobs wait in a smaller batch
        # until it is full or no other job is left.
        self._planned = drafter.config.planner == "self"
        with ordinary_mode():
            self._main = JobBatch(self.model.new_cache(self.size, capacity))
            self._tail = JobBatch(self.model.new_cache(max(1, self.size // 4) if self._planned else 0, capacity))

    def __iter__(self) -> Iterator[tuple[Job, tuple[FilledBlank, ...]]]:
        while self._waiting or self._main.states or self._tail.states:
            with ordinary_mode():
                self._admit()
                self._advance(self._main if self._main.states else self._tail)
            while self._finished:
                state = self._finished.pop()
                yield state.job, tuple(state.filled)

    def _admit(self) -> None:
        """Start waiting jobs, several together, as a single prompt does not fill the device."""
        several = max(1, self.size // 8)
        while self._waiting and (self._main.room >= several or not self._main.states):
            count = min(2 * several, self._main.room)
            jobs, self._waiting = self._waiting[-count:][::-1], self._waiting[:-count]
            self._start(jobs)

    def _start(self, jobs: Sequence[Job]) -> None:
        """Prefill the distinct prompts and the text blocks before the first blanks, except their last tokens."""
        prompts = list(dict.fromkeys(job.prompt[:-1] for job in jobs))
        prefilled = self.model.prefill(prompts, self._prompts)
        cache = self.model.new_cache(len(jobs), max(len(job.prompt) + len(job.lead) for job in jobs))
        for job in jobs:
            cache.append_row(prefilled, prompts.index(job.prompt[:-1]))
        log_probabilities = self._prefill_leads(jobs, cache)
        for index, job in enumerate(jobs):
            self._place(JobState(job, log_probabilities.get(index, 0.0), len(job.lead)), cache, index)

    def _prefill_leads(self, jobs: Sequence[Job], cache: KeyValueCache) -> dict[int, float]:
        """Prefill leading text blocks and return their log probabilities by the index of the job."""
        leads = {index: job.lead for index, job in enumerate(jobs) if job.lead}
        if not leads:
            return {}
        inputs = [(jobs[index].prompt[-1], *lead[:-1]) for index, lead in leads.items()]
        hidden = torch.cat(self.model.extend(cache, inputs, list(leads)))
        values = self.model.log_probabilities(hidden, self.model.tensor(flat(list(leads.values())))).double().cpu()
        per_lead = torch.split(values, [len(lead) for lead in leads.values()])
        return dict(zip(leads, (float(lead.sum()) for lead in per_lead), strict=True))

    def _place(self, state: JobState, source: KeyValueCache, row: int) -> None:
        """Add a job to the batch for its next blank, with its row of a cache."""
        batch = self._tail if self._planned and not state.future else self._main
        while not batch.room:
            self._advance(batch)
        batch.add(state, source, row)

    def _advance(self, batch: JobBatch) -> None:
        """Generate a token for each job. Where the draft is complete, keep a prefix and go to the next blank."""
        plan = self._planned and batch is self._main
        self.drafter.write(batch, plan=plan)
        drafted = self.drafter.finished_drafts(batch)
        self.drafter.select_prefix(batch, drafted)
        for index in reversed(drafted):
            state = batch.states[index]
            if state.finished:
                self._finished.append(batch.remove(index))
                continue
            state.start_draft()
            if plan and not state.future:
                self._place(state, batch.cache, index)
                batch.remove(index)


def _by_work(jobs: Sequence[Job], sigma: int) -> list[Job]:
    """Sort jobs with equal prompts together, and most tokens first, so that few jobs run alone at the end."""
    most: dict[tuple[int, ...], int] = {}
    for job in jobs:
        most[job.prompt] = max(most.get(job.prompt, 0), job.drafted_tokens(sigma))
    return sorted(jobs, key=lambda job: (-most[job.prompt], job.prompt, -job.drafted_tokens(sigma)))


# Drafts


class JobBatch:
    """A batch of jobs: job i has ``states[i]`` and row i of the cache."""

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.states: list[JobState] = []

    @property
    def room(self) -> int:
        """Return how many jobs can be added."""
        return self.cache.rows - len(self.states)

    def add(self, state: JobState, source: KeyValueCache, row: int) -> None:
        """Add a job with its row of another cache."""
        self.cache.append_row(source, row)
        self.states.append(state)

    def remove(self, index: int) -> JobState:
        """Remove and return a job. The last job moves to its index."""
        self.cache.remove_row(index)
        state, last = self.states[index], self.states.pop()
        if last is not state:
            self.states[index] = last
        return state


class Drafter:
    """Generates drafts and selects the prefix of each that is kept."""

    def __init__(self, model: CausalLanguageModel, config: PaperConfig) -> None:
        self.model = model
        self.config = config
        self._allowed = torch.from_numpy(model.codec.allowed_tokens(model.vocabulary)).to(model.device)

    def write(self, batch: JobBatch, *, plan: bool) -> None:
        """Add the best allowed token to each draft, with the planner if ``plan``."""
        model, states = self.model, batch.states
        tokens = model.tensor([state.pending for state in states])
        if plan:
            step = planned_step(model, batch.cache, tokens, [state.future for state in states], self.config)
        else:
            step = plain_step(model, batch.cache, tokens)
        batch.cache.write(step.states, range(len(states)), batch.cache.lengths)
        batch.cache.lengths = [length + 1 for length in batch.cache.lengths]
        kinds = [
            token_kind(
                first=not state.draft,
                begins_word=state.blank.begins_word,
                line_breaks=state.job.line_breaks,
                whole_characters=state.whole_characters,
            )
            for state in states
        ]
        chosen = step.scores.masked_fill(~self._allowed[model.tensor(kinds)], -torch.inf).argmax(-1)
        block_starts = model.tensor([(state.blank.block or (0,))[0] for state in states])
        both = step.plain.gather(1, torch.stack([chosen, block_starts], dim=1))
        log_probabilities = both - step.plain.logsumexp(-1, keepdim=True)
        for state, token, pair in zip(states, chosen.tolist(), log_probabilities.tolist(), strict=True):
            state.write(token, *pair)

    def finished_drafts(self, batch: JobBatch) -> list[int]:
        """Return the indices of the jobs with a complete draft.

        A draft without a prefix of whole characters is started again, with tokens of whole characters only.
        """
        finished = []
        for index, state in enumerate(batch.states):
            if len(state.draft) < state.blank.length + self.config.sigma:
                continue
            whole = state.whole_characters
            state.whole_prefixes = (
                [True] * len(state.draft) if whole else self.model.codec.whole_prefixes(state.draft)
            )
            if any(state.whole_prefixes):
                finished.append(index)
            else:
                batch.cache.lengths[index] -= len(state.draft)
                state.start_draft(whole_characters=True)
        return finished

    def select_prefix(self, batch: JobBatch, finished: Sequence[int]) -> None:
        """Choose the prefix of each finished draft, and cache it with the text block that follows."""
        rows = []
        for index in finished:
            state = batch.states[index]
            if state.blank.block:
                rows.append((index, _PrefixRow.of(state, batch.cache.lengths[index])))
            else:  # No text block follows.
                kept = state.keep([0.0] * len(state.draft))
                batch.cache.lengths[index] -= len(state.draft) - kept
        rows.sort(key=lambda entry: len(entry[1].tokens))
        while rows:
            size = len(rows[-1][1].tokens)
            count = max(1, MASK_ENTRIES // (size * (batch.cache.slots + size)))
            _compare_prefixes(self.model, batch, dict(rows[-count:]))
            del rows[-count:]


class _PrefixRow(NamedTuple):
    """The input that compares a draft's prefixes: its last token, then a copy of the text block for each prefix.

    The other tokens of the draft are cached. The last one belongs to the copy after the whole draft. Each list has
    an entry per token.
    """

    start: int  # position of the draft's first token
    copied: int  # number of tokens of a copy
    prefixes: list[int]  # length of the prefix before the token's copy
    past: list[int]  # number of cached tokens that the token attends to
    positions: list[int]
    tokens: list[int]
    targets: list[int]  # the next tokens

    @classmethod
    def of(cls, state: JobState, cached: int) -> _PrefixRow:
        """Make the input for a job with ``cached`` tokens in the cache."""
        draft, block = len(state.draft), state.blank.block
        start, copies, offsets = cached - (draft - 1), range(1, draft + 1), range(len(block) - 1)
        prefixes = [draft, *(prefix for prefix in copies for _ in offsets)]
        return cls(
            start,
            len(offsets),
            prefixes,
            past=[start + min(prefix, draft - 1) for prefix in prefixes],
            positions=[cached, *(start + prefix + offset for prefix in copies for offset in offsets)],
            tokens=[state.draft[-1], *block[:-1] * draft],
            targets=[block[0], *block[1:] * draft],
        )


def _compare_prefixes(model: CausalLanguageModel, batch: JobBatch, rows: Mapping[int, _PrefixRow]) -> None:
    """Keep the best prefix of each draft, and cache all of its tokens and the block's but the last."""
    log_probabilities, new = _run_prefixes(model, batch.cache, list(rows), list(rows.values()))
    written: list[tuple[int, int, int]] = []  # row, slot and index in the pass, for each token to cache
    first = 0
    for (index, row), values in zip(rows.items(), log_probabilities, strict=True):
        state = batch.states[index]
        block_starts = values.new_tensor([*state.block_start_log_probabilities, values[0]])
        block_ends = values[1:].reshape(len(state.draft), row.copied).sum(1)
        kept = state.keep((block_starts + block_ends).tolist())
        copy = [token for token, prefix in enumerate(row.prefixes) if prefix == kept]
        written += [(index, row.positions[token], first + token) for token in copy]
        batch.cache.lengths[index] = row.start + kept + row.copied
        first += len(row.tokens)
    if written:
        batch.cache.write(new, *zip(*written, strict=True))


def _run_prefixes(
    model: CausalLanguageModel, cache: KeyValueCache, indices: Sequence[int], rows: Sequence[_PrefixRow]
) -> tuple[Sequence[Tensor], LayerStates]:
    """Return the log probabilities of each row's targets, (tokens,), and the keys and values of all tokens."""
    counts, past = [len(row.tokens) for row in rows], [row.past for row in rows]
    packed = model.packed_batch(counts, past, cache, indices, branches=[row.prefixes for row in rows])
    tokens, positions = model.tensor([flat([row.tokens for row in rows]), flat([row.positions for row in rows])])
    hidden, states = model.forward(tokens, positions, packed)
    targets = model.tensor(flat([row.targets for row in rows]))
    return torch.split(model.log_probabilities(hidden, targets).double().cpu(), counts), states
