"""``mars_score.judge``: the score of one output, and the sentence that says what it comes from."""

import json

import numpy as np
import pytest

import mars_score
from mars_score.models import loading
from mars_score.scorer import MarsScorer
from tests.word_recall import SETTINGS

REFERENCE = "The road is busy"
CONTEXT = "They need a bridge."


@pytest.mark.parametrize(
    ("output", "score", "word"),
    [
        ("The road is busy", 1, "most"),
        ("The road is", 0.75, "most"),
        ("The road", 0.5, "some"),
        ("The", 0.25, "little"),
    ],
)
def test_the_reason_says_how_much_of_the_reference_is_said(word_models, output, score, word):
    judged = mars_score.judge(output, REFERENCE, **SETTINGS)
    assert judged["score"] == pytest.approx(score)
    assert judged["reason"] == f"{score:.2f}: says {word} of the reference ({score:.2f})"


def test_the_nearest_of_several_references_is_meant(word_models):
    judged = mars_score.judge("The road", ["Nobody is surprised", "The road"], **SETTINGS)
    assert judged["reason"].endswith("of the nearest reference (1.00)")


@pytest.mark.parametrize(
    ("threshold", "passed"), [(None, None), (0.5, True), (0.51, False), (0, True), (np.float64(0.5), True)]
)
def test_the_threshold_itself_passes(word_models, threshold, passed):
    assert mars_score.judge("The road", REFERENCE, threshold=threshold, **SETTINGS)["passed"] is passed


@pytest.mark.parametrize(
    ("threshold", "error"),
    [("0.5", TypeError), (True, TypeError), (float("nan"), ValueError), (float("inf"), ValueError)],
)
def test_a_threshold_that_is_no_finite_number_is_refused_before_scoring(word_models, threshold, error):
    with pytest.raises(error, match=r"threshold must be a .*number, got .*leave it out"):
        mars_score.judge("The road", REFERENCE, threshold=threshold, **SETTINGS)
    assert word_models == []


def test_a_blank_output_is_named(tiny_mini):
    judged = mars_score.judge(" ", REFERENCE, CONTEXT, preset="mini")
    assert (judged["score"], judged["reason"]) == (0, "0.00: the output is blank")
    assert judged["metadata"]["terms"] == {}
    assert any("blank candidates" in notice for notice in judged["metadata"]["notices"])


@pytest.mark.parametrize(
    ("variant", "context"),
    [
        *(("fast", CONTEXT), ("paper", CONTEXT), ("paper", None), ("plus", None)),
        ("plus", ["They need a bridge.", "Who?"]),
    ],
)
def test_score_and_metadata_are_those_of_a_scorer(tiny_mini, variant, context):
    judged = mars_score.judge("The road is", REFERENCE, context, preset="mini", variant=variant)
    scorer = MarsScorer("mini", variant=variant, use_context=context is not None)
    result = scorer.score(["The road is"], [REFERENCE], [context] if context else None)
    assert judged["score"] == result.score
    terms = {term.name: {"value": term.value, "weight": term.weight} for term in result.row_scores[0].terms}
    assert judged["metadata"]["terms"] == terms
    assert judged["metadata"]["signature"] == str(result.signature)
    assert json.loads(json.dumps(judged)) == judged


def test_by_the_context_alone_and_plus_unless_another_variant_is_named(tiny_mini):
    judged = mars_score.judge("The road is", context=CONTEXT, preset="mini")
    assert judged["score"] == MarsScorer("mini", variant="plus").score(["The road is"], None, [CONTEXT]).score
    assert "the context (" in judged["reason"]
    assert "reference" not in judged["reason"]


@pytest.mark.parametrize(("name", "phrase"), [("repetition", "repeated words cost"), ("likelihood", "expect")])
def test_what_costs_or_adds_much_is_named(tiny_mini, name, phrase):
    output = " ".join(["forgotten tickets"] * 12)
    judged = mars_score.judge(output, REFERENCE, CONTEXT, preset="mini", likelihood_weight=5.0)
    term = judged["metadata"]["terms"][name]
    points = term["value"] * term["weight"]
    assert abs(points) > 0.05
    [said] = [part for part in judged["reason"].split("; ") if phrase in part]
    assert said.endswith(f" {'add' if points > 0 else 'cost'} {abs(points):.2f}")


def test_models_are_loaded_once(nothing_loaded, named_models, monkeypatch):
    loaded, load = [], loading.load_model
    monkeypatch.setattr(loading, "load_model", lambda *arguments: loaded.append(arguments[0]) or load(*arguments))
    for output in ("The road is old.", "The bridge is new."):
        mars_score.judge(output, REFERENCE, CONTEXT, **named_models, task="summary")
    assert sorted(loaded) == ["encoder", "entailment_model", "language_model"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a", "b"], "c"), TypeError, "output must be a text, got list"),
        ((None, "c"), TypeError, "output must be a text, got NoneType"),
        (("a",), ValueError, "give a reference, a context, or both"),
        (("a", " "), ValueError, "blank reference"),
        (("a", None, " "), ValueError, "blank"),
    ],
)
def test_bad_input_is_refused(nothing_loaded, arguments, error, message):
    with pytest.raises(error, match=message):
        mars_score.judge(*arguments, preset="mini")


def test_unknown_settings_are_refused():
    with pytest.raises(TypeError, match="treshold"):
        mars_score.judge("a", "b", treshold=0.5)
