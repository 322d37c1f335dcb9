"""A model object that belongs to its user: shared by threads, and afterwards as it was."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mars_score.infilling.batched import BatchedInfiller
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.encoder import SentenceEncoder
from mars_score.models.likelihood import log_probabilities
from mars_score.models.loading import shared_model
from mars_score.models.nli import NliModel
from mars_score.models.running import Runtime, exclusive
from mars_score.presets import ModelSettings
from mars_score.scorer import MarsScorer
from tests import tiny_models

ROWS = (
    ["She took a train home.", "Nobody came."],
    ["A truck took her home.", "It was shut."],
    ["The car broke.", ""],
)


def modes(model):
    return [module.training for module in model.modules()]


def test_threads_share_models(gpt2, encoder):
    """A scorer for each thread; all find what one finds, and the user's model works as before."""
    models = {"language_model": gpt2, "encoder": encoder, "dtype": "float64"}
    planned = {"planner": "self", "plan_iterations": 1, "max_mask_ratio": 0.2}

    def score(barrier):
        scorer = MarsScorer("mini", variant="paper", store=False, **planned, **models)
        barrier.wait()
        return scorer.score(*ROWS).row_scores

    expected = score(threading.Barrier(1))
    ids = torch.tensor([[5, 6, 7]])
    logits = gpt2[0](ids).logits
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(score, [threading.Barrier(4)] * 4)) == [expected] * 4
    assert gpt2[0].config._attn_implementation == "sdpa"
    assert all(parameter.requires_grad and parameter.grad is None for parameter in gpt2[0].parameters())
    assert torch.equal(gpt2[0](ids).logits, logits)


def test_threads_load_a_model_once(named_models):
    spec = ModelSettings(language_model=named_models["language_model"], dtype="float64")
    barrier = threading.Barrier(4)

    def load(_):
        barrier.wait()
        return shared_model("language_model", spec, Runtime(device="cpu"))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(load, range(4)))) == 1


def test_another_thread_waits(gpt2):
    model = CausalLanguageModel(*gpt2)
    tokens = model.codec.encode("A car")
    cache = model.new_cache(rows=1, capacity=len(tokens))
    cache.lengths, entered = [0], threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with exclusive(model.model), exclusive(model.model):  # re-entrant
            running = pool.submit(lambda: (entered.set(), model.extend(cache, [tokens])))
            entered.wait()
            assert not running.done()
        running.result()
        assert cache.lengths == [len(tokens)]


def test_models_are_afterwards_as_their_owner_left_them(monkeypatch):
    model, tokenizer = tiny_models.tiny_gpt2(seed=6)
    encoder = tiny_models.tiny_encoder(seed=4)
    model.train()
    model.transformer.h[0].eval()  # frozen by its owner
    encoder[0].train()
    before = modes(model), modes(encoder)
    assert [len(set(of_model)) for of_model in before] == [2, 2]
    language_model = CausalLanguageModel(model, tokenizer)
    assert modes(model) == before[0]
    assert dict(log_probabilities(language_model, [("A car", "broke.")]))
    assert dict(SentenceEncoder(encoder).encode(["a text"]))
    assert (modes(model), modes(encoder)) == before

    def fail(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(model.transformer.h[1], "forward", fail)
    with pytest.raises(RuntimeError, match="broken"):
        dict(log_probabilities(language_model, [("A car", "broke.")]))
    assert model.config._attn_implementation == "sdpa"
    assert modes(model) == before[0]
    with exclusive(model):  # and is free again
        assert not model.training


GENERATORS = {
    "encode": lambda models: SentenceEncoder(models["encoder"], 1).encode(["a text", "It rained."], tokens=True),
    "entails": lambda models: NliModel(*models["nli"], 1).entails([("It rained.", "a text"), ("a", "b")]),
    "log probabilities": lambda models: log_probabilities(
        CausalLanguageModel(*models["gpt2"]), [("A car", "broke."), ("It", "rained again.")], 1
    ),
    "infill": lambda models: BatchedInfiller(CausalLanguageModel(*models["gpt2"]), PaperConfig(), 1).infill(
        [("A car", Template("She took a bus.", ((8, 10),))), ("", Template("It rained.", ((0, 2),)))]
    ),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_between_two_results_a_model_is_free_and_as_it_was(gpt2, encoder, nli, name):
    """So a generator that is not exhausted leaves nothing to be undone."""
    models = {"gpt2": gpt2, "encoder": encoder, "nli": nli}
    modules = [module for model in (gpt2[0], encoder, nli[0]) for module in model.modules()]
    results = GENERATORS[name](models)
    first = next(results)
    assert torch.is_grad_enabled()
    assert not any(module._forward_hooks for module in modules)
    with ThreadPoolExecutor(1) as pool:
        assert len(list(pool.submit(list, GENERATORS[name](models)).result(60))) == 2
    assert next(results)[0] != first[0]


FORK = """if True:
    import multiprocessing
    import datasets, torch
    from mars_score import MarsScorer
    from tests import tiny_models
    torch.set_num_threads(2)
    scorer = MarsScorer("mini", variant="fast", store=False, encoder=tiny_models.tiny_encoder(seed=4))

    def score(batch=None):
        torch.ones(600, 600) @ torch.ones(600, 600)  # large enough for threads
        return {"mars": scorer.score(["A cat."], ["A dog."], ["A pet."]).scores}

    expected = score()
    child = multiprocessing.get_context("fork").Process(target=score)
    child.start()
    child.join(30)
    assert child.exitcode == 0, child.exitcode
    for count in (1, 2):
        rows = datasets.Dataset.from_dict({"row": [0] * count})
        for (there,) in rows.map(score, num_proc=count)["mars"]:  # float32 with another number of threads
            assert abs(there - expected["mars"][0]) < 1e-6, (there, expected)
"""


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="forks")
def test_a_process_that_is_forked_after_scoring_scores():
    """OpenMP's threads do not live on in it, and torch would wait for them for ever."""
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    subprocess.run(command, check=True, timeout=90, env={**os.environ, "OMP_NUM_THREADS": "2"})


def test_a_missing_device_is_refused_at_construction():
    with pytest.raises(ValueError, match="cuda:99"):
        MarsScorer("mini", device="cuda:99", variant="plus")
    with pytest.raises(ValueError, match="abacus"):
        MarsScorer("mini", device="abacus", variant="plus")
