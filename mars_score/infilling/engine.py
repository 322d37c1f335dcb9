"""Batched infilling: generate, judge, revise (Algorithm 2), many jobs abreast.

Jobs are at different blanks and different tokens of them at the same time; one that is done makes room for
the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from mars_score.infilling.batch import Pool
from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.job_state import Row
from mars_score.infilling.jobs import Done, Infill, Job
from mars_score.infilling.judging import judge, layout_size
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.infilling.tokens import token_kind
from mars_score.models.memory import cache_bytes, is_out_of_memory
from mars_score.models.torch_modes import ordinary_mode
from mars_score.settings import InfillingSettings, PlanningSettings

MOST_ROWS = {"cpu": 128}  # jobs abreast unless told; more are hardly faster
MOST_ROWS_ELSEWHERE = 1024
MASK_ENTRIES = 2**26  # attention mask entries of one judging pass


class CausalInfiller:
    """Fills the blanks of jobs with a causal language model.

    Args:
        model: the language model.
        planning: the planner's settings.
        infilling: sigma.
        batch_size: jobs abreast, at most; None: by the device and its memory. Halved where memory runs out.
    """

    shortest_start = 2  # one token in the cache that is planned with, and one to feed

    def __init__(
        self,
        model: CausalLanguageModel,
        planning: PlanningSettings,
        infilling: InfillingSettings,
        batch_size: int | None = None,
    ) -> None:
        self.model = model
        self.planning = planning
        self.codec = model.codec
        self.window = model.window
        self.sigma = infilling.sigma
        self.batch_size = batch_size or MOST_ROWS.get(model.device.type, MOST_ROWS_ELSEWHERE)
        self.allowed = torch.from_numpy(self.codec.allowed(model.vocabulary)).to(model.device)

    def infill(self, jobs: Sequence[Job], done: Done | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once.

        Args:
            jobs: templates in token ids.
            done: called with each different job and its infills, in the order in which they are done.
        """
        infills: dict[Job, tuple[Infill, ...]] = {}

        def note(job: Job, of_job: tuple[Infill, ...]) -> None:
            infills[job] = of_job
            if done:
                done(job, of_job)

        for job in dict.fromkeys(jobs):
            if not job.blanks:  # they lie beyond the window
                note(job, ())
        waiting = [job for job in dict.fromkeys(jobs) if job.blanks]
        with ordinary_mode():
            while waiting:
                run = _Run(self, *self._next_run(waiting))
                try:
                    for job, of_job in run:
                        note(job, of_job)
                except (RuntimeError, MemoryError) as error:
                    if run.size == 1 or not is_out_of_memory(error):
                        raise
                    self.batch_size = run.size // 2  # what was under way begins anew
                waiting = [job for job in waiting if job not in infills]
        return [infills[job] for job in jobs]

    def _next_run(self, jobs: Sequence[Job]) -> tuple[list[Job], int]:
        """The longest jobs, and how many of them fit abreast; more of shorter ones fit, in a run to come."""
        longest = max(job.most_tokens(self.sigma) for job in jobs)
        fitting = cache_bytes(self.model.device) // (self.model.token_bytes * longest)
        if fitting >= self.batch_size:
            return list(jobs), self.batch_size
        return [job for job in jobs if 2 * job.most_tokens(self.sigma) > longest], max(1, fitting)


