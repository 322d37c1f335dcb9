"""The sequential implementation that the benchmarks compare with does the engine's work."""

import pytest
import tiny_models
from test_engine import jobs_of, pairs

from benchmarks.sequential import SequentialInfiller
from mars_score.infilling.engine import CausalInfiller
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.settings import InfillingSettings, PlanningSettings

PLANNING = {
    "planned": PlanningSettings(planner="self"),
    "plain": PlanningSettings(planner="none"),
    "fused": PlanningSettings("self", plan_fusion=0.8, plan_norm_exponent=1.5, plan_iterations=2, plan_step=0.1),
}


@pytest.mark.parametrize("planning", PLANNING.values(), ids=PLANNING)
def test_sequential_equals_engine(planning):
    model = CausalLanguageModel(*tiny_models.tiny_llama(seed=5, n_positions=192))
    engine = CausalInfiller(model, planning, InfillingSettings())
    jobs = jobs_of(engine, pairs()[4::2])
    sequential = SequentialInfiller(model, planning, InfillingSettings())
    for ours, theirs in zip(engine.infill(jobs), sequential.infill(jobs), strict=True):
        assert [infill.tokens for infill in ours] == [infill.tokens for infill in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.perplexities == pytest.approx(other.perplexities, rel=1e-9)
