"""Metrics over a set: kept row by row, resumed, blank candidates kept from them, failures stated."""

import math

import numpy as np
import pytest

from mars_score.data.rated import Item, RatedSet
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import METRICS, make_metric, parse_names
from mars_score.meta.metrics.base import Metric, Models
from mars_score.meta.scoring import score_set, scores_of
from mars_score.settings import resolve_settings
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime


def make_models(folder=None, **arguments):
    return Models(
        resolve_settings("mini", variant="plus"),
        Runtime(store=ResultStore(folder)),
        {"preset": "mini", **arguments},
    )


class Counting(Metric):
    """The number of letters; remembers what it was asked for."""

    title = "letters"
    family = "trivial"
    minimum = -7.0

    def __init__(self, models, fault_at=None):
        super().__init__(models)
        self.asked = []
        self.fault_at = fault_at

    def key(self):
        return ("letters", 1)

    def score(self, rows, corpus):
        self.asked.append(len(rows))
        if self.fault_at is not None and sum(self.asked) > self.fault_at:
            raise KeyboardInterrupt
        return [float(len(candidate)) for candidate, _, _ in rows]


def make_rows(count, start=0):
    return [("x" * number, ("reference",), f"context {number}") for number in range(start + 1, start + 1 + count)]


def make_set(candidates, context="One. Two. Three."):
    items = [
        Item(str(number), f"g{number}", "s", (text, ("a b c d",), context), float(number))
        for number, text in enumerate(candidates)
    ]
    return RatedSet("toy", tuple(items), ("a b c d",))


def test_scores_are_kept_and_equal_rows_scored_once(tmp_path):
    metric = Counting(make_models(tmp_path))
    rows = make_rows(3)
    assert scores_of(metric, [*rows, rows[0]], ()) == [1.0, 2.0, 3.0, 1.0]
    assert metric.asked == [3]
    again = Counting(make_models(tmp_path))
    assert scores_of(again, [*rows, *make_rows(1, 3)], ()) == [1.0, 2.0, 3.0, 4.0]
    assert again.asked == [1]


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    rows = make_rows(700)
    with pytest.raises(KeyboardInterrupt):
        scores_of(Counting(make_models(tmp_path), fault_at=300), rows, ())
    metric = Counting(make_models(tmp_path))
    assert scores_of(metric, rows, ()) == [float(number) for number in range(1, 701)]
    assert sum(metric.asked) == 700 - 256


def test_blank_candidates_never_reach_a_metric(tmp_path):
    metric = Counting(make_models(tmp_path))
    assert scores_of(metric, [("", ("a",), "b"), ("xy", ("a",), "b"), (" \n", ("a",), "b")], ()) == [
        -7.0,
        2.0,
        -7.0,
    ]
    assert metric.asked == [1]


def test_a_metric_that_uses_the_corpus_is_kept_by_corpus(tmp_path):
    rows = make_rows(1)
    metric = Counting(make_models(tmp_path))
    metric.uses_corpus = True
    scores_of(metric, rows, ("one",))
    scores_of(metric, rows, ("two",))
    scores_of(metric, rows, ("one",))
    assert metric.asked == [1, 1]


class Missing(Counting):
    title = "missing"

    def key(self):
        raise ModelUnavailableError("its data is missing;\n run: fetch it")


class Faulty(Counting):
    title = "faulty"

    def score(self, rows, corpus):
        return [1.0]


class Undefined(Counting):
    title = "undefined"

    def score(self, rows, corpus):
        return [math.nan for _ in rows]

    def key(self):
        return ("undefined",)


def test_failures_are_stated_and_the_others_go_on():
    models = make_models()
    metrics = {one.title: one for one in (Missing(models), Faulty(models), Undefined(models), Counting(models))}
    found = score_set(make_set(["a b c d e", "b", ""]), metrics, ["reorder"]).metrics
    assert found["missing"].failure == "its data is missing; run: fetch it"
    assert found["faulty"].failure == "failed with ValueError: faulty gave 1 scores for 3 rows"
    assert np.isnan(found["missing"].scores).all()
    assert found["undefined"].failure is None
    assert np.isnan(found["undefined"].scores[:2]).all()
    assert list(found["letters"].scores) == [9.0, 1.0, -7.0]
    assert list(found["letters"].attacked["reorder"]) == [9.0]


def test_names():
    variant = "mars[variant=paper,sigma=0]"
    assert parse_names(f"bleu1, {variant} ,length") == ["bleu1", variant, "length"]
    with pytest.raises(ValueError, match="unknown metric 'blue'; did you mean 'bleu'"):
        parse_names("mars,blue")
    with pytest.raises(ValueError, match="unknown metric"):
        make_metric("blue", make_models())


def test_variants_of_mars_are_settings():
    metric = make_metric(
        'mars[variant=paper,sigma=0,pos_weights={"ADJ":4,"NOUN":2}]', make_models(context_weight=0.3)
    )
    settings = metric._scorer(("a",)).settings
    assert (settings.variant, settings.infilling.sigma) == ("paper", 0)
    assert settings.similarity.context_weight == 0.3
    assert settings.masking.pos_weights == {"ADJ": 4, "NOUN": 2}
    assert settings.masking.idf_corpus == ("a",)
    with pytest.raises(TypeError, match="unknown setting 'sigmoid'"):
        make_metric("mars[sigmoid=0]", make_models())
    with pytest.raises(ValueError, match="sigma must be an integer"):
        make_metric("mars[variant=paper,sigma=-1]", make_models())
    with pytest.raises(ValueError, match=r"written mars\[setting=value"):
        make_metric("mars[sigma]", make_models())


def test_every_metric_has_a_title_of_its_own():
    metrics = [make_metric(name, make_models()) for name in METRICS]
    assert len({metric.title for metric in metrics}) == len(METRICS)


def test_mars_is_scored_with_the_corpus_of_the_whole_set(gpt2, encoder, tmp_path):
    models = make_models(tmp_path, language_model=gpt2, encoder=encoder, dtype="float64", planner="none")
    data = make_set(["the dog slept on the sofa", "", "a train"])
    found = score_set(data, {"mars": make_metric("mars_no_planning", models)}, ["reorder", "retrieve"]).metrics[
        "mars"
    ]
    assert found.failure is None
    assert found.scores[1] == 0.0
    assert len(found.details) == 3  # of the candidates, not of their attacks
    assert len(found.attacked["reorder"]) == 1
    assert len(found.attacked["retrieve"]) == 2
    assert "idf_corpus" in found.signature or "idf" in found.signature
