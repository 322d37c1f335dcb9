"""A whole meta-evaluation on invented ratings: scores, failures, figures and report."""

import dataclasses
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mars_score.errors import ModelUnavailableError
from mars_score.meta.agreement import ATTACKS, rater_agreement
from mars_score.meta.evaluation import meta_evaluate, score_rows
from mars_score.meta.metrics import METRICS, Metric, Models, make_metric, parse_names
from mars_score.meta.report import write_report
from mars_score.meta.sets import RatedSet
from mars_score.metrics.plus import PlusConfig
from mars_score.models.calls import ModelCalls
from mars_score.rows import TASKS, Row
from mars_score.stats.correlation import correlation
from tests import jsonl

WORDS = ["the", "old", "dog", "slept", "on", "a", "red", "sofa", "while", "nobody", "came", "to", "see", "it"]
CONTEXT = "It rained. The dog was tired. Nobody was there."


def make_models(folder=False, **arguments):
    return Models(preset="mini", store=folder, **arguments)


class Counting(Metric):
    """The number of letters; remembers what it was asked for."""

    title = "letters"
    minimum = -7.0

    def __init__(self, models):
        super().__init__(models)
        self.asked = []

    def score(self, rows, corpus):
        self.asked.append(len(rows))
        return [float(len(row.candidate)) for row in rows]


def fetch(rows, corpus):
    raise ModelUnavailableError("its data is missing;\n run: fetch it")


MISSING = SimpleNamespace(title="missing", score=fetch)
FAULTY = SimpleNamespace(title="faulty", score=lambda rows, corpus: [1.0])
UNDEFINED = SimpleNamespace(title="undefined", score=lambda rows, corpus: [math.nan] * len(rows))


def make_rows(count, start=0):
    return [
        Row("x" * number, ("reference",), f"context {number}") for number in range(start + 1, start + 1 + count)
    ]


def make_set(name="toy", groups=6, systems=3, rate=None, context=CONTEXT):
    generator = np.random.default_rng(len(name))
    items = []
    for group in range(groups):
        for system in range(systems):
            words = generator.permutation(WORDS)[: 2 + generator.integers(6)]
            rating = float(len(words) + generator.normal()) if rate is None else rate
            row = Row(" ".join(words), (" ".join(WORDS[: 4 + group % 3]),), context)
            items.append((row, rating, f"g{group}", f"s{system}", f"{group}-{system}"))
    columns = list(map(list, zip(*items, strict=True)))
    return RatedSet(name, *columns, tuple(dict.fromkeys(row.references[0] for row in columns[0])))


def evaluate(data, metrics, **options):
    return meta_evaluate(
        [data], metrics, **{"preset": "mini", "store": False, "attacks": (), "resamples": 20, **options}
    )


@pytest.fixture(scope="module")
def tiny(gpt2, encoder):
    return {"preset": "mini", "language_model": gpt2, "encoder": encoder, "dtype": "float64"}


NO_ENCODER = "mars[encoder=no/encoder]"  # it cannot be had without the Hub


@pytest.fixture(scope="module")
def evaluated(tiny, tmp_path_factory):
    names = ["mars", "mars_no_planning", "mars_no_context", NO_ENCODER, "reference_cosine", "length"]
    sets = [make_set("one"), make_set("second", groups=4, systems=1)]
    store = tmp_path_factory.mktemp("store")
    return meta_evaluate(sets, names, within_groups=["one"], resamples=50, store=store, **tiny)


# Scores


def test_equal_rows_are_scored_once_and_progress_is_told():
    stages = []
    metric = Counting(make_models(progress=lambda *stage: stages.append(stage)))
    rows = make_rows(3)
    assert score_rows(metric, [*rows, rows[0], Row(" ")], ()) == [1.0, 2.0, 3.0, 1.0, -7.0]
    assert metric.asked == [3]
    assert stages == [("letters", 0, 3), ("letters", 3, 3)]


def test_a_stopped_run_goes_on_where_it_was(named_models, tmp_path, monkeypatch):
    """What models computed is in the cache; the other metrics are computed again."""
    data, log_probability = make_set(groups=3), ModelCalls.log_probability

    def stopped(self, *args):
        log_probability(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ModelCalls, "log_probability", stopped)
        with pytest.raises(KeyboardInterrupt):
            evaluate(data, ["mars_plus"], preset="mini", store=tmp_path, **named_models)
    monkeypatch.setattr(ModelCalls, "_model", lambda self, name: pytest.fail("a model is run again"))
    evaluated = evaluate(data, ["context_perplexity", "length"], preset="mini", store=tmp_path, **named_models)
    assert not np.isnan(evaluated.sets["toy"].metrics["context_perplexity"].scores).any()


