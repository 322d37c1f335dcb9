"""MARS in torchmetrics: states, collections, and processes over gloo."""

import copy
import importlib
import pickle
import sys

import pytest
import torch

from mars_score.scorer import MarsScorer
from tests import belief, tiny_models, word_recall
from tests.processes import in_processes
from tests.word_recall import SETTINGS

torchmetrics = pytest.importorskip("torchmetrics")

from mars_score.integrations.torchmetrics import MarsScore  # noqa: E402

COLUMNS = {
    "preds": ["She took the bus.", "The cat slept \U0001f408 on the sofa.", " ", "\u05e9\u05dc a\x00b"],
    "target": [["She went by bus."], ["A cat slept.", "It slept \U0001f408"], ["He left."], ["\u05e9\u05dc"]],
    "contexts": ["Her car broke\u2028down.", ["Where is", "the cat?"], "", "\u4f60\r\n\x85\u597d"],
}
CONTEXTS = ["Her car broke down.", "Where is\nthe cat?", "", "\u4f60\n\n\u597d"]
SCORED = [[text.strip() for text in COLUMNS["preds"]], COLUMNS["target"], CONTEXTS]


@pytest.fixture(autouse=True)
def scored(word_models):
    """The calls of the scorer, with the models of tests/word_recall.py."""
    return word_models


def add(metric, rows=range(4)):
    """Add some of the rows."""
    metric.update(**{name: [column[row] for row in rows] for name, column in COLUMNS.items()})


def filled(*batches, **settings):
    """A metric with the rows of each batch."""
    metric = MarsScore("mini", **SETTINGS, **settings)
    for rows in batches:
        add(metric, rows)
    return metric


def test_all_rows_are_scored_together(scored):
    """For more rows and a reset see the collections below."""
    metric = filled([0], [1, 2, 3])
    score = metric.compute()
    assert (score.dtype, score.shape) == (torch.float32, ())
    assert 0 < score < 1
    metric.compute()
    assert [columns for _, columns in scored] == [SCORED]  # torchmetrics keeps the score


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_a_metric_without_rows_is_0():
    assert filled().compute() == filled([]).compute() == 0


def test_forward_gives_the_batch_and_keeps_the_rows(scored):
    metric = filled()
    for rows in (slice(1), slice(1, 4)):
        batch = {name: column[rows] for name, column in COLUMNS.items()}
        assert metric(**batch) == filled(range(4)[rows]).compute()
    metric.compute()
    assert scored[-1][1] == SCORED


def reloaded(metric):
    other = MarsScore("mini", **SETTINGS)
    for copied in (metric, other):
        copied.persistent(True)
    other.load_state_dict(metric.state_dict())
    other._update_count = 1
    return other


@pytest.mark.parametrize("through", [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric)), reloaded])
def test_copies_hold_the_rows_and_no_models(through):
    metric = filled([0, 1, 2, 3])
    expected = metric.compute()
    other = through(metric)
    other._computed = None
    assert other.compute() == expected
    assert b"SentenceTransformer" not in pickle.dumps(metric)


def test_states_of_two_metrics_merge(scored):
    first = filled([1, 2, 3])
    first.merge_state(filled([0]))
    first.compute()
    assert sorted(scored[-1][1][0]) == sorted(SCORED[0])


def test_bad_columns():
    """For bad rows see tests/data/test_bad_rows.py."""
    with pytest.raises(ValueError, match="preds has 1, references has 2, contexts has 2"):
        filled().update(["a"], ["a", "b"], ["", ""])
    with pytest.raises(ValueError, match="contexts are missing"):
        filled().update(["a"], ["a"])


def test_settings_reach_the_scorer(scored, tmp_path):
    with pytest.raises(ValueError, match="max_mask_ratio"):
        MarsScore("mini", variant="paper", max_mask_ratio=2)
    with pytest.raises(ValueError, match="samples"):
        MarsScore("mini", variant="paper").update(["a"], ["a"], ["b"], [["c"]])
    options = {"store": tmp_path, "device": "cpu", "use_context": False}
    metric = MarsScore("mini", variant="paper", max_mask_ratio=0.4, **options)
    metric.update(["a"], ["a"])
    metric.compute()
    scorer, _ = scored[-1]
    assert (scorer.settings.config.max_mask_ratio, scorer.settings.use_context) == (0.4, False)
    assert (scorer.runtime.store.folder, scorer.runtime.device) == (tmp_path, "cpu")


