"""Callers inside torch's modes, small number types, and models that MARS cannot plan with."""

import contextlib
import functools

import pytest
import torch
import transformers

from mars_score.errors import UnsupportedModelError
from mars_score.infilling.batched import BatchedInfiller
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.language import Tagger
from mars_score.metrics.paper import PaperConfig, mask_words
from mars_score.models import loading as models
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.scorer import MarsScorer
from tests import tiny_models
from tests.oracle_infilling import PlainInfiller

pytestmark = pytest.mark.usefixtures("nothing_loaded")
BUILDERS = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
AUTOCAST = functools.partial(torch.autocast, "cpu", dtype=torch.bfloat16)
MODES = {
    "no_grad": [torch.no_grad],
    "inference_mode": [torch.inference_mode],
    "autocast": [AUTOCAST],
    "autocast in inference_mode": [torch.inference_mode, AUTOCAST],
}
PLANNED = PaperConfig(planner="self")
ROWS = (["She took a train home."], ["A truck took her home."], ["The car broke."])


def scorers_of(named_models, **planning):
    """A scorer that plans, and one that uses all models."""
    settings = planning or {"planner": "self", "plan_step": 1, "plan_iterations": 1}
    paper = {"variant": "paper", "max_mask_ratio": 0.2, **settings}
    return [
        MarsScorer("mini", store=False, device="cpu", **each, **named_models)
        for each in (paper, {"variant": "plus"})
    ]


def score(scorers):
    return [scorer.score(*ROWS) for scorer in scorers]


def rows_of(results):
    return [result.row_scores for result in results]


@functools.cache
def outside_of_modes(names):
    results = score(scorers_of(dict(names)))
    models.free_models()
    return results


@pytest.fixture
def outside(named_models):
    """The results of a caller in no mode."""
    return outside_of_modes(tuple(named_models.items()))


def state():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("mode", MODES)
def test_loading_and_scoring_inside_a_mode(named_models, outside, mode):
    with contextlib.ExitStack() as entered:
        for manager in MODES[mode]:
            entered.enter_context(manager())
        before = state()
        inside = score(scorers_of(named_models))
        assert state() == before
    assert torch.is_grad_enabled()
    assert rows_of(inside) == rows_of(outside)
    # The models that were made inside can plan outside.
    scorers = scorers_of(named_models)
    assert rows_of(score(scorers)) == rows_of(outside)
    loaded = models.shared_model("language_model", scorers[0].settings.models, scorers[0].runtime).model
    assert not any(parameter.is_inference() for parameter in loaded.parameters())


def test_the_planner_does_plan_here(named_models, outside):
    """Else the comparison above would say nothing about gradients."""
    paper, _ = scorers_of(named_models, planner="none")
    assert paper.score(*ROWS).row_scores != outside[0].rows


def test_models_that_were_made_in_inference_mode_are_refused(gpt2):
    with torch.inference_mode():
        model, tokenizer = tiny_models.tiny_gpt2(seed=6)
    with pytest.raises(UnsupportedModelError, match=r"GPT2LMHeadModel was created inside torch.inference_mode"):
        CausalLanguageModel(model, tokenizer)


# Small number types

FUTURE_TEXT = " waited for an hour to get her car fixed, but the garage was closed"
WRITTEN = ["She said that she", "The children walk to school along the river, past", "Her brother thinks the"]
WRITTEN += ["In 2019 the council", "They have never been to the city, so", "Most people were"]


