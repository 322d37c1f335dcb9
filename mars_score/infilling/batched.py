"""Batched infilling (Algorithm 2): jobs are at different blanks, and a finished one makes room for the next.

:mod:`mars_score.infilling.plain` says the same in its readable form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

from mars_score.infilling.drafting import Drafter, JobBatch
from mars_score.infilling.jobs import (
    FilledBlank,
    FilledTemplate,
    Job,
    JobState,
    OnFilled,
    TemplateInContext,
    make_job,
)
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.attention import KeyValueCache
from mars_score.models.causal_lm import CausalLanguageModel, PromptCache, flat
from mars_score.models.running import BatchSize, cache_bytes, ordinary_mode

CPU_JOBS, GPU_JOBS = 128, 1024  # default batch sizes; larger batches are hardly faster on a CPU


class BatchedInfiller:
    """Fills the blanks of templates with a causal language model.

    Args:
        model: the language model.
        config: sigma, the limit of contexts, and the planner.
        batch_size: most jobs that are written together; halved where memory runs out.
    """

    def __init__(self, model: CausalLanguageModel, config: PaperConfig, batch_size: int | None = None) -> None:
        self.model = model
        self.config = config
        self.batch = BatchSize(batch_size or (CPU_JOBS if model.device.type == "cpu" else GPU_JOBS))
        self._drafter = Drafter(model, config)

    def infill(self, pairs: Sequence[TemplateInContext], done: OnFilled) -> None:
        """Fill the blanks of each different (context, template); call ``done`` with each pair and its text."""
        pairs_of: dict[Job, list[tuple[TemplateInContext, bool]]] = {}
        for pair in dict.fromkeys(pairs):
            job, context_cut = self.make_job(*pair)
            pairs_of.setdefault(job, []).append((pair, context_cut))

        def join(job: Job, filled: tuple[FilledBlank, ...]) -> None:
            infills = [self.model.codec.decode(blank.tokens) for blank in filled]
            for pair, context_cut in pairs_of[job]:
                template = pair[1]
                # The space between context and reference belongs to a leading blank's infill, but not to the text.
                text = template.fill(infills).strip()
                done(pair, FilledTemplate(text, context_cut, reference_cut=len(filled) < len(template.blanks)))

        self.infill_jobs(pairs_of, join)

    def make_job(self, context: str, template: Template) -> tuple[Job, bool]:
        """Encode a template for :meth:`infill_jobs`; see :func:`mars_score.infilling.jobs.make_job`."""
        return make_job(context, template, self.model.codec, self.model.window, self.config)

    def infill_jobs(self, jobs: Iterable[Job], done: Callable[[Job, tuple[FilledBlank, ...]], None]) -> None:
        """Call ``done`` with each different job and its filled blanks."""
        waiting = dict.fromkeys(jobs)

        def finish(job: Job, filled: tuple[FilledBlank, ...]) -> None:
            del waiting[job]
            done(job, filled)

        for job in [job for job in waiting if not job.blanks]:  # All of them are beyond the window.
            finish(job, ())
        with self.model.exclusive(), ordinary_mode():
            while waiting:
                together, most = self._next_run(list(waiting))

                def attempt(size: int, together: Sequence[Job] = together) -> None:
                    for job, filled in _Run(self._drafter, [job for job in together if job in waiting], size):
                        finish(job, filled)

                self.batch.run(attempt, most)

    def _next_run(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], int]:
        """Return the longest jobs, and how many of them fit in memory; shorter ones follow in larger batches."""
        sigma = self.config.sigma
        longest = max(job.most_tokens(sigma) for job in jobs)
        fitting = cache_bytes(self.model.device) // (self.model.token_bytes * longest)
        if fitting >= min(self.batch.size, len(jobs)):
            return jobs, len(jobs)
        return [job for job in jobs if 2 * job.most_tokens(sigma) > longest], max(1, fitting)


class _Run:
    """Infilling of some jobs, of which at most ``size`` are written together."""

    def __init__(self, drafter: Drafter, jobs: Sequence[Job], size: int) -> None:
        self.drafter = drafter
        self.model = drafter.model
        self.size = min(size, len(jobs))
        self._waiting = _by_work(jobs, drafter.config.sigma)[::-1]  # taken from the end
        self._finished: list[JobState] = []
        capacity = max(job.most_tokens(drafter.config.sigma) for job in jobs)
        self._prompts = PromptCache(capacity * self.model.token_bytes)  # the last prompt: the next job may have it
        self._main = JobBatch(self.model.new_cache(self.size, capacity))
        # A job whose current blank ends the text has nothing to plan towards. Such jobs wait in a smaller batch
        # of their own until it is full or no other job is left.
        self._planned = drafter.config.planner == "self"
        self._tail = JobBatch(self.model.new_cache(max(1, self.size // 4) if self._planned else 0, capacity))

    def __iter__(self) -> Iterator[tuple[Job, tuple[FilledBlank, ...]]]:
        while self._waiting or self._main.states or self._tail.states:
            self._admit()
            self._advance(self._main if self._main.states else self._tail)
            while self._finished:
                state = self._finished.pop()
                yield state.job, tuple(state.filled)

    def _admit(self) -> None:
        """Start waiting jobs, several at a time: one prompt alone leaves the device half idle."""
        several = max(1, self.size // 8)
        while self._waiting and (self._main.room >= several or not self._main.states):
            count = min(2 * several, self._main.room)
            jobs, self._waiting = self._waiting[-count:][::-1], self._waiting[:-count]
            self._start(jobs)

    def _start(self, jobs: Sequence[Job]) -> None:
        """Prefill the prompts (each different one once) and the text blocks before the first blanks.

        The last written token of each job, of its prompt or of its first text block, is not in the cache yet.
        """
        prompts = list(dict.fromkeys(job.prompt[:-1] for job in jobs))
        prefilled = self._prompts.prefill(self.model, prompts)
        cache = self.model.new_cache(len(jobs), max(len(job.prompt) + len(job.lead) for job in jobs))
        for job in jobs:
            cache.append_row(prefilled, prompts.index(job.prompt[:-1]))
        log_probabilities = self._prefill_leads(jobs, cache)
        for index, job in enumerate(jobs):
            self._place(JobState(job, log_probabilities.get(index, 0.0), len(job.lead)), cache, index)

    def _prefill_leads(self, jobs: Sequence[Job], cache: KeyValueCache) -> dict[int, float]:
        """Return the log probability of the first text block of each job (its index) that begins with one."""
        leads = {index: job.lead for index, job in enumerate(jobs) if job.lead}
        if not leads:
            return {}
        inputs = [(jobs[index].prompt[-1], *lead[:-1]) for index, lead in leads.items()]
        hidden = torch.cat(self.model.extend(cache, inputs, list(leads)))
        values = self.model.log_probabilities(hidden, self.model.tensor(flat(list(leads.values())))).double().cpu()
        per_lead = torch.split(values, [len(lead) for lead in leads.values()])
        return {
            index: float(log_probability.sum()) for index, log_probability in zip(leads, per_lead, strict=True)
        }

    def _place(self, state: JobState, source: KeyValueCache, row: int) -> None:
        """Put a job, whose written tokens are a row of a cache, into the batch for its next blank."""
        batch = self._tail if self._planned and not state.blank.block else self._main
        while not batch.room:
            self._advance(batch)
        batch.add(state, source, row)

    def _advance(self, batch: JobBatch) -> None:
        """Write a token for each job; judge the drafts that are long enough, and go to their next blanks."""
        self.drafter.write(batch, plan=self._planned and batch is self._main)
        drafted = self.drafter.finished_drafts(batch)
        self.drafter.judge(batch, drafted)
        for index in reversed(drafted):
            state = batch.states[index]
            if state.finished:
                self._finished.append(batch.remove(index))
                continue
            state.start_draft()
            if self._planned and not state.blank.block:
                self._place(state, batch.cache, index)
                batch.remove(index)


def _by_work(jobs: Sequence[Job], sigma: int) -> list[Job]:
    """Sort jobs: most tokens to generate first, so that few run alone at the end; those of a prompt together."""
    most: dict[tuple[int, ...], int] = {}
    for job in jobs:
        most[job.prompt] = max(most.get(job.prompt, 0), job.drafted_tokens(sigma))
    return sorted(jobs, key=lambda job: (-most[job.prompt], job.prompt, -job.drafted_tokens(sigma)))
