"""Sampling with continuous batching: a prompt is read once for all its samples, and a finished sample makes room.

The random numbers of a sample come from a counter-based generator (Philox) under the sample's own key, so a sample
depends on its prompt, key and settings, and not on the batch, the order or the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mars_score.infilling.batch import Batch
from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import plain_step
from mars_score.infilling.tokens import has_line_break
from mars_score.models.memory import BatchSize, cache_bytes
from mars_score.models.torch_modes import ordinary_mode
from mars_score.sampling.jobs import Done, Sample, SampleJob

ROWS = {"cpu": 96}  # samples decoded together; more are hardly faster
ROWS_ELSEWHERE = 1024
CANDIDATE_TOKENS = 512  # sorted first; all of them only where these do not reach top_p


@dataclass
class _State:
    """A sample being drawn: ``pending`` is the last token, whose keys and values are not cached."""

    job: SampleJob
    pending: int
    uniforms: NDArray[np.float64]
    tokens: list[int] = field(default_factory=list)


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
        self._batch = BatchSize(batch_size or ROWS.get(model.device.type, ROWS_ELSEWHERE))
        allowed = torch.from_numpy(model.codec.allowed(model.vocabulary)[3]).to(model.device)  # line breaks, too
        self.stops = _stop_tokens(model)
        allowed[list(self.stops)] = True
        self._barred = ~allowed

    def sample(self, jobs: Sequence[SampleJob], done: Done | None = None) -> list[Sample]:
        """One sample for each job; equal jobs are drawn once, and reported as they are done."""
        drawn: dict[SampleJob, Sample] = {}

        def note(job: SampleJob, sample: Sample) -> None:
            drawn[job] = sample
            if done:
                done(job, sample)

        def run(rows: int) -> None:  # after memory ran out what was under way begins anew
            self._run([job for job in dict.fromkeys(jobs) if job not in drawn], rows, note)

        with ordinary_mode():
            if jobs:
                longest = max(len(job.prompt) + job.most for job in jobs)
                fitting = cache_bytes(self.model.device) // (self.model.token_bytes * longest)
                self._batch.run(run, max(1, min(fitting, len(set(jobs)))))
        return [drawn[job] for job in jobs]

    @property
    def batch_size(self) -> int:
        """Largest number of samples decoded together."""
        return self._batch.size

    def _run(self, jobs: Sequence[SampleJob], rows: int, note: Done) -> None:
        waiting = sorted(jobs, key=lambda job: (len(job.prompt) + job.most, job.prompt))  # taken from the end
        capacity = max(len(job.prompt) + job.most for job in jobs)
        batch = Batch[_State](self.model.new_cache(rows, capacity))
        prompt: tuple[tuple[int, ...], KeyValueCache] | None = None
        while waiting or batch.states:
            while waiting and batch.room:
                job = waiting.pop()
                if prompt is None or prompt[0] != job.prompt:
                    prompt = job.prompt, self._read(job.prompt)
                batch.add(_State(job, job.prompt[-1], job.uniforms), prompt[1], 0, len(job.prompt) - 1)
            for index in reversed(self._step(batch.cache, batch.states)):
                state = batch.remove(index)
                note(state.job, self._sample(state))

    def _read(self, prompt: tuple[int, ...]) -> KeyValueCache:
        """The keys and values of a prompt but for its last token, whose pass draws the first one."""
        if len(prompt) == 1:
            cache = self.model.new_cache(1, 1)
            cache.lengths = [0]
            return cache
        return self.model.read([prompt[:-1]], capacity=len(prompt) - 1)[0]

    def _step(self, cache: KeyValueCache, active: Sequence[_State]) -> list[int]:
        """Draw one token for each sample; the indices of those that are done."""
        model = self.model
        step = plain_step(model, cache, model.tensor([state.pending for state in active]))
        cache.write(step.states, range(len(active)), cache.lengths)
        cache.lengths = [length + 1 for length in cache.lengths]
        uniforms = np.array([state.uniforms[len(state.tokens)] for state in active])
        tokens = draw(step.plain.masked_fill(self._barred, -torch.inf), self.temperature, self.top_p, uniforms)
        finished = []
        for index, (state, token) in enumerate(zip(active, tokens, strict=True)):
            state.pending = token
            state.tokens.append(token)
            if token in self.stops or len(state.tokens) == state.job.most or self.ends_line(state.tokens):
                finished.append(index)
        return finished

    def ends_line(self, tokens: Sequence[int]) -> bool:
        """Whether the last token brings a line break after some text."""
        return has_line_break(self.model.codec.decode(tokens[-1:])) and bool(
            self.model.codec.decode(tokens).strip()
        )

    def _sample(self, state: _State) -> Sample:
        stopped = state.tokens[-1] in self.stops
        tokens = state.tokens[:-1] if stopped else state.tokens
        return Sample(tuple(tokens), stopped or self.ends_line(tokens))


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
    count = min(CANDIDATE_TOKENS, logits.shape[1])
    top, tokens = logits.topk(count, dim=-1)
    top = (top - total).double().exp()
    if count < logits.shape[1] and bool((top.sum(-1) < top_p).any()):
        top, tokens = logits.sort(dim=-1, descending=True)
        top = (top - total).double().exp()
    before = top.cumsum(-1) - top
    top = top * (before < top_p)
    cumulative = top.cumsum(-1)
    places = torch.from_numpy(uniforms).to(top.device) * cumulative[:, -1]
    chosen = (cumulative > places[:, None]).to(torch.uint8).argmax(-1)
    return [int(token) for token in tokens.gather(1, chosen[:, None])[:, 0]]


def _stop_tokens(model: CausalLanguageModel) -> frozenset[int]:
    """Tokens that end a text: those of the model's generation settings and the tokenizer's end-of-text."""
    found = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    ends = [*(found if isinstance(found, list) else [found]), getattr(model.codec.tokenizer, "eos_token_id", None)]
    return frozenset(int(token) for token in ends if token is not None)
