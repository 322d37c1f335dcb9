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


@pytest.fixture(scope="module")
def tiny(gpt2, encoder):
    return {"preset": "mini", "language_model": gpt2, "encoder": encoder, "dtype": "float64"}


@pytest.fixture(scope="module")
def found(tiny, tmp_path_factory):
    names = ["mars", "mars_no_planning", "mars_no_context", "mars_naive", "reference_cosine", "length"]
    return meta_evaluate(
        [make_set("one"), make_set("second", groups=10, systems=1)],
        names,
        MetaOptions(within_groups=["one"], resamples=50),
        store=tmp_path_factory.mktemp("store"),
        **tiny,
    )


def test_figures_are_those_of_the_statistics(found):
    one = found.sets["one"]
    scores, data = one.scored.metrics["length"].scores, one.scored.data
    assert list(scores) == [len(row[0].split()) for row in data.rows]
    expected = correlation(scores, data.ratings, level="within_groups", groups=data.groups).value
    assert one.pearson("length") == expected
    plain = np.corrcoef(scores, data.ratings)[0, 1]
    assert one.agreements["length"].coefficients["items"]["pearson"].value == pytest.approx(plain)
    assert set(one.agreements["length"].per_system) == {"s0", "s1", "s2"}


def test_robustness_counts_ties_as_failures(found):
    one = found.sets["one"]
    robust = one.agreements["length"].robustness["reorder"]  # shuffling changes no length
    assert robust.share == 0.0
    assert robust.n + one.scored.attacks["reorder"].skipped == len(one.scored.data.items)
    assert robust.after == robust.before
    mars, attacked = one.scored.metrics["mars"], one.scored.attacks["retrieve"]
    above = mars.scores[list(attacked.indices)] > mars.attacked["retrieve"]
    assert one.agreements["mars"].robustness["retrieve"].share == above.mean()


def test_scores_that_are_equal_but_for_rounding_are_ties():
    class Rounded:
        def score(self, rows, corpus):
            return [0.3 + (1e-8 if candidate.startswith("the") else 0.0) for candidate, _, _ in rows]

    found = meta_evaluate([make_set()], [Rounded()], MetaOptions(resamples=20), preset="mini", store=False)
    assert found.sets["toy"].agreements["Rounded"].robustness["reorder"].share == 0.0


def test_any_object_with_a_score_method_is_a_metric(tmp_path):
    class Letters:
        asked = 0

        def score(self, rows, corpus):
            assert set(corpus) == set(data.corpus)
            self.asked += len(rows)
            return np.array([len(candidate) for candidate, references, context in rows if references and context])

    data, own = make_set(), Letters()
    options = MetaOptions(attacks=(), resamples=20)
    for runs in (1, 2):  # without a key nothing is kept
        found = meta_evaluate([data], [own, "length"], options, preset="mini", store=tmp_path)
        assert own.asked == runs * len(data.rows)
    expected = np.corrcoef([len(row[0]) for row in data.rows], data.ratings)[0, 1]
    assert found.sets["toy"].pearson("Letters") == pytest.approx(expected)
    assert "Letters" in write_meta_report(found, tmp_path).read_text(encoding="utf-8")

    own.title, own.key, own.asked = "letters of my own", lambda: ["letters", 1], 0
    for _ in range(2):  # with a key they are
        found = meta_evaluate([data], [own], options, preset="mini", store=tmp_path)
    assert own.asked == len(data.rows)
    assert found.titles == {"letters of my own": "letters of my own"}


def test_tests_compare_mars_with_the_metric(found):
    one = found.sets["second"]
    tests = one.agreements["length"].mars_better
    assert tests["bootstrap"].difference == pytest.approx(one.pearson("mars") - one.pearson("length"))
    assert one.agreements["mars"].mars_better is None


def test_a_missing_model_is_stated_and_the_report_appears(found, tmp_path):
    assert any("naive" in failure and "infiller" in failure for failure in found.failures())
    text = write_meta_report(found, tmp_path).read_text(encoding="utf-8")
    assert "skipped: MARS, naive" in text
    assert "What each part brings" in text
    assert "MARS without context" in text
    assert "(chart-1.svg)" in text
    assert "<svg" in (tmp_path / "chart-1.svg").read_text(encoding="utf-8")


def test_plain_data_is_strict_json_and_complete(found):
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    length = plain["sets"]["one"]["metrics"]["length"]
    assert length["coefficients"]["within_groups"]["pearson"]["value"] == found.sets["one"].pearson("length")
    assert plain["sets"]["one"]["metrics"]["mars_naive"]["failure"]
    rows = list(found.sets["one"].score_rows())
    assert len(rows) == 18
    assert rows[0]["scores"]["length"] == found.sets["one"].scored.metrics["length"].scores[0]
    assert rows[0]["scores"]["mars_naive"] is None


def test_the_same_seed_gives_the_same_digits(found, tiny):
    data = [make_set("second", groups=10, systems=1)]
    again = meta_evaluate(data, ["mars", "length"], MetaOptions(resamples=50), store=False, **tiny)
    ours, before = (one.sets["second"].agreements["length"] for one in (again, found))
    assert (ours.coefficients, ours.interval) == (before.coefficients, before.interval)
    assert ours.system_intervals == before.system_intervals
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
    found = meta_evaluate([data], metrics, MetaOptions(resamples=20), preset="mini", store=False)
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
        ({"options": MetaOptions(within_groups=["other"])}, ValueError, "unknown data set 'other'"),
        ({"metrics": ["blue"]}, ValueError, "unknown metric 'blue'"),
        ({"metrics": [3]}, TypeError, "an object with a score method, got 3"),
        ({"metrics": ["mars"], "sigmoid": 1}, TypeError, "unknown setting"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(arguments, error, message):
    with pytest.raises(error, match=message):
        meta_evaluate(**{"sets": [make_set()], "preset": "mini", "store": False, **arguments})


@pytest.mark.parametrize(
    ("options", "message"), [({"attacks": ["shout"]}, "unknown attack"), ({"resamples": 0}, "1")]
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MetaOptions(**options)