def test_failures_are_stated_the_others_go_on_and_blank_candidates_never_reach_a_metric():
    counting, rows = (
        Counting(make_models()),
        [Row(text, ("a b c d",), CONTEXT) for text in ("a b c d e", "b", " \n")],
    )
    data = RatedSet("toy", rows, [0.0, 1.0, 2.0], *(["same"] * 3 for _ in range(3)), ("a b c d",))
    evaluated = evaluate(data, [MISSING, FAULTY, UNDEFINED, counting], attacks=["reorder"]).sets["toy"].metrics
    assert evaluated["missing"].failure == "its data is missing; run: fetch it"
    assert evaluated["faulty"].failure == "failed with ValueError: faulty gave 1 scores for 3 rows"
    assert np.isnan(evaluated["missing"].scores).all()
    assert evaluated["undefined"].failure is None
    assert np.isnan(evaluated["undefined"].scores[:2]).all()
    assert list(evaluated["letters"].scores) == [9.0, 1.0, -7.0]
    assert list(evaluated["letters"].attacked["reorder"]) == [9.0]
    assert counting.asked == [3]


def test_names():
    variant = "mars[variant=paper,sigma=0]"
    assert parse_names(f"bleu1, {variant} ,length") == ["bleu1", variant, "length"]
    assert len({make_metric(name, make_models()).title for name in METRICS}) == len(METRICS)


def test_variants_of_mars_are_settings():
    def settings(name):
        return dict(make_metric(name, make_models(max_context_tokens=9)).scorer().settings.items())

    paper = settings('mars[variant=paper,planner=none,sigma=0,pos_weights={"ADJ":4,"NOUN":2}]')
    names = ("variant", "sigma", "max_context_tokens", "pos_weights")
    assert [paper[name] for name in names] == ["paper", 0, 9, {"ADJ": 4, "NOUN": 2}]
    plus = settings("mars[variant=plus]")
    for field in dataclasses.fields(PlusConfig):
        value = plus[field.name]
        other = "mean" if value == "max" else value / 2 if isinstance(value, float) else value + 1
        assert settings(f"mars[variant=plus,{field.name}={other}]")[field.name] == other


def test_settings_of_all_metrics_count_where_a_variant_has_them(tiny):
    general = {"variant": "plus", "context_weight": 0.3, "likelihood_words": 7, "max_context_tokens": 9}
    models = make_models(**general, **{name: value for name, value in tiny.items() if name != "preset"})

    def values(name):
        entries = make_metric(name, models).result([Row("a", ("b",), "c")], ()).signature.entries
        return [entries.get(setting) for setting in general]

    assert values("mars") == list(general.values())
    assert values("mars[context_weight=0.1]") == ["plus", 0.1, 7, 9]
    assert values("mars_paper") == ["paper", None, None, 9]
    assert values("mars_fast") == ["fast", 0.3, PlusConfig().likelihood_words, PlusConfig().max_context_tokens]
    assert values("mars_no_context")[1] == PlusConfig().context_weight


def test_tasks_are_those_of_rows_unless_a_variant_says_another(tiny):
    models = make_models(**{name: value for name, value in tiny.items() if name != "preset"})
    rows = [Row("it was late", ("late it was",), "a context", task=task) for task in TASKS]

    def terms(name):
        return [[term.name for term in row.terms] for row in make_metric(name, models).result(rows, ()).row_scores]

    assert ["likelihood" in names for names in terms("mars_plus")] == [True, True, False, True]
    assert ["sentences" in names for names in terms("mars_plus")] == [False, False, False, True]
    assert ["likelihood" in names for names in terms("mars[variant=plus,task=dialogue]")] == [False] * 4


# Figures


