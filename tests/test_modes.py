"""Callers inside torch's modes, small number types, and models that MARS cannot plan with."""

import contextlib

import pytest
import tiny_models
import torch
import transformers

from benchmarks.sequential import SequentialInfiller
from mars_score.augment.infilling.engine import CausalInfiller
from mars_score.augment.infilling.jobs import make_job
from mars_score.augment.infilling.planning import plain_step, planned_step
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.masking.template import Template
from mars_score.errors import UnsupportedModelError
from mars_score.models import loading as models
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.perturbation import LayerPerturbation
from mars_score.scorer import MarsScorer
from mars_score.settings import InfillingSettings, PlanningSettings

pytestmark = pytest.mark.usefixtures("nothing_loaded")
ANALYSER = WordAnalyser()
BUILDERS = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast in inference_mode": lambda: stack(torch.inference_mode(), torch.autocast("cpu", torch.bfloat16)),
}
PLANNED = PlanningSettings(planner="self")
ROWS = (["She took a train home."], ["A truck took her home."], ["The car broke."])


@contextlib.contextmanager
def stack(*managers):
    with contextlib.ExitStack() as entered:
        for manager in managers:
            entered.enter_context(manager)
        yield


SETTINGS = {"planner": "self", "plan_iterations": 1, "max_mask_ratio": 0.2, "sample_count": 2}


@pytest.fixture(scope="module")
def outside(named_models):
    """The result of a caller in no mode."""
    models.free_models()
    return scorer_of(named_models).score(*ROWS)


def scorer_of(named_models):
    settings = {**SETTINGS, **named_models, "entailment_model": "mini-nli"}
    return MarsScorer("mini", store=False, device="cpu", variant="plus", **settings)


@pytest.mark.parametrize("mode", MODES)
def test_loading_and_scoring_inside_a_mode(named_models, outside, mode):
    with MODES[mode]():
        inside = scorer_of(named_models).score(*ROWS)
        state = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
    with MODES[mode]():
        usual = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
    assert state == usual
    assert torch.is_grad_enabled()
    assert inside.rows == outside.rows

    # The models that were made inside are still there, and can plan outside.
    assert len(models._loaded) == 3
    assert scorer_of(named_models).score(*ROWS).rows == outside.rows
    scorer = scorer_of(named_models)
    loaded = models.causal_model(scorer.settings.models, scorer.runtime).model
    assert not any(parameter.is_inference() for parameter in loaded.parameters())
    assert len(models._loaded) == 3


def test_the_planner_does_plan_here(named_models, outside):
    """Else the comparison above would say nothing about gradients."""
    settings = {"store": False, "device": "cpu", "max_mask_ratio": 0.2, **named_models}
    plain = MarsScorer("mini", planner="none", variant="plus", **settings)
    step = MarsScorer("mini", planner="self", plan_step=1, variant="plus", **settings)
    assert plain.score(*ROWS).rows != step.score(*ROWS).rows


def test_models_that_were_made_in_inference_mode_are_refused(gpt2):
    with torch.inference_mode():
        model, tokenizer = tiny_models.tiny_gpt2(seed=6)
    with pytest.raises(UnsupportedModelError, match=r"GPT2LMHeadModel was created inside torch.inference_mode"):
        CausalLanguageModel(model, tokenizer)


# Small number types

FUTURE_TEXT = " waited for an hour to get her car fixed, but the garage was closed"
WRITTEN = [
    "She said that she",
    "The children walk to school along the river, past",
    "Her brother thinks the",
    "In 2019 the council",
    "They have never been to the city, so",
    "Most people were",
]


