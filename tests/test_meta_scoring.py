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
    runtime = Runtime(store=ResultStore(folder))
    return Models(resolve_settings("mini", variant="plus"), runtime, {"preset": "mini", **arguments})


class Counting(Metric):
    """The number of letters; remembers what it was asked for."""

    title = "letters"
    minimum = -7.0

    def __init__(self, models, fault_at=math.inf):
        super().__init__(models)
        self.asked = []
        self.fault_at = fault_at

    def score(self, rows, corpus):
        self.asked.append(len(rows))
        if sum(self.asked) > self.fault_at:
            raise KeyboardInterrupt
        return [float(len(candidate)) for candidate, _, _ in rows]


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


def make_rows(count, start=0):
    return [("x" * number, ("reference",), f"context {number}") for number in range(start + 1, start + 1 + count)]


def make_set(candidates, context="One. Two. Three."):
    items = [
        Item(str(number), f"g{number}", "s", (text, ("a b c d",), context), float(number))
        for number, text in enumerate(candidates)
    ]
    return RatedSet("toy", tuple(items), ("a b c d",))


def test_scores_are_kept_and_equal_rows_scored_once(tmp_path):
    metric, rows = Counting(make_models(tmp_path)), make_rows(3)
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


def test_a_metric_that_uses_the_corpus_is_kept_by_corpus(tmp_path):
    metric = Counting(make_models(tmp_path))
    metric.uses_corpus = True
    for corpus in (("one",), ("two",), ("one",)):
        scores_of(metric, make_rows(1), corpus)
    assert metric.asked == [1, 1]


def test_failures_are_stated_the_others_go_on_and_blank_candidates_never_reach_a_metric():
    models = make_models()
    metrics = {kind.title: kind(models) for kind in (Missing, Faulty, Undefined, Counting)}
    found = score_set(make_set(["a b c d e", "b", " \n"]), metrics, ["reorder"]).metrics
    assert found["missing"].failure == "its data is missing; run: fetch it"
    assert found["faulty"].failure == "failed with ValueError: faulty gave 1 scores for 3 rows"
    assert np.isnan(found["missing"].scores).all()
    assert found["undefined"].failure is None
    assert np.isnan(found["undefined"].scores[:2]).all()
    assert list(found["letters"].scores) == [9.0, 1.0, -7.0]
    assert list(found["letters"].attacked["reorder"]) == [9.0]
    assert metrics["letters"].asked == [3]


def test_names():
    variant = "mars[variant=paper,sigma=0]"
    assert parse_names(f"bleu1, {variant} ,length") == ["bleu1", variant, "length"]
    assert len({make_metric(name, make_models()).title for name in METRICS}) == len(METRICS)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("zzz", ValueError, "unknown metric 'zzz'; mars meta --help lists the names"),
        ("mars[sigmoid=0]", TypeError, "unknown setting 'sigmoid'"),
        ("mars[sigma]", ValueError, r"written mars\[setting=value"),
    ],
)
def test_bad_names(name, error, message):
    with pytest.raises(error, match=message):
        make_metric(name, make_models())


def test_variants_of_mars_are_settings(gpt2, encoder):
    models = make_models(language_model=gpt2, encoder=encoder, dtype="float64", context_weight=0.3)
    name = 'mars[variant=paper,planner=none,sigma=0,pos_weights={"ADJ":4,"NOUN":2}]'
    entries = make_metric(name, models).result([("a", ("b",), "c")], ("b",)).signature.entries
    names = ("variant", "sigma", "context_weight", "pos_weights")
    assert [entries[name] for name in names] == ["paper", 0, 0.3, {"ADJ": 4, "NOUN": 2}]


def test_mars_is_scored_with_the_corpus_of_the_whole_set(gpt2, encoder, tmp_path):
    models = make_models(tmp_path, language_model=gpt2, encoder=encoder, dtype="float64", planner="none")
    data = make_set(["the dog slept on the sofa", "", "a train"])
    metrics = {"mars": make_metric("mars_no_planning", models)}
    found = score_set(data, metrics, ["reorder", "retrieve"]).metrics["mars"]
    assert found.failure is None
    assert found.scores[1] == 0.0
    assert {name: len(scores) for name, scores in found.attacked.items()} == {"reorder": 1, "retrieve": 2}
    assert "idf" in found.signature