def test_figures_are_those_of_the_statistics(evaluated):
    result = evaluated.sets["one"]
    scores, data = result.metrics["length"].scores, result.data
    assert list(scores) == [len(row.candidate.split()) for row in data.rows]
    expected = correlation(scores, data.ratings, level="within_groups", groups=data.groups).value
    assert result.pearson("length") == expected
    agreement = result.agreements["length"]
    over_items = np.corrcoef(scores, data.ratings)[0, 1]
    assert agreement.coefficients["items"]["pearson"].value == pytest.approx(over_items)
    assert "idf" in result.metrics["mars_no_planning"].signature  # over the references of the whole set
    assert set(agreement.per_system) == set(agreement.system_intervals) == {"s0", "s1", "s2"}
    members = np.array(data.systems) == "s1"
    of_system = np.corrcoef(scores[members], np.array(data.ratings)[members])[0, 1]
    assert agreement.per_system["s1"].value == pytest.approx(of_system)


def alpha(units):
    """Krippendorff's alpha of intervals by its definition: 1 - observed / expected disagreement, over pairs."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    within = sum(sum((a - b) ** 2 for a in unit for b in unit) / (len(unit) - 1) for unit in units) / len(values)
    return 1 - within / (sum((a - b) ** 2 for a in values for b in values) / len(values) / (len(values) - 1))


def test_raters_agree_by_krippendorffs_alpha():
    items = [
        {"fluency": [1, 2, 2], "relevance": [3.0, 3.0, 4.0]},
        {"fluency": [5, 4], "relevance": [2, 2]},
        {"fluency": [3]},
        {},
        {"fluency": [2, math.nan, 2], "relevance": [1, 5, 1]},
    ]
    evaluated = rater_agreement(items)
    assert evaluated["fluency"] == pytest.approx(alpha([[1, 2, 2], [5, 4], [2, 2]]), rel=1e-12)
    assert evaluated["relevance"] == pytest.approx(alpha([[3, 3, 4], [2, 2], [1, 5, 1]]), rel=1e-12)
    assert evaluated["mean"] == pytest.approx(alpha([[2, 2.5, 3], [3.5, 3], [1.5, 1.5]]), rel=1e-12)
    assert rater_agreement([]) == {}
    for undefined in ([{"a": [1]}, {"a": [2]}], [{"a": [1, 1]}, {"a": [1, 1]}]):
        assert math.isnan(rater_agreement(undefined)["a"])


def test_agreement_of_raters_is_in_the_report_or_a_notice_says_what_is_missing(tmp_path, monkeypatch):
    data = make_set(groups=2, systems=2)
    data.single_ratings[:] = [{"rating": [number, number + 1]} for number in range(4)]
    result = evaluate(data, ["length"])
    expected = alpha([[number, number + 1] for number in range(4)])
    assert (
        result.sets["toy"].raters
        == {"rating": pytest.approx(expected)}
        == result.to_dict()["sets"]["toy"]["raters"]
    )
    report = write_report(result, tmp_path).read_text(encoding="utf-8")
    assert f"Krippendorff's alpha {expected:.2f}" in report
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    result = evaluate(data, ["length"])
    assert result.sets["toy"].raters == {}
    assert any("mars-score[meta]" in notice for notice in result.notices())


def test_attacks_and_tests_compare_scores(evaluated):
    result = evaluated.sets["one"]
    robust = result.agreements["length"].robustness["reorder"]  # shuffling changes no length
    assert robust.share == 0.0
    assert robust.n + result.attacks["reorder"].skipped == len(result.data.rows)
    assert robust.after == robust.before
    mars, attacked = result.metrics["mars"], result.attacks["retrieve"]
    above = mars.scores[list(attacked.indices)] > mars.attacked["retrieve"]
    assert result.agreements["mars"].robustness["retrieve"].share == above.mean()
    test = result.agreements["length"].mars_better
    assert test.difference == pytest.approx(result.pearson("mars") - result.pearson("length"))
    assert result.agreements["mars"].mars_better is None


def test_scores_that_are_equal_but_for_rounding_are_ties():
    class Rounded:
        def score(self, rows, corpus):
            return [0.3 + (1e-8 if candidate.startswith("the") else 0.0) for candidate, _, _ in rows]

    evaluated = evaluate(make_set(), [Rounded()], attacks=["reorder"])
    assert evaluated.sets["toy"].agreements["Rounded"].robustness["reorder"].share == 0.0


def test_attacks_and_intervals_depend_on_the_seed():
    first, again, other = (
        evaluate(make_set(groups=12), ["length"], attacks=["reorder"], seed=seed).sets["toy"] for seed in (0, 0, 1)
    )
    assert first.attacks == again.attacks != other.attacks
    first, again, other = (result.agreements["length"].interval for result in (first, again, other))
    assert first == again != other


def test_any_object_with_a_score_method_is_a_metric(tmp_path):
    class Letters:
        asked = 0

        def score(self, rows, corpus):
            assert set(corpus) == set(data.corpus)
            self.asked += len(rows)
            return np.array([len(candidate) for candidate, references, context in rows if references and context])

    data, letters = make_set(), Letters()
    evaluated = evaluate(data, [letters, "length"], store=tmp_path)
    assert letters.asked == len(data.rows)
    expected = np.corrcoef([len(row.candidate) for row in data.rows], data.ratings)[0, 1]
    assert evaluated.sets["toy"].pearson("Letters") == pytest.approx(expected)
    assert "Letters" in write_report(evaluated, tmp_path).read_text(encoding="utf-8")

    letters.title = "letters of my own"
    assert evaluate(data, [letters], store=tmp_path).titles == {"letters of my own": "letters of my own"}


def test_different_metrics_of_one_name_are_refused():
    class Own:
        def __init__(self, sign):
            self._sign = sign

        def score(self, rows, corpus):
            return [float(self._sign * len(candidate)) for candidate, *_ in rows]

    first, other, length = Own(1), Own(-1), Own(2)
    length.title = "length"
    for name, metrics in {"Own": [first, other], "length": ["length", length]}.items():
        with pytest.raises(ValueError, match=f"'{name}'.*title"):
            evaluate(make_set(), metrics)
    other.title = "shortest"
    metrics = [first, other, first, "length", "length"]
    assert list(evaluate(make_set(), metrics).titles) == ["Own", "shortest", "length"]


def test_the_report_and_its_plain_data_are_complete(evaluated, tmp_path):
    assert any("no/encoder" in failure for failure in evaluated.failures())
    text = write_report(evaluated, tmp_path).read_text(encoding="utf-8")
    for part in (
        "skipped: MARS, encoder=no/encoder",
        "MARS minus each metric",
        "MARS without context",
        "Per system: one",
    ):
        assert part in text
    result = evaluated.sets["one"]
    metrics = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["sets"]["one"]["metrics"]
    assert metrics["length"]["coefficients"]["within_groups"]["pearson"]["value"] == result.pearson("length")
    assert metrics[NO_ENCODER]["failure"]
    rows = jsonl.read(tmp_path / "scores" / "one.jsonl")
    assert [row["id"] for row in rows] == [f"{group}-{system}" for group in range(6) for system in range(3)]
    assert rows[0]["scores"]["length"] == result.metrics["length"].scores[0]
    assert rows[0]["scores"][NO_ENCODER] is None
    index = result.attacks["retrieve"].indices[1]
    assert rows[index]["retrieve"]["length"] == result.metrics["length"].attacked["retrieve"][1]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("constant", {"rate": 3.0}),
        ("lonely", {"groups": 8, "systems": 1}),
        ("onegroup", {"groups": 1}),
        ("tiny", {"groups": 1, "systems": 1}),
        ("nocontext", {"context": ""}),
    ],
)
def test_what_is_undefined_is_said_and_the_rest_appears(name, options, tmp_path):
    data = make_set(name, **options)
    evaluated = evaluate(data, [Counting(make_models()), UNDEFINED, MISSING, "length"], attacks=ATTACKS)
    text = write_report(evaluated, tmp_path).read_text(encoding="utf-8")
    assert "letters" in text
    assert "its data is missing" in text
    if name == "constant":
        assert math.isnan(evaluated.sets["constant"].pearson("letters"))
        assert "ratings" in evaluated.sets["constant"].agreements["letters"].interval.reason
    json.dumps(evaluated.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: meta_evaluate([]), ValueError, "no data sets"),
        (lambda: evaluate(make_set(), attacks=["shout"], metrics=[]), ValueError, "unknown attack 'shout'"),
        (lambda: evaluate(make_set(), [3]), TypeError, "an object with a score method, got 3"),
        (lambda: evaluate(make_set(), ["mars"], sigmoid=1), TypeError, "unknown setting"),
        (lambda: evaluate(make_set(), ["zzz"]), ValueError, "'zzz'; mars meta --help lists the names"),
        (lambda: evaluate(make_set(), ["mars[sigma]"]), ValueError, r"written mars\[setting=value"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(call, error, message):
    with pytest.raises(error, match=message):
        call()
