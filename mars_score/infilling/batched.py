"""Batched infilling (Algorithm 2): jobs are at different blanks, and a finished one makes room for the next."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from mars_score.infilling.drafting import Batch, Drafter
from mars_score.infilling.jobs import (
    AugmentedText,
    Blank,
    Infill,
    Job,
    JobState,
    OnInfilled,
    TemplateInContext,
)
from mars_score.metrics.template import Template
from mars_score.models.causal_lm import CausalLanguageModel, PromptMemory
from mars_score.models.codec import has_line_break
from mars_score.models.kv_cache import KeyValueCache
from mars_score.models.running import BatchSize, cache_bytes, ordinary_mode
from mars_score.settings.stages import InfillingSettings, PlanningSettings

RESERVE = 64  # tokens of the window that the context leaves free, besides twice the reference
_SHORTEST_START = 2  # tokens before the first blank: one in the cache to plan with, and one to feed
MOST_JOBS, MOST_JOBS_ON_GPU = 128, 1024  # default batch sizes; larger batches are hardly faster on a CPU


class CausalInfiller:
    """Fills the blanks of jobs with a causal language model."""

    def __init__(
        self,
        model: CausalLanguageModel,
        planning: PlanningSettings,
        infilling: InfillingSettings,
        batch_size: int | None = None,
    ) -> None:
        self.model = model
        self.codec = model.codec
        self.window = model.window
        self.sigma = infilling.sigma
        self.batch = BatchSize(batch_size or (MOST_JOBS if model.device.type == "cpu" else MOST_JOBS_ON_GPU))
        self.drafter = Drafter(model, planning, infilling.sigma)

    def augment(
        self,
        pairs: Sequence[TemplateInContext],
        done: Callable[[TemplateInContext, AugmentedText], None],
        max_context_tokens: int | None = None,
    ) -> None:
        """Infill templates, given their contexts; ``done`` is called with each different pair and its text."""
        pairs_of: dict[Job, list[tuple[TemplateInContext, bool]]] = {}
        for pair in dict.fromkeys(pairs):
            job, context_cut = self.make_job(*pair, max_context_tokens)
            pairs_of.setdefault(job, []).append((pair, context_cut))

        def join(job: Job, infills: tuple[Infill, ...]) -> None:
            texts = [self.codec.decode(infill.tokens) for infill in infills]
            for pair, context_cut in pairs_of[job]:
                template = pair[1]
                # The space between context and reference belongs to a leading blank's infill, but not to the text.
                text = template.fill(texts).strip()
                done(pair, AugmentedText(text, context_cut, reference_cut=len(infills) < len(template.blanks)))

        self.infill(pairs_of, join)

    def make_job(
        self, context: str, template: Template, max_context_tokens: int | None = None
    ) -> tuple[Job, bool]:
        """Tokenise a template piece by piece and put it after its context; what is beyond the window is left out.

        Whatever is masked, the first ``window - (2 x reference tokens + RESERVE)`` tokens of the context are
        kept, and at most ``max_context_tokens``. Returns the job and whether some of the context is left out.
        """
        codec, window, sigma = self.codec, self.window, self.sigma
        of_context = codec.encode_context(context)
        of_reference = codec.encode(" " + template.reference if of_context else template.reference)
        limit = max(0, window - (2 * len(of_reference) + RESERVE))
        if max_context_tokens is not None:
            limit = min(limit, max_context_tokens)
        prompt = codec.prompt(of_context[:limit])
        pieces = template.pieces
        texts = [piece.text for piece in pieces]
        if of_context[:limit]:
            texts[0] = " " + texts[0]
        tokens = [codec.encode(text) for text in texts]
        while len(prompt) + (0 if pieces[0].blank else len(tokens[0])) < _SHORTEST_START:
            prompt.insert(0, codec.begin)

        lead: tuple[int, ...] = ()
        blanks: list[Blank] = []
        position = len(prompt)
        for piece, text, ids in zip(pieces, texts, tokens, strict=True):
            space = window - position
            if piece.blank:
                length = max(1, len(ids))
                if length + sigma > space:
                    break
                blanks.append(Blank(length, text[:1].isspace(), ()))
                position += length + sigma
                continue
            fitting = tuple(ids[:space])
            if blanks:
                blanks[-1] = replace(blanks[-1], after=fitting)
            else:
                lead = fitting
            position += len(fitting)
            if len(fitting) < len(ids):
                break
        job = Job(tuple(prompt), lead, tuple(blanks), has_line_break(template.reference))
        return job, len(of_context) > limit

    def infill(self, jobs: Iterable[Job], done: OnInfilled) -> None:
        """Call ``done`` with each different job and the infills of its blanks."""
        waiting = dict.fromkeys(jobs)

        def note(job: Job, infills: tuple[Infill, ...]) -> None:
            del waiting[job]
            done(job, infills)

        for job in [job for job in waiting if not job.blanks]:  # all of them are beyond the window
            note(job, ())
        with self.model.exclusive(), ordinary_mode():
            while waiting:
                together, most = self._next_run(list(waiting))

                def run(size: int, together: Sequence[Job] = together) -> None:
                    for job, infills in _Run(self.drafter, [job for job in together if job in waiting], size):
                        note(job, infills)

                self.batch.run(run, most)

    def _next_run(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], int]:
        """The longest jobs, and how many of them fit in memory; shorter ones follow in larger batches."""
        longest = max(job.most_tokens(self.sigma) for job in jobs)
        fitting = cache_bytes(self.model.device) // (self.model.token_bytes * longest)
        if fitting >= min(self.batch.size, len(jobs)):
            return jobs, len(jobs)
        return [job for job in jobs if 2 * job.most_tokens(self.sigma) > longest], max(1, fitting)


class _Run:
    """Infilling of some jobs."""

    def __init__(self, drafter: Drafter, jobs: Sequence[Job], size: int) -> None:
        self.drafter = drafter
        self.model = drafter.model
        self.size = min(size, len(jobs))
        self._waiting = _by_work(jobs, drafter.sigma)[::-1]  # taken from the end
        self._finished: list[JobState] = []
        capacity = max(job.most_tokens(drafter.sigma) for job in jobs)
        self._prompts = PromptMemory(capacity * self.model.token_bytes)  # the last one: the next job may have it
        self._main = Batch(self.model.new_cache(self.size, capacity))
        # A job whose current blank ends the text has nothing to plan towards. Such jobs wait in a smaller batch
        # of their own until it is full or no other job is left.
        self._planned = drafter.planning.planner == "self"
        self._tail = Batch(self.model.new_cache(max(1, self.size // 4) if self._planned else 0, capacity))

    def __iter__(self) -> Iterator[tuple[Job, tuple[Infill, ...]]]:
        while self._waiting or self._main.states or self._tail.states:
            self._admit()
            self._advance(self._main if self._main.states else self._tail)
            while self._finished:
                state = self._finished.pop()
                yield state.job, tuple(state.infills)

    def _admit(self) -> None:
        """Start waiting jobs, several at a time: reading a single prompt leaves the device half idle."""
        several = max(1, self.size // 8)
        while self._waiting and (self._main.room >= several or not self._main.states):
            count = min(2 * several, self._main.room)
            jobs, self._waiting = self._waiting[-count:][::-1], self._waiting[:-count]
            self._start(jobs)

    def _start(self, jobs: Sequence[Job]) -> None:
        """Read the prompts (each different one once) and the text blocks before the first blanks.

        The last written token of each job, of its prompt or of its first text block, is not read yet.
        """
        prompts = list(dict.fromkeys(job.prompt[:-1] for job in jobs))
        read = self._prompts.read(self.model, prompts)
        cache = self.model.new_cache(len(jobs), max(len(job.prompt) + len(job.lead) for job in jobs))
        for job in jobs:
            cache.add(read, prompts.index(job.prompt[:-1]))
        surprises = [0.0] * len(jobs)
        if leading := [index for index, job in enumerate(jobs) if job.lead]:
            leads = [jobs[index].lead for index in leading]
            before = [(jobs[index].prompt[-1], *lead[:-1]) for index, lead in zip(leading, leads, strict=True)]
            predicting = torch.cat(self.model.read(before, cache, leading))
            targets = self.model.tensor([token for lead in leads for token in lead])
            of_tokens = self.model.surprisal(predicting, targets).double().cpu()
            of_leads = torch.split(of_tokens, [len(lead) for lead in leads])
            for index, of_lead in zip(leading, of_leads, strict=True):
                surprises[index] = float(of_lead.sum())
        for index, (job, surprise) in enumerate(zip(jobs, surprises, strict=True)):
            self._place(JobState(job, surprise, len(job.lead)), cache, index)

    def _place(self, state: JobState, source: KeyValueCache, index: int) -> None:
        """Put a job, whose written tokens are row ``index`` of a cache, into the batch for its next blank."""
        batch = self._tail if self._planned and not state.blank.after else self._main
        while not batch.room:
            self._advance(batch)
        batch.add(state, source, index)

    def _advance(self, batch: Batch) -> None:
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
            if self._planned and not state.blank.after:
                self._place(state, batch.cache, index)
                batch.remove(index)


def _by_work(jobs: Sequence[Job], sigma: int) -> list[Job]:
    """Jobs with most tokens to generate first, so that few run alone at the end; those of one prompt together."""
    work = {job: sum(blank.length + sigma for blank in job.blanks) for job in jobs}
    most: dict[tuple[int, ...], int] = {}
    for job in jobs:
        most[job.prompt] = max(most.get(job.prompt, 0), work[job])
    return sorted(jobs, key=lambda job: (-most[job.prompt], job.prompt, -work[job]))
