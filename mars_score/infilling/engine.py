"""Batched infilling: generate, judge, revise (Algorithm 2), many jobs abreast, blank by blank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.jobs import Infill, Job
from mars_score.infilling.judging import judge, layout_size
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.infilling.row import Row
from mars_score.infilling.tokens import token_kind
from mars_score.settings import InfillingSettings, PlanningSettings
from mars_score.torch_modes import ordinary_mode

CACHE_BYTES = 2**30  # a batch's cached keys and values; planning needs about six times as much
MASK_ENTRIES = 2**26  # attention mask entries of one judging pass


class CausalInfiller:
    """Fills the blanks of jobs with a causal language model.

    Args:
        model: the language model.
        planning: the planner's settings.
        infilling: sigma.
        batch_size: jobs abreast, at most.
    """

    shortest_start = 2  # one token in the cache that is planned with, and one to feed

    def __init__(
        self,
        model: CausalLanguageModel,
        planning: PlanningSettings,
        infilling: InfillingSettings,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.planning = planning
        self.codec = model.codec
        self.window = model.window
        self.sigma = infilling.sigma
        self.batch_size = batch_size
        self._allowed = torch.from_numpy(self.codec.allowed(model.vocabulary)).to(model.device)

    def infill(
        self, jobs: Sequence[Job], progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once.

        Args:
            jobs: templates in token ids.
            progress: called with the number of jobs done and the number of different jobs.
        """
        different = [job for job in dict.fromkeys(jobs) if job.blanks]
        infills: dict[Job, tuple[Infill, ...]] = dict.fromkeys(jobs, ())
        done = 0
        with ordinary_mode():
            for batch in self._batches(different):
                infills.update(self._infill_batch(batch))
                done += len(batch)
                if progress:
                    progress(done, len(different))
        return [infills[job] for job in jobs]

    def _batches(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Longest first, jobs of one prompt together, within the batch size and the cache's memory."""
        limit = CACHE_BYTES // self.model.token_bytes
        batch: list[Job] = []
        for job in sorted(jobs, key=lambda job: (-len(job.prompt), job.prompt, -job.most_tokens(self.sigma))):
            longest = max(other.most_tokens(self.sigma) for other in (*batch, job))
            if batch and (len(batch) == self.batch_size or (len(batch) + 1) * longest > limit):
                yield batch
                batch = []
            batch.append(job)
        if batch:
            yield batch

    def _infill_batch(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, tuple[Infill, ...]]]:
        capacity = max(job.most_tokens(self.sigma) for job in jobs)
        rows, cache = self._start(jobs, capacity)
        while True:
            yield from ((row.job, tuple(row.infills)) for row in rows if row.finished)
            # Rows with a text block to come (they plan and are judged by it) before rows without, either kind
            # by falling number of tokens to generate: those still generating are the first ones of a kind.
            order = sorted(
                (index for index, row in enumerate(rows) if not row.finished),
                key=lambda index: (not rows[index].blank.after, -rows[index].blank.length),
            )
            if not order:
                return
            rows = [rows[index] for index in order]
            cache = cache.select(order, capacity)
            self._generate(rows, cache)
            self._judge(rows, cache)

    def _start(self, jobs: Sequence[Job], capacity: int) -> tuple[list[Row], KeyValueCache]:
        """Read prompts (each different one once) and leads."""
        prompts = list(dict.fromkeys(job.prompt for job in jobs))
        cache, prompt_hidden = self.model.read(prompts, capacity=max(map(len, prompts)))
        which = [prompts.index(job.prompt) for job in jobs]
        cache = cache.select(which, capacity)
        surprises = [0.0] * len(jobs)
        if any(job.lead for job in jobs):
            _, lead_hidden = self.model.read([job.lead for job in jobs], cache)
            for index, job in enumerate(jobs):
                if job.lead:
                    before = torch.cat([prompt_hidden[which[index]][-1:], lead_hidden[index][:-1]])
                    targets = torch.tensor(job.lead, device=self.model.device)
                    surprises[index] = float(self.model.surprisal(before, targets).double().sum())
        cache.lengths -= 1
        return [
            Row(job, (job.prompt + job.lead)[-1], surprise, len(job.lead))
            for job, surprise in zip(jobs, surprises, strict=True)
        ], cache

    def _generate(self, rows: list[Row], cache: KeyValueCache) -> None:
        """Write b + sigma tokens into each row's blank, greedily."""
        with_block = sum(bool(row.blank.after) for row in rows)
        planned = self.planning.planner == "self"
        for row in rows:
            row.start_draft()
        for length in range(max(row.blank.length for row in rows) + self.sigma):
            for start, stop in ((0, with_block), (with_block, len(rows))):
                active = [row for row in rows[start:stop] if length < row.blank.length + self.sigma]
                if active:
                    self._write(
                        active, cache.view(start, start + len(active)), planned=planned and start < with_block
                    )

    def _write(self, rows: list[Row], cache: KeyValueCache, *, planned: bool) -> None:
        """One token more in the draft of each row."""
        model = self.model
        tokens = torch.tensor([row.pending for row in rows], device=model.device)
        if planned:
            futures = [row.future for row in rows]
            step = planned_step(model, cache, tokens, futures, self.planning)
        else:
            step = plain_step(model, cache, tokens)
        cache.append(step.states)
        kinds = [
            token_kind(first=not row.draft, begins_word=row.blank.begins_word, line_breaks=row.job.line_breaks)
            for row in rows
        ]
        chosen = step.scores.masked_fill(~self._allowed[kinds], -torch.inf).argmax(-1)
        starts = torch.tensor([(row.blank.after or (0,))[0] for row in rows], device=model.device)
        both = step.plain.gather(1, torch.stack([chosen, starts], dim=1))
        surprise = (step.plain.logsumexp(-1, keepdim=True) - both).tolist()
        for row, token, (of_token, of_start) in zip(rows, chosen.tolist(), surprise, strict=True):
            row.write(token, of_token, of_start)

    def _judge(self, rows: list[Row], cache: KeyValueCache) -> None:
        """Choose how many tokens of each draft to keep and write them and the next text block."""
        with_block = sum(bool(row.blank.after) for row in rows)
        for row in rows[with_block:]:  # open-ended: judged on what is written and the prefix
            row.keep([0.0] * len(row.draft))
        start = 0
        while start < with_block:
            size = max(map(layout_size, rows[start:with_block]))
            stop = min(with_block, start + max(1, MASK_ENTRIES // (size * (cache.slots + size))))
            judge(self.model, rows[start:stop], cache.view(start, stop))
            start = stop
