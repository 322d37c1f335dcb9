"""MARS in torchmetrics: states, collections, and real processes over gloo."""

import copy
import importlib
import pickle
import sys

import pytest
import tiny_models
import torch
import word_recall
from processes import in_processes

from mars_score.data.validation import Row
from mars_score.scorer import MarsScorer

torchmetrics = pytest.importorskip("torchmetrics")

from mars_score.integrations.torchmetrics import MarsScore, rows_of, to_tensor  # noqa: E402

PREDS = ["She took the bus.", "The cat slept \U0001f408 on the sofa.", " ", "\u05e9\u05dc\u05d5\u05dd a\x00b"]
TARGETS = [
    "She went to work by bus.",
    ["A cat slept.", "It was asleep \U0001f408"],
    "He left.",
    "\u05e9\u05dc\u05d5\u05dd",
]
CONTEXTS = ["Her car broke down.", ["Where is", "the cat?"], "", "\u4f60\u597d"]
ROWS = list(zip(PREDS, TARGETS, CONTEXTS, strict=True))


@pytest.fixture(autouse=True)
def scored(monkeypatch):
    return word_recall.install(monkeypatch)


def add(metric, rows):
    metric.update(*map(list, zip(*rows, strict=True))) if rows else None


@pytest.fixture
def filled():
    metric = MarsScore("mini")
    add(metric, ROWS[:1])
    add(metric, ROWS[1:])
    return metric


# One process


def test_all_rows_are_scored_together(filled, scored):
    score = filled.compute()
    [(_, columns)] = scored
    assert columns == [
        [text.strip() for text in PREDS],
        [[TARGETS[0]], TARGETS[1], [TARGETS[2]], [TARGETS[3]]],
        [CONTEXTS[0], "Where is\nthe cat?", *CONTEXTS[2:]],
    ]
    assert score.dtype == torch.float32
    assert score.shape == ()
    assert 0 < score < 1
    filled.compute()
    assert len(scored) == 1  # torchmetrics keeps it


def candidates_of(call):
    _, (candidates, *_) = call
    return candidates


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_without_rows():
    metric = MarsScore("mini")
    assert metric.compute() == 0
    metric.update([], [], [])
    assert metric.compute() == 0


def test_rows_go_on_after_compute_and_anew_after_reset(filled, scored):
    fresh = MarsScore("mini")
    for rows in (ROWS, ROWS[:1]):
        add(fresh, rows)
    filled.compute()
    add(filled, ROWS[:1])
    assert filled.compute() == fresh.compute()
    filled.reset()
    add(filled, ROWS[:2])
    filled.compute()
    assert candidates_of(scored[-1]) == PREDS[:2]


def test_forward_gives_the_batch_and_keeps_the_rows(scored):
    metric = MarsScore("mini")
    batch = metric(PREDS[:1], TARGETS[:1], CONTEXTS[:1])
    alone = MarsScore("mini")
    add(alone, ROWS[:1])
    assert batch == alone.compute()
    metric(PREDS[1:], TARGETS[1:], CONTEXTS[1:])
    metric.compute()
    assert candidates_of(scored[-1]) == [text.strip() for text in PREDS]


@pytest.mark.parametrize("through", [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric))])
def test_copies_hold_the_rows_and_no_models(filled, through):
    expected = filled.compute()
    other = through(filled).half().set_dtype(torch.float16)  # texts have no number type
    other._computed = None
    assert other.compute() == expected
    assert b"SentenceTransformer" not in pickle.dumps(filled)


def test_state_dict(filled):
    assert not filled.state_dict()
    filled.persistent(True)
    other = MarsScore("mini")
    other.persistent(True)
    other.load_state_dict(filled.state_dict())
    other._update_count = 1
    assert other.compute() == filled.compute()


def test_states_of_two_metrics_merge(scored):
    first, second = MarsScore("mini"), MarsScore("mini")
    add(first, ROWS[1:])
    add(second, ROWS[:1])
    first.merge_state(second)
    first.compute()
    assert sorted(candidates_of(scored[-1])) == sorted(text.strip() for text in PREDS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["a"], ["a", "b"], ["", ""]), "preds has 1, target has 2"),
        ((["a"], ["a"]), "contexts are missing"),
        ((["a"], ["a"], ["", ""]), "contexts has 2"),
    ],
)
def test_bad_columns(filled, columns, message):
    with pytest.raises(ValueError, match=message):
        filled.update(*columns)


def test_settings_reach_the_scorer(scored, tmp_path):
    with pytest.raises(ValueError, match=r"max_mask_ratio must be a number in \[0, 1\]"):
        MarsScore("mini", max_mask_ratio=2)
    metric = MarsScore("mini", max_mask_ratio=0.4, store=tmp_path, device="cpu", use_context=False)
    metric.update(["a"], ["a"])
    metric.compute()
    scorer, _ = scored[-1]
    assert (scorer.settings.masking.max_mask_ratio, scorer.settings.use_context) == (0.4, False)
    assert (scorer.runtime.store.folder, scorer.runtime.device) == (tmp_path, "cpu")


