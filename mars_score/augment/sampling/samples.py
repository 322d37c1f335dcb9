"""Contexts -> samples that passed the gates, each set drawn once and kept in the store."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mars_score.augment.sampling.gates import fault_of, tidy
from mars_score.augment.sampling.jobs import Sample, SampleJob
from mars_score.augment.sampling.prompts import Prompt, make_prompt, task_of
from mars_score.data.words import split_words
from mars_score.models.fingerprints import Current
from mars_score.settings import SamplingSettings, Settings
from mars_score.settings.fields import settings_of
from mars_score.settings.language import ENGLISH, language_code
from mars_score.store.lookup import get_or_compute, model_key
from mars_score.store.results import digest
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.augment.sampling.sampler import Sampler

_METHOD = 1  # part of the store's keys; raised when the same settings come to give other samples
UNSAMPLED_TASKS = ("answer", "data")  # wrong answers and records that are continued are no references
ATTEMPTS = 3  # how often missing samples are drawn, the first time included
TOKEN_LIMITS = (16, 32, 64, 128)  # few different ones, so that rows of one context share their samples
UNKNOWN_LIMIT = 64  # tokens of a sample where no references tell their length
TOKENS_PER_WORD = 2.0  # of the references: 1.35 tokens a word, and room for longer samples


class Request(NamedTuple):
    """What samples depend on besides the model and the settings.

    Attributes:
        context: without outer whitespace, blank for none.
        token_limit: tokens of a sample at most.
        task: see :func:`mars_score.augment.sampling.prompts.make_prompt`.
    """

    context: str
    token_limit: int
    task: str

    @property
    def wanted(self) -> bool:
        """Whether samples are of use: not without a context, nor for tasks that small models fail at."""
        return bool(self.context) and self.task not in UNSAMPLED_TASKS


@dataclass(frozen=True)
class Samples:
    """The samples of a context.

    Attributes:
        texts: those that passed the gates, at most ``samples`` of the settings, all different.
        dropped: how many were dropped for each fault.
        context_cut: whether they were drawn given a part of the context only.
    """

    texts: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    context_cut: bool = False


def make_request(context: str, references: Sequence[str], settings: SamplingSettings) -> Request:
    """The request of a row: samples are about as long as its references, if it has any (their median length)."""
    limit = UNKNOWN_LIMIT
    if references:
        words = statistics.median(len(split_words(reference)) for reference in references)
        limit = next((limit for limit in TOKEN_LIMITS if TOKENS_PER_WORD * words <= limit), TOKEN_LIMITS[-1])
    return Request(context, limit, settings.task or task_of(context, references, limit))


def requests_of(
    contexts: Sequence[str], references: Sequence[Sequence[str]], settings: SamplingSettings
) -> list[Request]:
    """The request of each row; a row may have no references."""
    return [make_request(context, row, settings) for context, row in zip(contexts, references, strict=True)]


def encode_samples(samples: Samples) -> bytes:
    """Samples as JSON."""
    return json.dumps(asdict(samples)).encode()


def decode_samples(encoded: bytes) -> Samples:
    """What :func:`encode_samples` gave."""
    values = json.loads(encoded)
    return Samples(tuple(values["texts"]), values["dropped"], values["context_cut"])


def token_limit(sampler: Sampler, request: Request) -> int:
    """Tokens of a sample at most: a half of the language model's window where that is small."""
    return min(request.token_limit, sampler.model.window // 2)


def prompt_of(sampler: Sampler, request: Request, language: str) -> Prompt:
    """What the sampler's language model continues for a request."""
    model = sampler.model
    with model.exclusive():  # a call changes settings of the tokenizer
        room = model.window - token_limit(sampler, request)
        return make_prompt(model.codec, request.context, request.task, room, language)


def draw_samples(
    sampler: Sampler,
    settings: SamplingSettings,
    requests: Sequence[Request],
    done: Callable[[Request, Samples], None],
    language: str = ENGLISH,
) -> None:
    """Draw the samples of different requests.

    A sample that fails a gate is drawn again with fresh random numbers, ``ATTEMPTS`` times in all.

    Args:
        sampler: draws single texts.
        settings: number of samples and seed.
        requests: all different.
        done: called with each request and its samples, in the order in which they are done.
        language: see :func:`mars_score.augment.sampling.prompts.make_prompt`.
    """
    waiting: dict[SampleJob, list[_Draft]] = {}

    def begin(draft: _Draft) -> list[SampleJob]:
        jobs = draft.next_jobs(settings)
        new = [job for job in jobs if job not in waiting]
        for job in jobs:
            waiting.setdefault(job, []).append(draft)
        return new

    def note(job: SampleJob, sample: Sample) -> list[SampleJob]:
        more = []
        for draft in waiting.pop(job):
            draft.drawn[job] = sample
            if len(draft.drawn) == len(draft.jobs):
                draft.judge(sampler)
                if draft.missing(settings) and draft.attempts < ATTEMPTS:
                    more += begin(draft)
                else:
                    done(draft.request, draft.samples)
        return more

    drafts = [_Draft(one, prompt_of(sampler, one, language), token_limit(sampler, one)) for one in requests]
    sampler.sample([job for draft in drafts for job in begin(draft)], note)


@dataclass
class _Draft:
    """The samples of a request as far as they are drawn."""

    request: Request
    prompt: Prompt
    most: int  # tokens of a sample
    texts: list[str] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    jobs: list[SampleJob] = field(default_factory=list)  # of this attempt
    drawn: dict[SampleJob, Sample] = field(default_factory=dict)

    @property
    def samples(self) -> Samples:
        return Samples(tuple(self.texts), dict(self.dropped), self.prompt.cut)

    def missing(self, settings: SamplingSettings) -> int:
        return settings.samples - len(self.texts)

    def next_jobs(self, settings: SamplingSettings) -> list[SampleJob]:
        first = len(self.texts) + self.dropped.total()
        self.attempts += 1
        self.drawn = {}
        self.jobs = [
            SampleJob(
                self.prompt.tokens,
                digest(settings.sample_seed, self.request.context, number),
                self.most,
            )
            for number in range(first, first + self.missing(settings))
        ]
        return self.jobs

    def judge(self, sampler: Sampler) -> None:
        """Sort the drawn samples, in the order of their numbers."""
        for job in self.jobs:
            sample = self.drawn[job]
            text = tidy(sampler.model.codec.decode(sample.tokens), ended=sample.ended)
            fault = fault_of(text, self.request.context, self.texts)
            if fault is None:
                self.texts.append(text)
            else:
                self.dropped[fault] += 1


class ContextSampler:
    """Draws samples given contexts, or finds them in the store; the language model is loaded only for new ones.

    Args:
        settings: of all stages.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
    """

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._settings, self._runtime = settings, runtime
        self._sampler = Current(settings.models.language_model, self._make_sampler)

    def _make_sampler(self) -> Sampler:
        from mars_score.augment.sampling.sampler import Sampler
        from mars_score.models.loading import causal_model

        sampling = self._settings.sampling
        model = causal_model(self._settings.models, self._runtime)
        return Sampler(model, sampling.sample_temperature, sampling.sample_top_p, self._runtime.batch_size)

    def prompt(self, request: Request) -> str:
        """What the language model continues for a request, as text with its special tokens.

        Raises:
            ModelUnavailableError: the language model cannot be loaded.
        """
        sampler = self._sampler.get()
        return sampler.model.codec.decode(prompt_of(sampler, request, self._settings.language).tokens)

    def draw(
        self, requests: Iterable[Request], progress: Callable[[int, int], None] | None = None
    ) -> dict[Request, Samples]:
        """The samples of each different request; none for those that want none.

        Raises:
            ModelUnavailableError: the language model cannot be loaded.
        """
        sampling, models = self._settings.sampling, self._settings.models
        different = list(dict.fromkeys(requests))
        wanted = [one for one in different if one.wanted and sampling.samples > 0]
        if not wanted:
            return dict.fromkeys(different, Samples(()))
        method = [getattr(sampling, one.name) for one in settings_of(SamplingSettings) if one.name != "task"]
        language = language_code(self._settings.language)
        if language != ENGLISH:
            method.append(language)
        common = model_key(models.language_model, self._sampler.get, "samples", _METHOD, method, models.dtype)

        def compute(missing: list[Request], done: Callable[[Request, Samples], None]) -> None:
            draw_samples(self._sampler.get(), sampling, missing, done, self._settings.language)

        found = get_or_compute(
            self._runtime.store,
            "samples",
            wanted,
            lambda one: digest(common, one.context, one.token_limit, one.task),
            compute,
            encode_samples,
            decode_samples,
            progress,
        )
        return {one: found.get(one, Samples(())) for one in different}
