"""Recombined similarities equal what a scorer gives; a choice never sees the set it leaves out."""

from __future__ import annotations

import math

import pytest

from mars_score import MarsScorer
from mars_score.meta.sweeps import COMBINATIONS, choose, recombined

TEXTS = (
    ["she waited for an hour", "a train is cheap and quick", ""],
    [["she said that she waited for her brother", "he waited at home"], "travel by train", "never"],
    ["the garage was closed and nobody answered.", "the best way to travel?", "who knows"],
)


@pytest.fixture(scope="module")
def tiny(gpt2, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")

    def make(**settings):
        models = {"language_model": gpt2, "encoder": encoder, "dtype": "float64"}
        return MarsScorer("mini", variant="fast", max_mask_ratio=0.6, store=folder, **models, **settings)

    return make


@pytest.mark.parametrize("how", COMBINATIONS[::7])
def test_recombining_equals_scoring_anew(tiny, how):
    details = tiny().score(*TEXTS).rows
    anew = tiny(
        max_mask_ratio=how.max_mask_ratio,
        mask_ratio_step=how.mask_ratio_step,
        augmentation_aggregation=how.augmentation_aggregation,
        **({"q": how.q} if how.augmentation_aggregation == "weighted" else {}),
        reference_aggregation=how.reference_aggregation,
    ).score(*TEXTS)
    assert list(recombined(details, how)) == pytest.approx(anew.scores, abs=1e-12)


def test_choose_reports_each_set_by_the_choice_of_the_others():
    figures = {"plain": {"a": 0.1, "b": 0.5, "c": 0.5}, "fancy": {"a": 0.9, "b": 0.3, "c": 0.4}}
    choice = choose(figures)
    assert choice.best == "fancy"  # for the sake of set a alone
    assert choice.mean == pytest.approx(1.6 / 3)
    assert choice.left_out == {"a": ("plain", 0.1), "b": ("fancy", 0.3), "c": ("fancy", 0.4)}


def test_choose_leaves_out_sets_without_a_figure_and_refuses_fewer_than_two():
    figures = {"x": {"a": 0.1, "b": math.nan, "c": 0.2}, "y": {"a": 0.2, "b": 0.9, "c": 0.1}}
    assert set(choose(figures).left_out) == {"a", "c"}
    with pytest.raises(ValueError, match="two sets"):
        choose({"x": {"a": 0.1}})