def test_in_a_collection():
    both = torchmetrics.MetricCollection(
        {
            "full": MarsScore("mini"),
            "plain": MarsScore("mini", use_context=False),
            "chrf": torchmetrics.text.CHRFScore(),
        }
    )
    targets = [[text] if isinstance(text, str) else text for text in TARGETS]
    for _ in range(2):
        for part in (slice(0, 1), slice(1, None)):
            both.update(preds=PREDS[part], target=targets[part], contexts=CONTEXTS[part])
        found = both.compute()
        alone = MarsScore("mini")
        add(alone, ROWS)
        assert found["full"] == alone.compute()
        assert found["plain"] == found["full"]  # contexts have no weight here
        assert 0 < found["chrf"] < 1
        both.reset()


def test_half_of_a_character():
    metric = MarsScore("mini")
    metric.update(["a \ud83d"], ["a b"], [""])
    assert metric.compute() == 0.5


# Packing


def test_packing_is_exact():
    rows = [Row("", ("a", "\u05e9\U0001f600"), "\x00\r\n\x85"), Row("b", ("c",), "", ("d", "e"))]
    parts = [to_tensor(rows[:1]), to_tensor([]), to_tensor(rows[1:])]
    assert rows_of(parts) == rows
    assert torch.cat(parts).dtype == torch.uint8
    assert rows_of(torch.cat(parts)) == rows


# Imports


def test_a_missing_torchmetrics_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "mars_score.integrations.torchmetrics")
    with pytest.raises(ImportError, match=r"is not installed; run: pip install 'mars-score\[torchmetrics\]'"):
        importlib.import_module("mars_score.integrations.torchmetrics")


# Several processes


CASES = {
    "both have rows": [[0, 3], [1, 2]],
    "the first has none": [[], [2, 1, 0]],
    "the second has none": [[1, 0, 3], []],
    "nobody has any": [[], []],
}


def share(rank, encoder):
    """The metric of every case in this process, alone and in a collection; and one whose scoring fails."""
    patch = pytest.MonkeyPatch()
    scored = word_recall.install(patch, encoder)
    found = {name: _scores(scored, [ROWS[row] for row in rows_of[rank]]) for name, rows_of in CASES.items()}

    def fail(*_, **__):
        raise OSError("the Hub is out of reach")

    patch.setattr(MarsScorer, "score", fail)
    metric = MarsScore("mini")
    add(metric, ROWS[rank : rank + 1])
    with pytest.raises((OSError, RuntimeError)) as caught:
        metric.compute()
    return {**found, "failure": f"{type(caught.value).__name__}: {caught.value}"}


def _scores(scored, rows):
    """Computed, computed again with the rows added once more, and after a reset with the rows in one call."""
    scored.clear()
    metrics = torchmetrics.MetricCollection(
        {"one": MarsScore("mini"), "other": MarsScore("mini", repetition_penalty=0.5)}
    )
    single = MarsScore("mini")
    found = []
    for step in range(3):
        if step == 2:
            metrics.reset()
            single.reset()
            add(single, rows)
            add(metrics, rows)
        else:
            for row in rows:
                add(single, [row])
                add(metrics, [row])
            if step and not rows:  # or torchmetrics would give what it computed before, in this process only
                single.update([], [], [])
                metrics.update([], [], [])
        found.append([single.compute().item(), *(one.item() for one in metrics.compute().values())])
    return {"scores": found, "seen": [columns for _, columns in scored]}


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    return in_processes(tmp_path_factory.mktemp("processes"), share, tiny_models.word_encoder())


def alone(order):
    metric = MarsScore("mini")
    add(metric, [ROWS[row] for row in order])
    return metric.compute().item()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_processes_agree_with_one(processes, scored, case):
    first, second = (found[case] for found in processes)
    ours, others = CASES[case]
    orders = [ours + others, ours * 2 + others * 2, ours + others]
    expected = [[alone(order)] * 3 for order in orders]
    assert first["scores"] == expected
    assert second["scores"] == expected
    assert second["seen"] == []  # one process scores for both
    if ours + others:
        seen = [columns for _, columns in scored]
        assert first["seen"][::3] == seen  # with the texts of both in the order of the processes


@pytest.mark.slow
def test_a_failure_keeps_no_process_waiting(processes):
    assert [found["failure"] for found in processes] == [
        "OSError: the Hub is out of reach",
        "RuntimeError: scoring failed in process 0: OSError: the Hub is out of reach",
    ]