class _Run:
    """Jobs being infilled together.

    Attributes:
        size: rows abreast, at most.
    """

    def __init__(self, infiller: CausalInfiller, jobs: Sequence[Job], size: int) -> None:
        self.infiller = infiller
        self.model = infiller.model
        self.size = min(size, len(jobs))
        self._waiting = _by_work(jobs, infiller.sigma)[::-1]  # taken from the end
        self._prompt: _Prompt | None = None
        self._finished: list[Row] = []
        capacity = max(job.most_tokens(infiller.sigma) for job in jobs)
        self._main = Pool(self.model.new_cache(self.size, capacity))
        # A row whose blank has no text behind it has nothing to plan towards. Such rows wait in a small pool
        # of their own until it is full or nothing else is left.
        self._planned = infiller.planning.planner == "self"
        self._tail = Pool(self.model.new_cache(max(1, self.size // 4) if self._planned else 0, capacity))

    def __iter__(self) -> Iterator[tuple[Job, tuple[Infill, ...]]]:
        while self._waiting or self._main.rows or self._tail.rows:
            self._admit()
            self._advance(self._main if self._main.rows else self._tail)
            while self._finished:
                row = self._finished.pop()
                yield row.job, tuple(row.infills)

    def _admit(self) -> None:
        """Let waiting jobs in, some at a time: reading a single prompt leaves the machine half idle."""
        some = max(1, self.size // 8)
        while self._waiting and (self._main.room >= some or not self._main.rows):
            count = min(2 * some, self._main.room)
            jobs, self._waiting = self._waiting[-count:][::-1], self._waiting[:-count]
            self._start(jobs)

    def _start(self, jobs: Sequence[Job]) -> None:
        """Read prompts (each different one once) and leads."""
        prompts = self._read_prompts(jobs)
        cache = self.model.new_cache(len(jobs), max(len(job.prompt) + len(job.lead) for job in jobs))
        for job in jobs:
            cache.add(prompts[job.prompt].cache, prompts[job.prompt].row)
        surprises = self._read_leads(jobs, [prompts[job.prompt].last for job in jobs], cache)
        for index, (job, surprise) in enumerate(zip(jobs, surprises, strict=True)):
            cache.lengths[index] -= 1  # the last token is pending
            self._place(Row(job, (job.prompt + job.lead)[-1], surprise, len(job.lead)), cache, index)

    def _read_leads(
        self, jobs: Sequence[Job], before: Sequence[torch.Tensor], cache: KeyValueCache
    ) -> list[float]:
        """Read the text blocks that some jobs begin with, behind their prompts; total surprisal of each."""
        leading = [index for index, job in enumerate(jobs) if job.lead]
        surprises = [0.0] * len(jobs)
        if leading:
            leads = [jobs[index].lead for index in leading]
            _, hidden = self.model.read(leads, cache, leading)
            seen = [
                torch.cat([before[index][None], of_lead[:-1]])
                for index, of_lead in zip(leading, hidden, strict=True)
            ]
            targets = self.model.tensor([token for lead in leads for token in lead])
            surprise = self.model.surprisal(torch.cat(seen), targets).double().cpu()
            for index, of_lead in zip(leading, torch.split(surprise, [len(lead) for lead in leads]), strict=True):
                surprises[index] = float(of_lead.sum())
        return surprises

    def _read_prompts(self, jobs: Sequence[Job]) -> dict[tuple[int, ...], _Prompt]:
        """The jobs' prompts; the last one is remembered for jobs that wait."""
        known = {self._prompt.tokens: self._prompt} if self._prompt else {}
        new = [prompt for prompt in dict.fromkeys(job.prompt for job in jobs) if prompt not in known]
        if new:
            cache, hidden = self.model.read(new, capacity=max(map(len, new)))
            known |= {prompt: _Prompt(prompt, cache, row, hidden[row][-1]) for row, prompt in enumerate(new)}
        self._prompt = None
        if self._waiting and self._waiting[-1].prompt in known:
            self._prompt = known[self._waiting[-1].prompt]
        return known

    def _place(self, row: Row, source: KeyValueCache, index: int) -> None:
        """Put a row, which is row ``index`` of a cache, into the pool for its next blank."""
        pool = self._tail if self._planned and not row.blank.after else self._main
        while not pool.room:
            self._advance(pool)
        pool.add(row, source, index)

    def _advance(self, pool: Pool) -> None:
        """Write a token in each row; judge the drafts that are long enough, and go to their next blanks."""
        self._write(pool)
        drafted = [
            index
            for index, row in enumerate(pool.rows)
            if len(row.draft) == row.blank.length + self.infiller.sigma
        ]
        self._judge(pool, drafted)
        for index in reversed(drafted):
            row = pool.rows[index]
            if row.finished:
                self._finished.append(pool.remove(index))
                continue
            row.start_draft()
            if self._planned and not row.blank.after:
                self._place(row, pool.cache, index)
                pool.remove(index)

    def _write(self, pool: Pool) -> None:
        """One token more in the draft of each row, greedily."""
        model, rows = self.model, pool.rows
        tokens = model.tensor([row.pending for row in rows])
        if self._planned and pool is self._main:
            step = planned_step(model, pool.cache, tokens, [row.future for row in rows], self.infiller.planning)
        else:
            step = plain_step(model, pool.cache, tokens)
        pool.cache.write(step.states, range(len(rows)), pool.cache.lengths)
        pool.cache.lengths = [length + 1 for length in pool.cache.lengths]
        kinds = [
            token_kind(first=not row.draft, begins_word=row.blank.begins_word, line_breaks=row.job.line_breaks)
            for row in rows
        ]
        allowed = self.infiller.allowed[model.tensor(kinds)]
        chosen = step.scores.masked_fill(~allowed, -torch.inf).argmax(-1)
        starts = model.tensor([(row.blank.after or (0,))[0] for row in rows])
        both = step.plain.gather(1, torch.stack([chosen, starts], dim=1))
        surprise = step.plain.logsumexp(-1, keepdim=True) - both
        for row, token, (of_token, of_start) in zip(rows, chosen.tolist(), surprise.tolist(), strict=True):
            row.write(token, of_token, of_start)

    def _judge(self, pool: Pool, drafted: Sequence[int]) -> None:
        """Choose how many tokens of each draft to keep, and write them and the text block behind them."""
        for index in drafted:
            if not pool.rows[index].blank.after:  # open-ended: judged on what is written and the prefix
                pool.rows[index].keep([0.0] * len(pool.rows[index].draft))
        judged = [index for index in drafted if not pool.rows[index].finished]
        judged.sort(key=lambda index: layout_size(pool.rows[index]))
        while judged:
            size = layout_size(pool.rows[judged[-1]])
            count = max(1, MASK_ENTRIES // (size * (pool.cache.slots + size)))
            judge(self.model, pool, judged[-count:])
            del judged[-count:]


def _by_work(jobs: Sequence[Job], sigma: int) -> list[Job]:
    """Most tokens to generate first, so that few are left alone at the end; jobs of one prompt together."""
    work = {job: sum(blank.length + sigma for blank in job.blanks) for job in jobs}
    most: dict[tuple[int, ...], int] = {}
    for job in jobs:
        most[job.prompt] = max(most.get(job.prompt, 0), work[job])
    return sorted(jobs, key=lambda job: (-most[job.prompt], job.prompt, -work[job]))


@dataclass(frozen=True)
class _Prompt:
    """A prompt that was read: its row of a cache, and the last token's hidden state."""

    tokens: tuple[int, ...]
    cache: KeyValueCache
    row: int
    last: torch.Tensor
