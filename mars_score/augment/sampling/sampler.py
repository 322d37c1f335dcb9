"""Sampling with continuous batching: samples of a prompt share its keys and values, and make room when done.

The random numbers of a sample come from a counter-based generator (Philox) under the sample's own key, so a sample
depends on its prompt, key and settings, and not on the batch, the order or the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mars_score.augment.sampling.jobs import Done, Sample, SampleJob
from mars_score.models.engine.attention import Feed
from mars_score.models.engine.batch import Batch
from mars_score.models.engine.cache import KeyValueCache
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.tokens import has_line_break
from mars_score.models.memory import BatchSize, cache_bytes
from mars_score.models.torch_modes import ordinary_mode

SAMPLES = {"cpu": 96}  # decoded together; more are hardly faster
SAMPLES_ELSEWHERE = 1024
GROUP = (
    8  # samples that share a row of the cache: more save prompts, but compare each token with more of the others
)
CANDIDATE_TOKENS = 512  # sorted first; 8 times as many, and again, for rows where these do not reach top_p


@dataclass(eq=False)
class _State:
    """A sample being drawn: ``pending`` is the last token, whose keys and values are not cached."""

    job: SampleJob
    pending: int
    uniforms: NDArray[np.float64]
    tokens: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)  # of its cached tokens but for the prompt's

    @property
    def position(self) -> int:
        """Of the pending token in the text."""
        return len(self.job.prompt) - 1 + len(self.tokens)


@dataclass(eq=False)
class _Group:
    """Samples of one prompt, which is read once: one row of the cache."""

    prompt: tuple[int, ...]
    waiting: list[SampleJob]
    states: list[_State] = field(default_factory=list)

    @property
    def cached(self) -> int:
        """Cached tokens of the prompt: all but the last, whose pass draws the first token."""
        return len(self.prompt) - 1

    def start(self, most: int) -> None:
        """Begin samples, at most so many."""
        self.states = [_State(job, job.prompt[-1], job.uniforms) for job in self.waiting[:most]]
        del self.waiting[:most]


class Sampler:
    """Draws texts from a causal language model.

    Args:
        model: the language model.
        temperature: divides the logits, above 0.
        top_p: tokens are drawn among the most likely ones that together reach this probability, in (0, 1].
        batch_size: samples decoded together, at most; None: chosen by the device. Halved where memory runs out.
    """

    def __init__(
        self, model: CausalLanguageModel, temperature: float, top_p: float, batch_size: int | None = None
    ) -> None:
        self.model = model
        self.temperature = temperature
        self.top_p = top_p
        self._batch = BatchSize(batch_size or SAMPLES.get(model.device.type, SAMPLES_ELSEWHERE))
        allowed = torch.from_numpy(model.codec.allowed(model.vocabulary)[3]).to(model.device)  # line breaks, too
        self.stops = _stop_tokens(model)
        allowed[list(self.stops)] = True
        self._barred = ~allowed

    def sample(self, jobs: Sequence[SampleJob], done: Done | None = None) -> list[Sample]:
        """One sample for each job; equal jobs are drawn once, and reported as they are done.

        ``done`` may return further jobs that equal the finished one but for their keys.
        """
        drawn: dict[SampleJob, Sample] = {}
        asked = dict.fromkeys(jobs)

        def note(job: SampleJob, sample: Sample) -> Sequence[SampleJob]:
            drawn[job] = sample
            more = (done(job, sample) if done else None) or ()
            asked.update(dict.fromkeys(more))
            for one in more:  # even if it was drawn before
                drawn.pop(one, None)
            return more

        def run(most: int) -> None:  # after memory ran out what was under way begins anew
            self._run([job for job in asked if job not in drawn], most, note)

        with self.model.exclusive(), ordinary_mode():
            if asked:
                self._batch.run(run, len(asked))
        return [drawn[job] for job in jobs]

    @property
    def batch_size(self) -> int:
        """Largest number of samples decoded together."""
        return self._batch.size

    def _run(
        self,
        jobs: Sequence[SampleJob],
        most: int,
        note: Callable[[SampleJob, Sample], Sequence[SampleJob]],
    ) -> None:
        """Draw samples, at most ``most`` together."""
        size = min(GROUP, most)
        waiting = _groups(jobs, size)  # taken from the end
        capacity = max(len(job.prompt) + size * job.most for job in jobs)
        fitting = cache_bytes(self.model.device) // (self.model.token_bytes * capacity)
        batch = Batch[_Group](self.model.new_cache(max(1, min(fitting, most, len(waiting))), capacity))
        prompt: tuple[tuple[int, ...], KeyValueCache] | None = None
        while waiting or batch.states:
            active = sum(len(group.states) for group in batch.states)
            while waiting and batch.room and active + len(waiting[-1].waiting) <= most:
                group = waiting.pop()
                if prompt is None or prompt[0] != group.prompt:
                    prompt = group.prompt, self._read(group.prompt)
                group.start(size)
                batch.add(group, prompt[1], 0, group.cached)
                active += len(group.states)
            finished = self._step(batch)
            for row in reversed(range(len(batch.states))):
                group = batch.states[row]
                for state in (one for one in group.states if one in finished):
                    group.waiting += note(state.job, self._sample(state))
                group.states = [one for one in group.states if one not in finished]
                if not group.states:
                    group.start(size)
                    batch.cache.lengths[row] = group.cached
                if not group.states:
                    batch.remove(row)

    def _read(self, prompt: tuple[int, ...]) -> KeyValueCache:
        """The keys and values of a prompt but for its last token."""
        if len(prompt) == 1:
            cache = self.model.new_cache(1, 1)
            cache.lengths = [0]
            return cache
        return self.model.read([prompt[:-1]], capacity=len(prompt) - 1)[0]

    def _step(self, batch: Batch[_Group]) -> set[_State]:
        """Draw one token for each sample; those that are done."""
        model, cache = self.model, batch.cache
        active = [(row, state) for row, group in enumerate(batch.states) for state in group.states]
        pending = model.tensor([state.pending for _, state in active])
        positions = model.tensor([state.position for _, state in active])
        hidden, new = model.forward(pending, positions, self._feed(batch))
        rows = [row for row, _ in active]
        for row, state in active:
            state.slots.append(cache.lengths[row])
            cache.lengths[row] += 1
        cache.write(new, rows, [state.slots[-1] for _, state in active])
        uniforms = np.array([state.uniforms[len(state.tokens)] for _, state in active])
        logits = model.logits(hidden).masked_fill_(self._barred, -torch.inf)
        tokens = draw(logits, self.temperature, self.top_p, uniforms)
        finished = set()
        for (_, state), token in zip(active, tokens, strict=True):
            state.pending = token
            state.tokens.append(token)
            if token in self.stops or len(state.tokens) == state.job.most or self.ends_line(state.tokens):
                finished.add(state)
        return finished

    def _feed(self, batch: Batch[_Group]) -> Feed:
        """One token of each sample, which sees the prompt, its own earlier tokens and itself."""
        model, cache = self.model, batch.cache
        counts = [len(group.states) for group in batch.states]
        prompts = model.tensor([group.cached for group in batch.states])
        of_prompt = torch.arange(cache.slots + 1, device=model.device) < prompts[:, None]
        visible = of_prompt[:, None].repeat(1, max(counts), 1)
        own = [
            (row, place, slot)
            for row, group in enumerate(batch.states)
            for place, state in enumerate(group.states)
            for slot in (*state.slots, -1)
        ]
        visible[model.tensor(own).unbind(-1)] = True
        return Feed(counts, model.mask(visible), cache, slots=cache.slots)

    def ends_line(self, tokens: Sequence[int]) -> bool:
        """Whether the last token brings a line break after some text."""
        return has_line_break(self.model.codec.decode(tokens[-1:])) and bool(
            self.model.codec.decode(tokens).strip()
        )

    def _sample(self, state: _State) -> Sample:
        stopped = state.tokens[-1] in self.stops
        tokens = state.tokens[:-1] if stopped else state.tokens
        return Sample(tuple(tokens), stopped or self.ends_line(tokens))


def _groups(jobs: Sequence[SampleJob], size: int) -> list[_Group]:
    """Jobs of one prompt together, at most ``size``; the longest last."""
    in_order = sorted(jobs, key=lambda job: (len(job.prompt) + job.most, job.prompt))
    groups = []
    for prompt, same in groupby(in_order, key=lambda job: job.prompt):
        of_prompt = list(same)
        groups += [_Group(prompt, of_prompt[start : start + size]) for start in range(0, len(of_prompt), size)]
    return groups


def draw(logits: Tensor, temperature: float, top_p: float, uniforms: NDArray[np.float64]) -> list[int]:
    """One token for each row by nucleus sampling (Holtzman et al. 2020), from uniform random numbers.

    Args:
        logits: (rows, vocabulary).
        temperature: divides the logits.
        top_p: the most likely tokens that together reach this probability share it.
        uniforms: numbers in [0, 1), (rows,).
    """
    logits = logits / temperature
    total = logits.logsumexp(-1, keepdim=True)
    drawn = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    rows, count = torch.arange(len(logits), device=logits.device), CANDIDATE_TOKENS
    while len(rows):
        count = min(count, logits.shape[1])
        top, tokens = (logits if len(rows) == len(logits) else logits[rows]).topk(count, dim=-1)
        top = (top - total[rows]).double().exp()
        drawn[rows] = _draw_among(top, tokens, top_p, uniforms[rows.cpu().numpy()])
        wide = (top.sum(-1) < top_p) & (count < logits.shape[1])
        rows, count = rows[wide], 8 * count
    return [int(token) for token in drawn]


def _draw_among(probabilities: Tensor, tokens: Tensor, top_p: float, uniforms: NDArray[np.float64]) -> Tensor:
    """One of each row's tokens, (rows,); tokens and their probabilities in falling order, (rows, tokens)."""
    before = probabilities.cumsum(-1) - probabilities
    cumulative = (probabilities * (before < top_p)).cumsum(-1)
    places = torch.from_numpy(uniforms).to(cumulative.device) * cumulative[:, -1]
    chosen = (cumulative > places[:, None]).to(torch.uint8).argmax(-1)
    return tokens.gather(1, chosen[:, None])[:, 0]


def _stop_tokens(model: CausalLanguageModel) -> frozenset[int]:
    """Tokens that end a text: those of the model's generation settings and the tokenizer's end-of-text."""
    found = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    ends = [*(found if isinstance(found, list) else [found]), getattr(model.codec.tokenizer, "eos_token_id", None)]
    return frozenset(int(token) for token in ends if token is not None)
