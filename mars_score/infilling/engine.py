"""Batched infilling: generate, judge, revise (Algorithm 2), many jobs abreast, blank by blank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.jobs import Blank, Infill, Job
from mars_score.infilling.judging import Continuations
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.infilling.tokens import token_kind
from mars_score.settings import InfillingSettings, PlanningSettings
from mars_score.torch_modes import ordinary_mode

CACHE_BYTES = 2**30  # a batch's cached keys and values; planning needs about six times as much
MASK_ENTRIES = 2**26  # attention mask entries of one judging pass


@dataclass
class _Row:
    """A job under way."""

    job: Job
    pending: int  # the last written token; its keys and values are not cached
    surprise: float  # total surprisal of the reference tokens written so far, in nats
    count: int  # their number
    infills: list[Infill] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)  # generated tokens of the blank at hand
    draft_surprise: list[float] = field(default_factory=list)  # of each generated token
    next_surprise: list[float] = field(default_factory=list)  # of the next block's start behind each of them

    @property
    def blank(self) -> Blank:
        return self.job.blanks[len(self.infills)]

    @property
    def finished(self) -> bool:
        return len(self.infills) == len(self.job.blanks)


class CausalInfiller:
    """Fills the blanks of jobs with a causal language model.

    Args:
        model: the language model.
        planning: the planner's settings.
        infilling: sigma and the rule for word ends.
        batch_size: jobs abreast, at most.
    """

    def __init__(
        self,
        model: CausalLanguageModel,
        planning: PlanningSettings,
        infilling: InfillingSettings,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.planning = planning
        self.settings = infilling
        self.codec = model.codec
        self.window = model.window
        self.sigma = infilling.sigma
        self.batch_size = batch_size
        self._allowed = torch.from_numpy(self.codec.allowed(model.vocabulary)).to(model.device)
        follows = self.codec.follows_a_word(model.vocabulary)
        self._follows_a_word = torch.from_numpy(follows).to(model.device)

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
            # Rows that plan come first, and those with the most tokens to generate first among them, so
            # that the rows still generating are always the first ones of either kind.
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

    def _start(self, jobs: Sequence[Job], capacity: int) -> tuple[list[_Row], KeyValueCache]:
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
            _Row(job, (job.prompt + job.lead)[-1], surprise, len(job.lead))
            for job, surprise in zip(jobs, surprises, strict=True)
        ], cache

    def _generate(self, rows: list[_Row], cache: KeyValueCache) -> None:
        """Write b + sigma tokens into each row's blank, greedily."""
        planning = [self.planning.planner == "self" and bool(row.blank.after) for row in rows]
        planned_rows = sum(planning)
        for row in rows:
            row.draft, row.draft_surprise, row.next_surprise = [], [], []
        for length in range(max(row.blank.length for row in rows) + self.sigma):
            for start, stop in ((0, planned_rows), (planned_rows, len(rows))):
                active = [row for row in rows[start:stop] if length < row.blank.length + self.sigma]
                if active:
                    self._write(active, cache.view(start, start + len(active)), planned=planning[start])

    def _write(self, rows: list[_Row], cache: KeyValueCache, *, planned: bool) -> None:
        """One token more in the draft of each row."""
        model = self.model
        tokens = torch.tensor([row.pending for row in rows], device=model.device)
        if planned:
            futures = [row.job.future(len(row.infills)) for row in rows]
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
            if row.draft:
                row.next_surprise.append(of_start)
            row.draft.append(token)
            row.draft_surprise.append(of_token)
            row.pending = token

    def _judge(self, rows: list[_Row], cache: KeyValueCache) -> None:
        """Choose how many tokens of each draft to keep and write them and the next text block."""
        with_block = sum(bool(row.blank.after) for row in rows)
        read = len(rows) if self.settings.whole_words else with_block
        for row in rows[read:]:
            self._keep(row, [0.0] * len(row.draft))
        start = 0
        while start < read:
            size = max(1 + len(row.draft) * len(row.blank.after) for row in rows[start:read])
            stop = min(read, start + max(1, MASK_ENTRIES // (size * (cache.slots + size))))
            self._judge_block(rows[start:stop], cache.view(start, stop))
            start = stop

    def _judge_block(self, rows: list[_Row], cache: KeyValueCache) -> None:
        model = self.model
        blocks = [row.blank.after for row in rows]
        layout = Continuations.lay_out(model, [row.draft for row in rows], blocks)
        hidden, states = layout.forward(model, cache)
        starts, rests = self._block_surprise(rows, hidden)
        written = cache.lengths - (layout.generated - 1)
        places = []
        for index, row in enumerate(rows):
            block, n = row.blank.after, len(row.draft)
            totals = (
                [
                    start + rest
                    for start, rest in zip([*row.next_surprise, starts[index]], rests[index], strict=True)
                ]
                if block
                else [0.0] * n
            )
            kept = self._keep(row, totals, self._word_ends(row, hidden[index, 0]))
            places.append(
                [*([0] if kept == n else []), *range(1 + (kept - 1) * len(block), 1 + kept * len(block))]
            )
            cache.lengths[index] = written[index] + min(kept, n - 1)
            row.pending = (*row.draft[:kept], *block)[-1]
        take, counts = model.pad(places)
        chosen = [
            tuple(
                state.gather(2, take[:, None, :, None].expand(-1, state.shape[1], -1, state.shape[3]))
                for state in layer
            )
            for layer in states
        ]
        cache.append(chosen, counts)  # type: ignore[arg-type]
        cache.lengths -= 1  # the last written token is fed again

    def _block_surprise(self, rows: list[_Row], hidden: Tensor) -> tuple[list[float], list[list[float]]]:
        """Surprisal of the next block: its first token after the whole draft, its others behind each prefix."""
        vectors, targets = [hidden[:, 0]], [row.blank.after[0] if row.blank.after else 0 for row in rows]
        for index, row in enumerate(rows):
            n, block = len(row.draft), row.blank.after
            if len(block) > 1:
                copies = hidden[index, 1 : 1 + n * len(block)].reshape(n, len(block), -1)
                vectors.append(copies[:, :-1].flatten(0, 1))
                targets += block[1:] * n
        surprise = self.model.surprisal(
            torch.cat(vectors), torch.tensor(targets, device=self.model.device)
        ).double()
        starts, done = surprise[: len(rows)].tolist(), len(rows)
        rests = []
        for row in rows:
            n, others = len(row.draft), max(0, len(row.blank.after) - 1)
            rests.append(surprise[done : done + n * others].reshape(n, others).sum(1).tolist())
            done += n * others
        return starts, rests

    def _word_ends(self, row: _Row, hidden: Tensor) -> list[bool] | None:
        """Which prefixes of the draft end where a word ends; None: any may be kept."""
        if not self.settings.whole_words:
            return None
        allowed = self._allowed[token_kind(first=False, begins_word=False, line_breaks=row.job.line_breaks)]
        after = self.model.logits(hidden).masked_fill(~allowed, -torch.inf).argmax()
        following = torch.tensor([*row.draft[1:], int(after)], device=self.model.device)
        ends: list[bool] = self._follows_a_word[following].tolist()
        return ends if any(ends) else None

    def _keep(self, row: _Row, block_surprise: Sequence[float], allowed: Sequence[bool] | None = None) -> int:
        """Keep the prefix of lowest perplexity, the shortest of equals; returns its length."""
        block = len(row.blank.after)
        totals, means = [], []
        total = row.surprise
        for length, (token, rest) in enumerate(zip(row.draft_surprise, block_surprise, strict=True), start=1):
            total += token
            totals.append(total + rest)
            means.append((total + rest) / (row.count + length + block))
        candidates = [i for i in range(len(means)) if allowed is None or allowed[i]]
        best = min(candidates, key=means.__getitem__)
        row.surprise, row.count = totals[best], row.count + best + 1 + block
        row.infills.append(Infill(tuple(row.draft[: best + 1]), tuple(math.exp(mean) for mean in means)))
        return best + 1
