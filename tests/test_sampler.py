"""The sampler against plain sequential sampling in float64."""

import hashlib

import numpy as np
import pytest
import tiny_models
import torch

from mars_score.augment.sampling import sampler as sampler_module
from mars_score.augment.sampling.jobs import Sample, SampleJob
from mars_score.augment.sampling.sampler import Sampler, draw
from mars_score.models.engine.language_model import CausalLanguageModel

PROMPTS = [(1, 5, 7), (2,), (9, 8, 7, 6, 5, 4, 3), (1, 5, 7, 9)]


def jobs_of(samples=2, most=9):
    return [
        SampleJob(prompt, hashlib.blake2b(f"{prompt} {number}".encode(), digest_size=16).digest(), most + number)
        for prompt in PROMPTS
        for number in range(samples)
    ]


def plain_sample(sampler, job, temperature, top_p):
    """One sample by full forward passes, a full sort and a loop: the definition of nucleus sampling."""
    model, written = sampler.model, []
    while len(written) < job.most:
        logits = model.model(input_ids=torch.tensor([[*job.prompt, *written]]), use_cache=False).logits[0, -1]
        logits = logits.masked_fill(sampler._barred, -torch.inf).double() / temperature
        probabilities = (logits - logits.logsumexp(0)).exp().tolist()
        order = sorted(range(len(probabilities)), key=lambda token: -probabilities[token])
        nucleus, total = [], 0.0
        for token in order:
            nucleus.append(token)
            total += probabilities[token]
            if total >= top_p:
                break
        place, reached = job.uniforms[len(written)] * total, 0.0
        for token in nucleus:
            reached += probabilities[token]
            if reached > place:
                break
        if token in sampler.stops:
            return Sample(tuple(written), True)
        written.append(token)
        if len(f"{model.codec.decode([token])}.".splitlines()) > 1 and model.codec.decode(written).strip():
            return Sample(tuple(written), True)
    return Sample(tuple(written), False)


@pytest.fixture(scope="module", params=[tiny_models.tiny_gpt2, tiny_models.tiny_llama])
def model(request):
    return CausalLanguageModel(*request.param())


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.6), (3.0, 0.9)])
def test_samples_equal_plain_sampling(model, temperature, top_p):
    sampler, jobs = Sampler(model, temperature, top_p), jobs_of()
    with torch.no_grad():
        expected = [plain_sample(sampler, job, temperature, top_p) for job in jobs]
    assert sampler.sample(jobs) == expected
    assert len({sample.tokens for sample in expected}) > len(PROMPTS)  # samples of one prompt differ


@pytest.mark.parametrize("batch_size", [1, 5])
def test_samples_do_not_depend_on_batch_or_order(model, batch_size):
    jobs = jobs_of()
    expected = Sampler(model, 1.0, 0.9).sample(jobs)
    assert Sampler(model, 1.0, 0.9, batch_size).sample(jobs) == expected
    assert Sampler(model, 1.0, 0.9, batch_size).sample(jobs[::-1]) == expected[::-1]


def test_a_longer_limit_continues_the_same_sample(model):
    [short], [long] = (Sampler(model, 1.0, 0.9).sample([SampleJob((1, 5), bytes(16), most)]) for most in (4, 20))
    assert long.tokens[: len(short.tokens)] == short.tokens


def test_equal_jobs_are_drawn_once(model):
    reported = []
    job = jobs_of()[0]
    assert len(set(Sampler(model, 1.0, 0.9).sample([job, job], lambda *one: reported.append(one)))) == 1
    assert len(reported) == 1


def test_the_batch_is_halved_where_memory_runs_out(model, monkeypatch):
    jobs = jobs_of(3)
    expected = Sampler(model, 1.0, 0.9).sample(jobs)

    def short_of_memory(logits, *settings):
        if len(logits) > 3:
            raise MemoryError
        return draw(logits, *settings)

    monkeypatch.setattr(sampler_module, "draw", short_of_memory)
    sampler = Sampler(model, 1.0, 0.9)
    assert sampler.sample(jobs) == expected
    assert sampler.batch_size == 3


def test_draws_follow_the_nucleus(monkeypatch):
    monkeypatch.setattr(sampler_module, "CANDIDATE_TOKENS", 2)  # so that the nucleus is larger
    logits = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15]).log()
    count = 20_000
    uniforms = np.random.default_rng(0).random(count)
    drawn = draw(logits.expand(count, -1), 1.0, 0.8, uniforms)
    found = np.bincount(drawn, minlength=5) / count
    assert found == pytest.approx([0, 0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85], abs=0.01)