def planning(model, tokenizer, monkeypatch):
    """Step of planned decoding on some texts, and how the cache was moved: per layer what the moves add up to."""
    language_model = CausalLanguageModel(model, tokenizer)
    texts = [language_model.codec.encode(text) for text in WRITTEN]
    cache = language_model.new_cache(rows=len(texts), capacity=40)
    cache.lengths = [0] * len(texts)
    language_model.read([text[:-1] for text in texts], cache)
    before = [state.clone() for layer in range(language_model.layers) for state in cache.past(layer, cache.slots)]
    future = sorted(set(language_model.codec.encode(FUTURE_TEXT)))
    perturbations = []

    class Watched(LayerPerturbation):
        def __init__(self):
            super().__init__()
            perturbations.append(self)

    monkeypatch.setattr("mars_score.augment.infilling.planning.LayerPerturbation", Watched)
    tokens = torch.tensor([text[-1] for text in texts])
    with torch.no_grad():
        step = planned_step(language_model, cache, tokens, [future] * len(texts), PLANNED)
        plain = plain_step(language_model, cache, tokens)
    after = [state for layer in range(language_model.layers) for state in cache.past(layer, cache.slots)]
    assert all(state.dtype == model.dtype for state in after)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    moves = [[factors for kind in (one._keys, one._values) for factors in kind] for one in perturbations]
    return step, plain, moves, language_model


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", BUILDERS)
def test_rewards_rise_as_in_float32(kind, dtype, monkeypatch):
    small, tokenizer = BUILDERS[kind](seed=6, dtype=dtype)
    exact, _ = BUILDERS[kind](seed=6, dtype=dtype)
    expected, *_ = planning(exact.float(), tokenizer, monkeypatch)
    step, plain, moves, language_model = planning(small, tokenizer, monkeypatch)

    lengths = [len(language_model.codec.encode(text)) - 1 for text in WRITTEN]
    future = sorted(set(language_model.codec.encode(FUTURE_TEXT)))
    for of_layer in moves:
        assert len(of_layer) == 2 * 3  # keys and values, three gradient steps
        assert all(factor.dtype == torch.float32 for factors in of_layer for factor in factors)
        for slots, directions in of_layer:  # the cache moves by little, yet in most places, and not in padding
            moved = slots.transpose(2, 3) @ directions
            filled = [moved[row, :, :length] for row, length in enumerate(lengths)]
            assert sum(int((part != 0).sum()) for part in filled) > 0.8 * sum(part.numel() for part in filled)
            assert all((moved[row, :, length:] == 0).all() for row, length in enumerate(lengths))
    assert step.scores.dtype == torch.float32
    assert all(state.dtype == dtype for layer in step.states for state in layer)

    temperature = PLANNED.plan_temperature
    rewards, expected_rewards = (
        [torch.log_softmax(logits, -1)[:, future].mean(1) for logits in (one.plain / temperature, one.scores)]
        for one in (step, expected)
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
    result = MarsScorer(
        "mini",
        store=False,
        device="cpu",
        planner="self",
        max_mask_ratio=0.2,
        variant="plus",
        **{**named_models, "dtype": dtype},
    ).score(*ROWS)
    assert result.signature.to_dict()["dtype"] == dtype
    assert result.score == pytest.approx(outside.score, abs=0.2)
    assert result.rows != outside.rows
    assert {key[2] for key in models._loaded} >= {dtype}


# Which architectures are taken

SIZE = {"vocab_size": 528, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDTHS = {**SIZE, "intermediate_size": 64, "max_position_embeddings": 96}
GPT_NEO = {"vocab_size": 528, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 96}
IDS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}

REFUSED = {
    "MistralForCausalLM": ("MistralConfig", {**WIDTHS, "num_key_value_heads": 2, "sliding_window": 8}),
    "BloomForCausalLM": ("BloomConfig", {"vocab_size": 528, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "MptForCausalLM": ("MptConfig", {"vocab_size": 528, "d_model": 32, "n_layers": 2, "n_heads": 4}),
    "MambaForCausalLM": ("MambaConfig", {"vocab_size": 528, "hidden_size": 32, "num_hidden_layers": 2}),
    "RecurrentGemmaForCausalLM": (
        "RecurrentGemmaConfig",
        {**SIZE, "intermediate_size": 64, "num_key_value_heads": 1, "lru_width": 32, "attention_window_size": 8},
    ),
    "GPTNeoForCausalLM": (
        "GPTNeoConfig",
        {**GPT_NEO, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    ),
}
TAKEN = {
    "Qwen2ForCausalLM": ("Qwen2Config", {**WIDTHS, "num_key_value_heads": 2}),
    "Qwen3ForCausalLM": ("Qwen3Config", {**WIDTHS, "num_key_value_heads": 2, "head_dim": 8}),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", WIDTHS),
    "MistralForCausalLM": ("MistralConfig", {**WIDTHS, "num_key_value_heads": 2, "sliding_window": None}),
}
OPEN = {
    "OPTForCausalLM": (
        "OPTConfig",
        {**SIZE, "ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 96},
    ),
    "GemmaForCausalLM": ("GemmaConfig", {**WIDTHS, "num_key_value_heads": 2, "head_dim": 8}),
    "GPTNeoForCausalLM": ("GPTNeoConfig", {**GPT_NEO, "attention_types": [[["global"], 2]]}),
}


def build(name, config, values):
    """A tiny random model of an architecture, with weights that make a difference."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, name)(getattr(transformers, config)(**values, **IDS))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    torch.nn.init.normal_(parameter, std=0.3)
    return model.eval(), tiny_models.causal_tokenizer()


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_models_are_refused_by_name(name):
    with pytest.raises(UnsupportedModelError, match=rf"{name}.*"):
        CausalLanguageModel(*build(name, *REFUSED[name]))


def check_works(model, tokenizer):
    """The engine, a batch of two, against the sequential oracle."""
    model = model.double()
    infiller = CausalInfiller(CausalLanguageModel(model, tokenizer), PLANNED, InfillingSettings())
    sequential = SequentialInfiller(model, tokenizer, PLANNED, InfillingSettings())
    jobs, expected = [], []
    for context, text in (("The car broke.", "A truck took her home."), ("", "Nobody knew why.")):
        [analysis] = ANALYSER.analyse([text])
        template = Template.from_mask(analysis, [1])
        jobs.append(make_job(infiller, context, template)[0])
        expected.append(sequential.infill(context, template).blanks)
    for infills, blanks in zip(infiller.infill(jobs), expected, strict=True):
        assert [infill.tokens for infill in infills] == [tuple(one.generated[: one.length]) for one in blanks]
        for infill, blank in zip(infills, blanks, strict=True):
            # Norms and rotary positions of some are computed in float32 whatever the model's type.
            assert infill.perplexities == pytest.approx(blank.perplexities, rel=1e-5)


@pytest.mark.parametrize("name", TAKEN)
def test_supported_models_work(name):
    check_works(*build(name, *TAKEN[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN)
def test_others_work_or_are_refused(name):
    model, tokenizer = build(name, *OPEN[name])
    try:
        CausalLanguageModel(model, tokenizer)
    except UnsupportedModelError as error:
        assert name in str(error)  # noqa: PT017
    else:
        check_works(model, tokenizer)
