"""What the benchmarks of speed count."""

import pytest
import tiny_models
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.arithmetic import Prices, operations
from mars_score.infilling.jobs import Blank, Infill, Job
from mars_score.infilling.language_model import CausalLanguageModel


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
