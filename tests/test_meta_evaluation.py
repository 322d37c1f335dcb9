"""A whole meta-evaluation on invented ratings: figures, report, also where much is undefined."""

import json
import math

import numpy as np
import pytest
from test_meta_scoring import Counting, Missing, Undefined, make_models

from mars_score.data.rated import Item, RatedSet
from mars_score.meta.evaluation import MetaOptions, meta_evaluate
from mars_score.meta.report import write_meta_report
from mars_score.stats.correlation import correlation

WORDS = ["the", "old", "dog", "slept", "on", "a", "red", "sofa", "while", "nobody", "came", "to", "see", "it"]
CONTEXT = "It rained. The dog was tired. Nobody was there."
FEW = MetaOptions(attacks=(), resamples=20)


def make_set(name="toy", groups=6, systems=3, rate=None, context=CONTEXT):
    generator = np.random.default_rng(len(name))
    items = []
    for group in range(groups):
        for system in range(systems):
            words = generator.permutation(WORDS)[: 2 + generator.integers(6)]
            rating = float(len(words) + generator.normal()) if rate is None else rate
            row = (" ".join(words), (" ".join(WORDS[: 4 + group]),), context)
            items.append(Item(f"{group}-{system}", f"g{group}", f"s{system}", row, rating))
    return RatedSet(name, tuple(items), tuple(dict.fromkeys(item.row[1][0] for item in items)))


def evaluate(data, metrics, options=FEW, **scorer):
    return meta_evaluate([data], metrics, options, **{"preset": "mini", "store": False, **scorer})


@pytest.fixture(scope="module")
def tiny(gpt2, encoder):
    return {"preset": "mini", "language_model": gpt2, "encoder": encoder, "dtype": "float64"}


@pytest.fixture(scope="module")
def found(tiny, tmp_path_factory):
    names = ["mars", "mars_no_planning", "mars_no_context", "mars_naive", "reference_cosine", "length"]
    options = MetaOptions(within_groups=["one"], resamples=50)
    sets = [make_set("one"), make_set("second", groups=10, systems=1)]
    return meta_evaluate(sets, names, options, store=tmp_path_factory.mktemp("store"), **tiny)


def test_figures_are_those_of_the_statistics(found):
    result = found.sets["one"]
    scores, data = result.scored.metrics["length"].scores, result.scored.data
    assert list(scores) == [len(row[0].split()) for row in data.rows]
    expected = correlation(scores, data.ratings, level="within_groups", groups=data.groups).value
    assert result.pearson("length") == expected
    agreement = result.agreements["length"]
    over_items = np.corrcoef(scores, data.ratings)[0, 1]
    assert agreement.coefficients["items"]["pearson"].value == pytest.approx(over_items)
    assert set(agreement.per_system) == set(agreement.system_intervals) == {"s0", "s1", "s2"}


def test_robustness_counts_ties_as_failures(found):
    result = found.sets["one"]
    robust = result.agreements["length"].robustness["reorder"]  # shuffling changes no length
    assert robust.share == 0.0
    assert robust.n + result.scored.attacks["reorder"].skipped == len(result.scored.data.items)
    assert robust.after == robust.before
    mars, attacked = result.scored.metrics["mars"], result.scored.attacks["retrieve"]
    above = mars.scores[list(attacked.indices)] > mars.attacked["retrieve"]
    assert result.agreements["mars"].robustness["retrieve"].share == above.mean()


def test_scores_that_are_equal_but_for_rounding_are_ties():
    class Rounded:
        def score(self, rows, corpus):
            return [0.3 + (1e-8 if candidate.startswith("the") else 0.0) for candidate, _, _ in rows]

    found = evaluate(make_set(), [Rounded()], MetaOptions(resamples=20))
    assert found.sets["toy"].agreements["Rounded"].robustness["reorder"].share == 0.0


