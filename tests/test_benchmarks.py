"""What the benchmarks of speed count, and that forms made from features are the scorer's."""

import importlib
import itertools
import json
from pathlib import Path

import pytest
import tiny_models
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import common, rates, stages
from benchmarks.all import SCRIPTS
from benchmarks.arithmetic import Prices, operations
from mars_score.infilling.jobs import Blank, Infill, Job
from mars_score.models.causal_lm import CausalLanguageModel


@pytest.mark.parametrize("build", [tiny_models.tiny_gpt2, tiny_models.tiny_llama])
def test_price_of_a_token_is_what_torch_counts(build):
    wrapped = CausalLanguageModel(*build(attn_implementation="eager"))
    model, prices = wrapped.model, Prices.of(wrapped)
    tokens = torch.arange(8)[None]
    cache = model(input_ids=tokens[:, :7], use_cache=True).past_key_values
    with FlopCounterMode(display=False) as counter:
        model(input_ids=tokens[:, 7:], past_key_values=cache, use_cache=True)
    assert counter.get_total_flops() == prices.feed(7, 1)


def test_operations_of_a_job():
    prices = Prices(body=100, head=10, position=1)
    job = Job((1, 2, 3), (4, 5), (Blank(1, True, (6, 7)), Blank(1, True, ())), False)
    infills = {job: [Infill((8,), (2.0, 1.0)), Infill((9,), (1.0,))]}
    prompt = 3 * 100 + (1 + 2 + 3)
    lead = 110 + 4
    drafted = 7 * (2 * 110 + 5 + 6)  # the pending token 5 is the fifth, then the first drafted one
    judged = (110 + 7) + (110 + 7) + (110 + 8)  # the last drafted token; 6 behind either prefix
    trailing = 110 + 8  # written: 5 + 8, 6, 7
    assert operations(prices, infills, passes=7) == prompt + lead + drafted + judged + trailing


def test_every_benchmark_can_be_run_and_is_documented():
    text = Path(common.__file__).with_name("README.md").read_text(encoding="utf-8")
    for name in {*SCRIPTS, "rates", "stages", "same_score"}:
        assert importlib.import_module(f"benchmarks.{name}").main
        assert f"| `{name}.py` |" in text


@pytest.fixture
def printed(monkeypatch, capsys, tiny_mini):
    """Runs a benchmark; returns what it prints as JSON."""

    def run(script, *options):
        monkeypatch.setattr("sys.argv", ["script", "--rows=1", "--variants=fast,paper", "--json", *options])
        script.main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_rates(monkeypatch, printed):
    """A line for each metric and length of context, and contexts that get longer."""
    read = []
    monkeypatch.setattr(rates, "_peers", lambda: {"peer": lambda texts: read.append(len(texts))})
    peer, *ours = printed(rates, "--repeats=1", "--sentences=1,3")
    assert (peer["metric"], read) == ("peer", [1])
    assert [line["metric"] for line in ours] == ["MARS, `fast`", "MARS, `paper`"] * 2
    assert ours[0]["context_words"] < ours[2]["context_words"]
    assert all(line["cold"] > 0 and line["warm"] > 0 for line in ours)


def test_stages(printed):
    """Each variant has its stages, first and with new candidates, for which nothing is infilled."""
    lines = printed(stages, "--sentences=2")
    seconds = {(line["variant"], line["of"]): line["seconds"] for line in lines}
    assert list(seconds) == list(itertools.product(["fast", "paper"], ["first score", "new candidates"]))
    assert set(seconds["fast", "first score"]) >= {"embed", "match", "rest"}
    assert set(seconds["paper", "first score"]) >= {"infill", "embed", "rest"}
    assert "infill" not in seconds["paper", "new candidates"]
