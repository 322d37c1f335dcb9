"""The worth of augmentations in human references, with tiny models end to end; and the task of each set."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from test_meta_evaluation import CONTEXT, WORDS, make_set

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.rated import Item, RatedSet
from mars_score.meta.evaluation import meta_evaluate
from mars_score.meta.plain import to_dict
from mars_score.meta.report import build_report
from mars_score.meta.worth import _interpolated, _kinds, choose_references
from mars_score.report.markdown import to_markdown
from mars_score.report.page import to_html
from mars_score.settings import resolve_settings
from mars_score.stats.correlation import at_level, correlation
from mars_score.stats.resampling import bootstrap_interval

MODELS = {"preset": "mini", "dtype": "float64", "samples": 2}


def make_several(counts, name="several"):
    """Two items per group; ``counts``: references of each group."""
    generator = np.random.default_rng(0)
    items = []
    for group, count in enumerate(counts):
        references = tuple(" ".join(generator.permutation(WORDS)[: 4 + number]) for number in range(count))
        for system in range(2):
            row = (" ".join(generator.permutation(WORDS)[:5]), references, f"{CONTEXT} {WORDS[group]}.")
            items.append(Item(f"{group}-{system}", f"g{group}", f"s{system}", row, float(generator.normal())))
    return RatedSet(name, tuple(items), tuple({text: None for item in items for text in item.row[1]}))


@pytest.fixture(scope="module")
def evaluate(gpt2, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")

    def run(*sets, **arguments):
        usual = {"attacks": [], "resamples": 30, "worth_choices": 2, "store": folder, **MODELS}
        return meta_evaluate(sets, ["length"], language_model=gpt2, encoder=encoder, **{**usual, **arguments})

    return run


@pytest.fixture(scope="module")
def data():
    return make_several([3, 3, 3, 3, 2, 1])


@pytest.fixture(scope="module")
def found(evaluate, data):
    return evaluate(data, make_set("single"))


@pytest.fixture(scope="module")
def scores(gpt2, encoder):
    """Of items, with some of their references."""

    def run(items, number, choice=0, **settings):
        scorer = MarsScorer(
            language_model=gpt2, encoder=encoder, store=False, variant="plus", **{**MODELS, **settings}
        )
        rows = [(one.row[0], choose_references(one.row, number, choice, 0), one.row[2]) for one in items]
        return scorer.score(*zip(*rows, strict=True)).scores

    return run


def pearson(of_items, items):
    return correlation(of_items, [one.rating for one in items]).value


def test_all_references_give_the_ordinary_score(found, data, gpt2, encoder):
    curve = found.sets["several"].worth.references
    assert list(curve) == [1, 2, 3]  # half of the items with several have three
    items = [one for one in data.items if len(one.row[1]) == 3]
    scorer = MarsScorer(
        language_model=gpt2, encoder=encoder, store=False, variant="plus", **{**MODELS, "samples": 0}
    )
    ordinary = scorer.score(*zip(*[one.row for one in items], strict=True)).scores
    assert curve[3].value == pytest.approx(pearson(ordinary, items), abs=1e-12)
    assert curve[3].n == len(items) == 8
    assert curve[1].n == curve[2].n == 10  # the group with one reference is left out


def test_one_reference_is_one_and_augmentations_stand_beside_the_same(found, data, scores):
    items = [one for one in data.items if len(one.row[1]) > 1]
    assert all(len(choose_references(one.row, 1, choice, 0)) == 1 for one in items for choice in (0, 1))
    worth = found.sets["several"].worth

    def mean(**settings):
        return np.mean([pearson(scores(items, 1, choice, **settings), items) for choice in (0, 1)])

    assert worth.references[1].value == pytest.approx(mean(samples=0), abs=1e-12)
    assert worth.beside_one["samples"].value == pytest.approx(mean(), abs=1e-12)
    infilled = mean(samples=0, max_mask_ratio=0.6, idf_corpus=data.corpus)
    assert worth.beside_one["infills"].value == pytest.approx(infilled, abs=1e-12)
    assert list(worth.beside_one) == ["infills", "samples", "samples and infills"]


def test_kinds_follow_the_settings():
    assert _kinds(resolve_settings("mini", variant="plus")) == {
        "": "samples=0,max_mask_ratio=0",
        "infills": "samples=0,max_mask_ratio=0.6",
        "samples": "max_mask_ratio=0",
        "samples and infills": "max_mask_ratio=0.6",
    }
    assert list(_kinds(resolve_settings("mini", "fast", max_mask_ratio=0.4)).items())[1:] == [
        ("infills", "samples=0,max_mask_ratio=0.4")
    ]


def test_choices_cover_all_references_and_grow():
    row = ("x", ("a", "b", "c", "d"), "context")
    ones = [choose_references(row, 1, choice, 0) for choice in range(4)]
    assert sorted(ones) == [("a",), ("b",), ("c",), ("d",)]
    for choice in range(4):
        assert set(ones[choice]) < set(choose_references(row, 2, choice, 0))
        assert choose_references(row, 4, choice, 0) == row[1]
    assert choose_references(("y", *row[1:]), 2, 1, 0) == choose_references(
        row, 2, 1, 0
    )  # of the row, whoever wrote
    assert len({choose_references(row, 2, 0, seed) for seed in range(20)}) > 1


def test_the_interval_is_that_of_the_statistics(evaluate, scores):
    data = make_several([3] * 10)
    items = data.items
    found = evaluate(data, worth_choices=1)
    all_three = found.sets["several"].worth.references[3]
    ratings, groups = [one.rating for one in items], [one.group for one in items]
    rated = at_level(scores(items, 3, samples=0), ratings, "items", groups=groups)
    expected = bootstrap_interval(rated, resamples=30, seed=0)
    assert (all_three.interval.low, all_three.interval.high) == pytest.approx((expected.low, expected.high))


def test_single_references_are_refused_with_a_notice(found):
    single = found.sets["single"].worth
    assert (single.references, single.reason) == ({}, "no item has more than one reference")
    assert found.failures() == ["worth of augmentations on single: no item has more than one reference"]
    assert f"skipped: {found.failures()[0]}" in to_markdown(build_report(found))


def test_report_and_json(found):
    plain = json.loads(json.dumps(to_dict(found), allow_nan=False))["sets"]
    of_set = plain["several"]["worth"]
    assert of_set["references"]["2"]["value"] == found.sets["several"].worth.references[2].value
    assert of_set["beside_one"]["samples"].keys() == {"value", "interval", "n", "worth", "worth_interval"}
    assert plain["single"]["worth"]["reason"]
    for text in (to_markdown(build_report(found)), to_html(build_report(found))):
        assert "Worth of augmentations in human references" in text
        assert "Agreement by number of human references" in text


def test_without_the_option_nothing_is_measured(evaluate, data):
    found = evaluate(data, worth_choices=0)
    assert found.sets["several"].worth is None
    assert "worth" not in to_dict(found)["sets"]["several"]
    with pytest.raises(ValueError, match="worth_choices must be at least 0"):
        evaluate(data, worth_choices=-1)


@pytest.mark.parametrize(
    ("value", "curve", "expected"),
    [
        (0.4, [0.3, 0.5, 0.6], 1.5),
        (0.55, [0.3, 0.5, 0.6], 3.0),
        (0.2, [0.3, 0.5, 0.6], 1.0),
        (0.9, [0.3, 0.5, 0.6], 4.0),
        (0.45, [0.3, 0.2, 0.6], 2.5),  # a dip is passed over
        (0.4, [0.5, 0.4, 0.3], np.nan),
        (np.nan, [0.3, 0.5, 0.6], np.nan),
    ],
)
def test_interpolation(value, curve, expected):
    assert _interpolated(value, np.array(curve), [1, 2, 4]) == pytest.approx(expected, nan_ok=True)


def test_the_task_of_a_set_reaches_metrics_that_sample(gpt2, encoder):
    data = replace(make_set("toy", groups=3), task="dialogue")
    found = meta_evaluate(
        [data],
        ["mars", "mars_no_planning", "mars_no_context"],
        resamples=5,
        attacks=[],
        store=False,
        language_model=gpt2,
        encoder=encoder,
        **{name: value for name, value in MODELS.items() if name != "samples"},
    )
    signatures = {name: one.signature for name, one in found.sets["toy"].scored.metrics.items()}
    assert not found.failures()
    assert {name: "|task:dialogue|" in one for name, one in signatures.items()} == {
        "mars": True,
        "mars_no_planning": False,
        "mars_no_context": False,
    }
    assert to_dict(found)["sets"]["toy"]["task"] == "dialogue"
    assert re.search(r"\| toy +\| +dialogue \|", to_markdown(build_report(found)))


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("other=dialogue", "unknown data set 'other'; choose among: toy"),
        ("toy=chat", "unknown task 'chat'; choose among: dialogue, story"),
        ("dialogue", "not of the form SET=TASK"),
    ],
)
def test_bad_tasks_are_refused(tmp_path, capsys, tasks, message):
    path = tmp_path / "toy.jsonl"
    path.write_text(json.dumps({"candidate": "a", "references": ["b"], "context": "c", "human": 1}) + "\n")
    assert main(["meta", str(path), "--metrics", "length", "--task", tasks]) == 2
    assert message in capsys.readouterr().err


def test_the_command_prints_both_tables_or_the_notice(tmp_path, capsys, data, monkeypatch, found):
    monkeypatch.setattr(
        "mars_score.meta.evaluation.meta_evaluate", lambda sets, *_, **given: seen.update(given) or found
    )
    seen = {}
    path = tmp_path / "toy.jsonl"
    path.write_text(json.dumps({"candidate": "a", "references": ["b"], "context": "c", "human": 1}) + "\n")
    assert main(["meta", str(path), "--metrics", "length", "--worth", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert seen["worth_choices"] == 4
    assert "Worth of augmentations in human references" in out
    assert "skipped: worth of augmentations on single" in out