@pytest.mark.parametrize("target", [["a b", "c"], None])
def test_tasks_and_samples_reach_the_scorer(target):
    """By the rows, by the setting, or by the type of a context, as for the scorer; also without references."""
    contexts, columns = ["a b", ["a", "b"]], {"samples": [["a"], []], "tasks": ["dialogue", None]}
    for settings in ({}, {"task": "data"}):
        metric = MarsScore("mini", variant="fast", **settings)
        metric.update(["a", "b"], target, contexts, **columns)
        expected = MarsScorer("mini", variant="fast", **settings).score(["a", "b"], target, contexts, **columns)
        assert metric.compute().item() == pytest.approx(expected.score, abs=1e-6)
        assert [row.task for row in expected.rows] == ["dialogue", settings.get("task", "dialogue")]
    with pytest.raises(ValueError, match=r"tasks\[1\]"):
        metric.update(["a", "b"], target, contexts, tasks=["text", "story"])


@pytest.mark.filterwarnings("ignore:The ``compute`` method", "ignore::mars_score.errors.MarsWarning")
def test_details_are_scalars(tiny_mini, monkeypatch):
    belief.believe(monkeypatch, certain=0.0, likely=0.0)
    texts = ["They left.", "It is late."], ["They left.", "It is early."], ["It rained."] * 2
    result = MarsScorer("mini", variant="fast").score(*texts, tasks="summary")
    metric = MarsScore("mini", variant="fast", detailed=True)
    empty = metric.compute()
    assert (empty["mars"], empty["contradicted"]) == (0, 0)
    assert empty["faithfulness"].isnan()
    metric.reset()
    metric.update(*texts, tasks="summary")
    values = metric.compute()
    assert all((value.dtype, value.shape) == (torch.float32, ()) for value in values.values())
    shares = {"mars": result.score, "contradicted": 1.0, "faithfulness": result.faithfulness}
    assert {name: value.item() for name, value in values.items()} == pytest.approx(shares, abs=1e-6)


def test_a_missing_torchmetrics_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "mars_score.integrations.torchmetrics")
    with pytest.raises(ImportError, match=r"is not installed; run: pip install 'mars-score\[torchmetrics\]'"):
        importlib.import_module("mars_score.integrations.torchmetrics")


# Collections, and several processes: the rows of each of two

SHARES = {
    "both have rows": [[0, 3], [1, 2]],
    "the first has none": [[], [2, 1, 0]],
    "the second has none": [[1, 0, 3], []],
    "nobody has any": [[], []],
}


def collected(rows):
    """Scores of a metric and of a collection: computed, computed with the rows once more, and after a reset."""
    metrics = [
        filled(),
        MarsScore("mini", **{**SETTINGS, "repetition_penalty": 0.5}),
        torchmetrics.text.CHRFScore(),
    ]
    collection = torchmetrics.MetricCollection(dict(zip("abc", metrics, strict=True)))
    single, scores = filled(), []
    for step in range(3):
        for metric in (single, collection):
            if step == 2:
                metric.reset()
            for batch in [[row] for row in rows] or [[]]:  # else it gives what it computed before, here only
                add(metric, batch)
        results = collection.compute()
        scores.append([single.compute().item(), results["a"].item(), results["b"].item()])
    return scores


def share(rank, encoder):
    """The scores of every case in this process; and what a metric whose scoring fails raises."""
    patch = pytest.MonkeyPatch()
    scored, results = word_recall.install_models(patch, encoder), {}
    for name, rows in SHARES.items():
        scored.clear()
        results[name] = {"scores": collected(rows[rank]), "seen": [columns for _, columns in scored]}

    def fail(*_, **__):
        raise OSError("the Hub is out of reach")

    patch.setattr(MarsScorer, "score_rows", fail)
    with pytest.raises((OSError, RuntimeError)) as caught:
        filled([rank]).compute()
    return {**results, "failure": f"{type(caught.value).__name__}: {caught.value}"}


def expected_scores(order):
    once, twice = (filled(order * times).compute().item() for times in (1, 2))
    return [[once] * 3, [twice] * 3, [once] * 3]


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_in_a_collection():
    assert collected([0, 1, 2]) == expected_scores([0, 1, 2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_processes_agree_with_one(tmp_path, scored):
    first, second = in_processes(tmp_path, share, tiny_models.word_encoder())
    for name, (ours, others) in SHARES.items():
        scored.clear()
        order = ours + others
        assert first[name]["scores"] == second[name]["scores"] == expected_scores(order)
        assert second[name]["seen"] == []  # one process scores for both, in the order of the processes
        assert not order or first[name]["seen"][0] == [[column[row] for row in order] for column in SCORED]
    assert first["failure"] == "OSError: the Hub is out of reach"  # and the other process does not wait
    assert second["failure"] == "RuntimeError: scoring failed in process 0: OSError: the Hub is out of reach"