def test_any_object_with_a_score_method_is_a_metric(tmp_path):
    class Letters:
        asked = 0

        def score(self, rows, corpus):
            assert set(corpus) == set(data.corpus)
            self.asked += len(rows)
            return np.array([len(candidate) for candidate, references, context in rows if references and context])

    data, own = make_set(), Letters()
    for runs in (1, 2):  # without a key nothing is kept
        found = evaluate(data, [own, "length"], store=tmp_path)
        assert own.asked == runs * len(data.rows)
    expected = np.corrcoef([len(row[0]) for row in data.rows], data.ratings)[0, 1]
    assert found.sets["toy"].pearson("Letters") == pytest.approx(expected)
    assert "Letters" in write_meta_report(found, tmp_path).read_text(encoding="utf-8")

    own.title, own.key, own.asked = "letters of my own", lambda: ["letters", 1], 0
    for _ in range(2):  # with a key they are
        found = evaluate(data, [own], store=tmp_path)
    assert own.asked == len(data.rows)
    assert found.titles == {"letters of my own": "letters of my own"}


def test_tests_compare_mars_with_the_metric(found):
    result = found.sets["second"]
    tests = result.agreements["length"].mars_better
    assert tests["bootstrap"].difference == pytest.approx(result.pearson("mars") - result.pearson("length"))
    assert result.agreements["mars"].mars_better is None


def test_a_missing_model_is_stated_and_the_report_appears(found, tmp_path):
    assert any("naive" in failure and "infiller" in failure for failure in found.failures())
    text = write_meta_report(found, tmp_path).read_text(encoding="utf-8")
    for part in ("skipped: MARS, naive", "What each part brings", "MARS without context", "(chart-1.svg)"):
        assert part in text
    assert "<svg" in (tmp_path / "chart-1.svg").read_text(encoding="utf-8")


def test_plain_data_is_strict_json_and_complete(found):
    result = found.sets["one"]
    metrics = json.loads(json.dumps(found.to_dict(), allow_nan=False))["sets"]["one"]["metrics"]
    assert metrics["length"]["coefficients"]["within_groups"]["pearson"]["value"] == result.pearson("length")
    assert metrics["mars_naive"]["failure"]
    rows = list(result.score_rows())
    assert len(rows) == 18
    assert rows[0]["scores"]["length"] == result.scored.metrics["length"].scores[0]
    assert rows[0]["scores"]["mars_naive"] is None


def test_the_same_seed_gives_the_same_digits(found, tiny):
    again = evaluate(
        make_set("second", groups=10, systems=1), ["mars", "length"], MetaOptions(resamples=50), **tiny
    )
    ours, before = (one.sets["second"].agreements["length"] for one in (again, found))
    assert (ours.coefficients, ours.interval) == (before.coefficients, before.interval)
    assert ours.mars_better["bootstrap"].p == before.mars_better["bootstrap"].p


@pytest.mark.parametrize(
    "data",
    [
        make_set("constant", rate=3.0),
        make_set("lonely", groups=8, systems=1),
        make_set("onegroup", groups=1),
        make_set("tiny", groups=1, systems=1),
        make_set("nocontext", context=""),
    ],
    ids=lambda data: data.name,
)
def test_what_is_undefined_is_said_and_the_rest_appears(data, tmp_path):
    models = make_models()
    metrics = [Counting(models), Undefined(models), Missing(models), "length"]
    found = evaluate(data, metrics, MetaOptions(resamples=20))
    text = write_meta_report(found, tmp_path).read_text(encoding="utf-8")
    assert "letters" in text
    assert "its data is missing" in text
    if data.name == "constant":
        assert math.isnan(found.sets["constant"].pearson("letters"))
        assert "ratings" in found.sets["constant"].agreements["letters"].interval.reason
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sets": []}, ValueError, "no data sets"),
        ({"metrics": [3]}, TypeError, "an object with a score method, got 3"),
        ({"metrics": ["mars"], "sigmoid": 1}, TypeError, "unknown setting"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(arguments, error, message):
    with pytest.raises(error, match=message):
        meta_evaluate(**{"sets": [make_set()], "preset": "mini", "store": False, **arguments})


def test_an_unknown_attack_is_refused():
    with pytest.raises(ValueError, match="unknown attack 'shout'"):
        MetaOptions(attacks=["shout"])
