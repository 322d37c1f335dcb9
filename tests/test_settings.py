"""Settings: presets, variants, and every value that is refused."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from mars_score.presets import PRESETS
from mars_score.settings import PAPER_POS_WEIGHTS, SETTING_NAMES, VARIANTS, Settings, resolve_settings


def flat(settings):
    return dict(settings.items())


def test_names_cover_all_fields_once():
    names = [name for name, _ in resolve_settings().items()]
    assert tuple(names) == SETTING_NAMES
    assert len(set(names)) == len(names)


def test_contracted_names():
    contracted = """variant max_mask_ratio mask_ratio_step pos_weights idf_corpus strip_urls_hashtags
        augmentation_aggregation q reference_aggregation planner plan_step plan_iterations plan_temperature
        plan_norm_exponent plan_fusion sigma use_context max_context_tokens infiller language_model
        masked_language_model encoder dtype matching context_weight copy_discount likelihood_weight"""
    assert set(contracted.split()) <= set(SETTING_NAMES)


def test_defaults():
    settings = flat(resolve_settings())
    assert settings["max_mask_ratio"] == 0.6
    assert settings["mask_ratio_step"] == 0.2
    assert settings["variant"] == "v2"
    assert settings["language_model"] == "openai-community/gpt2"
    assert settings["pos_weights"]["PUNCT"] == 0.1
    assert settings["idf_corpus"] is None
    assert settings["planner"] == "none"
    assert settings["augmentation_aggregation"] == "best"
    assert settings["matching"] == "tokens"
    assert settings["context_weight"] == 0.5
    assert settings["copy_discount"] == 1.0
    assert settings["likelihood_weight"] == 0.0


@pytest.mark.parametrize(
    ("variant", "changes"),
    [
        ("v2-lm", {"likelihood_weight": 0.15}),
        ("v1", {"matching": "sentences", "context_weight": 0.0, "copy_discount": 0.0}),
    ],
)
def test_variants_differ_from_the_default_in_the_similarity_alone(variant, changes):
    assert flat(resolve_settings("base", variant)) == {
        **flat(resolve_settings("base", "v2")),
        "variant": variant,
        **changes,
    }


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_presets_name_models_only(preset, variant):
    settings = resolve_settings(preset, variant)
    base = resolve_settings("base", variant)
    assert dataclasses.replace(settings, models=base.models) == base
    for name, model in PRESETS[preset].items():
        assert flat(settings)[name] == model


def test_the_environment_names_the_preset(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "mini")
    assert resolve_settings() == resolve_settings("mini")
    assert resolve_settings("base") != resolve_settings("mini")
    monkeypatch.setenv("MARS_PRESET", "huge")
    with pytest.raises(ValueError, match="unknown preset 'huge'; choose one of mini, base, paper"):
        resolve_settings()


def test_preset_paper_implies_its_variant():
    assert resolve_settings("paper").variant == "paper"
    assert resolve_settings("paper", "v2").variant == "v2"
    assert resolve_settings("base", "paper").masking.strip_urls_hashtags is True
    assert resolve_settings("paper").masking.pos_weights == PAPER_POS_WEIGHTS
    for settings in (resolve_settings("paper"), resolve_settings("base", "paper")):
        assert settings.planning.planner == "self"
        assert settings.similarity.augmentation_aggregation == "weighted"
        assert settings.similarity.matching == "sentences"
        assert settings.similarity.context_weight == settings.similarity.likelihood_weight == 0


def test_single_settings_win():
    settings = resolve_settings(
        "paper", strip_urls_hashtags=False, encoder="mine", use_context=False, q=1, planner="none"
    )
    assert settings.planning.planner == "none"
    assert settings.masking.strip_urls_hashtags is False
    assert settings.models.encoder == "mine"
    assert settings.models.language_model == PRESETS["paper"]["language_model"]
    assert settings.use_context is False
    assert settings.similarity.q == 1


@pytest.mark.parametrize("name", ["max_mask", "batch_size", "detailed", "Q", "presets"])
def test_unknown_settings(name):
    with pytest.raises(
        TypeError, match=f"unknown setting '{name}'; known settings: variant, use_context, max_mask_ratio"
    ):
        resolve_settings(**{name: 1})


def test_unknown_preset_and_variant():
    with pytest.raises(ValueError, match="unknown preset 'huge'; choose one of mini, base, paper"):
        resolve_settings("huge")
    with pytest.raises(ValueError, match="unknown variant 'v0'; choose one of v2, v2-lm, v1, paper"):
        resolve_settings(variant="v0")


GOOD = {
    "max_mask_ratio": [0, 0.0, 1, 0.35, "auto"],
    "mask_ratio_step": [0.01, 1],
    "pos_weights": [{}, {"ADJ": 5, "PUNCT": 0.5}],
    "idf_corpus": [("a",), ["a", "b"]],
    "strip_urls_hashtags": [True, False],
    "planner": ["self", "none"],
    "plan_step": [0.001, 1],
    "plan_iterations": [1, 10],
    "plan_temperature": [0.1, 2],
    "plan_norm_exponent": [0, 1.5],
    "plan_fusion": [0, 0.9, 1],
    "infiller": ["causal", "masked"],
    "sigma": [0, 5],
    "max_context_tokens": [None, 1, 512],
    "matching": ["tokens", "sentences"],
    "context_weight": [0, 0.3, 1],
    "copy_discount": [0, 0.3, 1],
    "likelihood_weight": [0, 0.15, 10],
    "augmentation_aggregation": ["best", "weighted"],
    "q": [0.01, 1],
    "reference_aggregation": ["max", "mean"],
    "dtype": ["float32", "bfloat16"],
    "language_model": ["gpt2", (object(), object())],
    "encoder": ["folder"],
    "use_context": [True, False],
    "variant": list(VARIANTS),
}
NAN = float("nan")
BAD = {
    "max_mask_ratio": [-0.1, 1.1, 60, "0.6", "all", None, True, NAN, [0.2]],
    "mask_ratio_step": [0, -0.2, 1.1, "0.2", None, NAN],
    "pos_weights": [None, "ADJ", [("ADJ", 4)], {"adj": 4}, {"SPACE": 1}, {"ADJ": 0}, {"ADJ": -1}, {"ADJ": "4"}],
    "idf_corpus": ["text", [], [1], [None]],
    "strip_urls_hashtags": [1, "yes", None],
    "planner": ["pplm", None, True],
    "plan_step": [0, -0.02, "0.02", NAN],
    "plan_iterations": [0, -1, 3.0, "3", True],
    "plan_temperature": [0, -1, None, NAN],
    "plan_norm_exponent": [-1, "1", NAN],
    "plan_fusion": [-0.1, 1.1, None],
    "infiller": ["t5", None],
    "sigma": [-1, 2.5, True],
    "max_context_tokens": [0, -1, 10.5, "all"],
    "matching": ["words", None, True],
    "context_weight": [-0.1, 1.1, "0.5", None, True, NAN],
    "copy_discount": [-0.1, 1.1, "0.5", None, True, NAN],
    "likelihood_weight": [-0.1, 10.1, "0.15", None, True, NAN],
    "augmentation_aggregation": ["max", "mean", None, True],
    "q": [0, -0.5, 1.1, "0.8", None, NAN],
    "reference_aggregation": ["min", None],
    "dtype": ["int8", None, 32],
    "language_model": [5, object(), ("a", "b", "c")],
    "masked_language_model": [5, [1, 2]],
    "encoder": [5, object()],
    "use_context": [0, 1, "no", None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in GOOD.items() for value in values])
def test_good_values(name, value):
    kept = flat(resolve_settings(**{name: value}))[name]
    assert kept == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_values(name, value):
    with pytest.raises(ValueError, match=name):
        resolve_settings(**{name: value})


def test_every_setting_has_bad_values_here():
    assert set(SETTING_NAMES) == {"variant", *BAD}


def test_settings_are_frozen_and_hashable():
    settings = resolve_settings(idf_corpus=["a"], pos_weights={"ADJ": 2})
    assert hash(settings) == hash(resolve_settings(idf_corpus=["a"], pos_weights={"ADJ": 2}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.variant = "paper"


def test_pos_weights_are_a_copy():
    weights = {"ADJ": 2.0}
    settings = resolve_settings(pos_weights=weights)
    weights["ADJ"] = 9.0
    assert settings.masking.pos_weights == {"ADJ": 2.0}


def test_the_scorer_takes_no_setting_by_another_name():
    from mars_score.scorer import MarsScorer

    own = set(inspect.signature(MarsScorer).parameters) - {"settings"}
    assert not own & {one.name for one in dataclasses.fields(Settings)}
    assert not own & set(SETTING_NAMES)