def planning(model, tokenizer):
    """Steps of planned and plain decoding on some texts, and the tokens that are planned for."""
    language_model = CausalLanguageModel(model, tokenizer)
    texts = [language_model.codec.encode(text) for text in WRITTEN]
    cache = language_model.new_cache(rows=len(texts), capacity=40)
    cache.lengths = [0] * len(texts)
    language_model.extend(cache, [text[:-1] for text in texts])

    def states():
        layers = [cache.past(layer, cache.slots) for layer in range(language_model.layers)]
        return [state.clone() for layer in layers for state in layer]

    before, future = states(), sorted(set(language_model.codec.encode(FUTURE_TEXT)))
    tokens = torch.tensor([text[-1] for text in texts])
    with torch.no_grad():
        step = planned_step(language_model, cache, tokens, [future] * len(texts), PLANNED)
        plain = plain_step(language_model, cache, tokens)
    for state, other in zip(before, states(), strict=True):
        assert torch.equal(state, other)
        assert state.dtype == model.dtype
    return step, plain, future


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", BUILDERS)
def test_rewards_rise_as_in_float32(kind, dtype):
    exact, tokenizer = BUILDERS[kind](seed=6, dtype=dtype)
    expected, *_ = planning(exact.float(), tokenizer)
    step, plain, future = planning(*BUILDERS[kind](seed=6, dtype=dtype))
    assert step.scores.dtype == torch.float32
    assert all(state.dtype == dtype for layer in step.states for state in layer)
    temperature = PLANNED.plan_temperature
    rewards, expected_rewards = (
        [torch.log_softmax(logits, -1)[:, future].mean(1) for logits in (made.plain / temperature, made.scores)]
        for made in (step, expected)
    )
    rise, expected_rise = (after - before for before, after in (rewards, expected_rewards))
    assert (expected_rise > 0).all()
    assert (rise > 0).float().mean() > 0.5
    assert rise.mean().item() == pytest.approx(expected_rise.mean().item(), rel=0.3)
    assert rewards[0].tolist() == pytest.approx(expected_rewards[0].tolist(), abs=0.2)
    # As far from float32 as the number type is in plain decoding.
    noise = 0.05 * expected.plain.abs().max().item()
    assert (step.plain - expected.plain).abs().max().item() < noise
    assert (plain.plain - expected.plain).abs().max().item() < noise


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_scoring_in_small_types(named_models, outside, dtype):
    for result, expected in zip(score(scorers_of({**named_models, "dtype": dtype})), outside, strict=True):
        assert result.signature.to_dict()["dtype"] == dtype
        assert result.score == pytest.approx(expected.score, abs=0.2)
        assert result.row_scores != expected.row_scores


# Which architectures are taken

SIZE = {"vocab_size": 528, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDTHS = {**SIZE, "intermediate_size": 64, "max_position_embeddings": 96}
IDS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}

GROUPED = {**WIDTHS, "num_key_value_heads": 2}
WINDOWS = {"num_key_value_heads": 1, "lru_width": 32, "attention_window_size": 8, "intermediate_size": 64}
LOCAL = {"attention_types": [[["global", "local"], 1]], "window_size": 4, "max_position_embeddings": 96}
REFUSED = {
    "Mistral": {**GROUPED, "sliding_window": 8},
    "Bloom": {"vocab_size": 528, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "Mpt": {"vocab_size": 528, "d_model": 32, "n_layers": 2, "n_heads": 4},
    "Mamba": {"vocab_size": 528, "hidden_size": 32, "num_hidden_layers": 2},
    "RecurrentGemma": {**SIZE, **WINDOWS},
    "GPTNeo": {"vocab_size": 528, "hidden_size": 32, "num_layers": 2, "num_heads": 4, **LOCAL},
}
TAKEN = {
    "Qwen2": GROUPED,
    "Qwen3": {**GROUPED, "head_dim": 8},
    "GPTNeoX": WIDTHS,
    "Mistral": {**GROUPED, "sliding_window": None},
    "OPT": {**SIZE, "ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 96},
    "Gemma": {**GROUPED, "head_dim": 8},
}


def build(name, values):
    """A tiny random model of an architecture, with weights that make a difference."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(**values, **IDS)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    torch.nn.init.normal_(parameter, std=0.3)
    return model.eval(), tiny_models.causal_tokenizer()


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_are_refused_by_name(name):
    with pytest.raises(UnsupportedModelError, match=f"{name}ForCausalLM"):
        CausalLanguageModel(*build(name, REFUSED[name]))


@pytest.mark.parametrize("name", TAKEN)
def test_supported_models_infill_as_the_plain_form(name):
    """A batch of two."""
    model, tokenizer = build(name, TAKEN[name])
    model = model.double()
    infiller = BatchedInfiller(CausalLanguageModel(model, tokenizer), PLANNED)
    plain = PlainInfiller(model, tokenizer, PLANNED)
    jobs, expected = [], []
    for context, text in (("The car broke.", "A truck took her home."), ("", "Nobody knew why.")):
        template = mask_words(text, Tagger().tag([text])[text], [1])
        jobs.append(infiller.make_job(context, template)[0])
        expected.append(plain.fill(context, template).blanks)
    filled = dict(infiller.infill_jobs(jobs))
    for job, blanks in zip(jobs, expected, strict=True):
        assert [blank.tokens for blank in filled[job]] == [tuple(b.generated[: b.length]) for b in blanks]
        for blank, other in zip(filled[job], blanks, strict=True):
            # Norms and rotary positions of some are computed in float32 whatever the model's type.
            assert blank.perplexities == pytest.approx(other.perplexities, rel=1e-5)
