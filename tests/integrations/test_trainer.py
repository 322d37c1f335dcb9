"""``compute_metrics`` in real trainers of transformers, over tiny models (scores: tests/word_recall.py)."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mars_metric import Mars
from mars_score.integrations.trainer import compute_metrics
from mars_score.scorer import MarsScorer
from tests import tiny_models, word_recall
from tests.processes import in_processes
from tests.word_recall import SETTINGS

CONTEXTS = [
    "The baker opens her shop early in the morning",
    "It will rain before noon says one of them and the others laugh",
    "He forgot his ticket at home",
    "The road is busy",
    "They walk along the river and stop on the bridge to look at the boats",
]
REFERENCES = [
    "She puts warm bread in the window",
    "Nobody is surprised",
    "He went back",
    "They need a bridge",
    "It is a fine day by the river",
]
QUIET = {"report_to": "none", "use_cpu": True, "disable_tqdm": True}


@pytest.fixture(autouse=True)
def scored(word_models):
    """The calls of the scorer, with the models of tests/word_recall.py."""
    return word_models


@pytest.fixture
def mars(tmp_path):
    return Mars(preset="mini", cache_dir=str(tmp_path / "cache"), **SETTINGS)


def seq2seq_trainer(folder, metrics, **arguments):
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

    model, tokenizer = tiny_models.tiny_bart(3, 64), tiny_models.roberta_tokenizer()
    data = [
        {"input_ids": tokenizer(context)["input_ids"], "labels": tokenizer(reference)["input_ids"]}
        for context, reference in zip(CONTEXTS, REFERENCES, strict=True)
    ]
    steps = {"max_steps": 2, "eval_strategy": "steps", "eval_steps": 1, "save_strategy": "no"}
    batches = {"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2}
    writing = {"predict_with_generate": True, "generation_max_length": 8}
    return Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(str(folder), **QUIET, **steps, **batches, **writing, **arguments),
        train_dataset=data,
        eval_dataset=data,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        compute_metrics=metrics,
    )


@pytest.mark.parametrize(
    ("contexts", "how"),
    [(CONTEXTS, {}), (None, {"batch_eval_metrics": True}), (None, {"eval_do_concat_batches": False})],
    ids=["contexts", "metrics by batch", "batches apart"],
)
def test_a_seq2seq_trainer(mars, scored, tmp_path, contexts, how):
    metrics = compute_metrics(mars, tiny_models.roberta_tokenizer(), contexts)
    inputs = {} if contexts else {"include_for_metrics": ["inputs"]}
    trainer = seq2seq_trainer(tmp_path / "run", metrics, **inputs, **how)
    trainer.train()
    logged = [entry["eval_mars"] for entry in trainer.state.log_history if "eval_mars" in entry]
    assert len(logged) == 2
    assert all(type(score) is float for score in logged)
    assert [columns[1:] for _, columns in scored] == [[[[text] for text in REFERENCES], CONTEXTS]] * 2
    final = trainer.evaluate()
    trainer.save_metrics("eval", final)
    assert json.loads((tmp_path / "run" / "eval_results.json").read_text())["eval_mars"] == final["eval_mars"]
    _, (written, references, given) = scored[-1]
    assert any(written)  # the tiny model writes something
    assert not any("<" in text for text in written)
    assert mars.compute(predictions=written, references=references, contexts=given)["mars"] == final["eval_mars"]


def in_two(rank, folder, encoder):
    scored = word_recall.install_models(pytest.MonkeyPatch(), encoder)
    mars = Mars(preset="mini", cache_dir=folder, **SETTINGS)
    metrics = compute_metrics(mars, tiny_models.roberta_tokenizer(), CONTEXTS)
    trainer = seq2seq_trainer(folder, metrics, ddp_backend="gloo")
    assert trainer.args.world_size == 2
    return {"score": trainer.evaluate()["eval_mars"], "seen": [columns for _, columns in scored]}


@pytest.mark.slow
def test_in_two_processes_one_scores(tmp_path, scored):
    """Five rows in batches of two on each of two processes: the last batches are filled up, and cut again."""
    first, second = in_processes(tmp_path, in_two, str(tmp_path), tiny_models.word_encoder())
    assert first["score"] == second["score"]
    assert second["seen"] == []
    ((written, references, contexts),) = first["seen"]
    assert (references, contexts) == ([[text] for text in REFERENCES], CONTEXTS)
    alone = compute_metrics(MarsScorer("mini", **SETTINGS), tiny_models.roberta_tokenizer(), CONTEXTS)
    assert seq2seq_trainer(tmp_path / "one", alone).evaluate()["eval_mars"] == first["score"]
    assert scored[-1][1][0] == written


def test_a_trainer_of_a_causal_model(mars, scored, tmp_path):
    """Predicted ids by way of preprocess_logits_for_metrics."""
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

    model, tokenizer = tiny_models.tiny_gpt2(seed=9)
    data = [{"input_ids": tokenizer(text)["input_ids"]} for text in REFERENCES]
    trainer = Trainer(
        model=model.float(),
        args=TrainingArguments(str(tmp_path / "run"), **QUIET),
        eval_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        compute_metrics=compute_metrics(mars, tokenizer, CONTEXTS),
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
    )
    final = trainer.evaluate()
    assert 0 <= final["eval_mars"] <= 1
    assert scored[0][1][1:] == [[[text] for text in REFERENCES], CONTEXTS]
    trainer.preprocess_logits_for_metrics = None
    with pytest.raises(ValueError, match=r"predictions must be token ids.*predict_with_generate=True"):
        trainer.evaluate()


# Without a trainer


class Tokenizer:
    """Words by number; 0 is special."""

    def batch_decode(self, rows, skip_special_tokens):
        assert skip_special_tokens
        return [" ".join("_abc"[number] for number in row if number) for row in rows]


PREDICTION = SimpleNamespace(
    predictions=np.array([[0, 1, 2, -100], [3, 0, -100, -100]]),
    label_ids=np.array([[1, 2], [3, -100]]),
    inputs=np.array([[1, -100], [2, 3]]),
)


@pytest.mark.parametrize(
    ("contexts", "expected"), [(None, ["a", "b c"]), (["x", ["y", "z"]], ["x", "y\nz"])], ids=["inputs", "given"]
)
def test_padding_is_no_text_and_given_contexts_come_before_inputs(mars, scored, contexts, expected):
    more = SimpleNamespace(**{**vars(PREDICTION), "predictions": (PREDICTION.predictions, np.zeros((2, 3)))})
    for metric in (mars, MarsScorer("mini", **SETTINGS)):
        for outputs in (PREDICTION, more):  # some models have further outputs
            assert compute_metrics(metric, Tokenizer(), contexts)(outputs) == {"mars": 1.0}
    assert [columns for _, columns in scored] == [[["a b", "c"], [["a b"], ["c"]], expected]] * 4


def test_without_contexts(mars, tmp_path):
    bare = SimpleNamespace(**{**vars(PREDICTION), "inputs": None})
    with pytest.raises(ValueError, match="contexts are missing") as caught:
        compute_metrics(mars, Tokenizer())(bare)
    assert 'include_for_metrics=["inputs"]' in caught.value.__notes__[0]
    settings = {"use_context": False, "support_weight": 0.0, "contradiction_penalty": 0.0}
    without = Mars("fast", preset="mini", cache_dir=str(tmp_path), **settings)
    assert compute_metrics(without, Tokenizer())(bare) == {"mars": 1.0}
    with pytest.raises(ValueError, match="predictions has 2, references has 2, contexts has 1"):
        compute_metrics(mars, Tokenizer(), ["x"])(PREDICTION)  # of another set


@pytest.mark.parametrize("make", [torch.tensor, np.array, list, lambda ids: [torch.tensor(row) for row in ids]])
def test_ids_may_be_tensors_arrays_or_lists(mars, scored, make):
    ids = {name: make(value.tolist()) for name, value in vars(PREDICTION).items()}
    assert compute_metrics(mars, Tokenizer())(SimpleNamespace(**ids)) == {"mars": 1.0}
    ragged = SimpleNamespace(predictions=[[1, 2], [3]], label_ids=[[1, 2], [3]], inputs=[[1], [2, 3]])
    assert compute_metrics(mars, Tokenizer())(ragged) == {"mars": 1.0}
    assert scored[0][1] == scored[1][1] == [["a b", "c"], [["a b"], ["c"]], ["a", "b c"]]


def test_batches_are_scored_together(mars, scored):
    """A batch that fails leaves nothing behind."""
    contexts, tasks = ["x", ["y", "z"], "x", ["y", "z"]], ["data", "text", "text", "dialogue"]
    metrics = compute_metrics(mars, Tokenizer(), contexts, tasks=tasks, samples=[["c"], [], [], []])
    for _ in range(2):
        assert metrics(PREDICTION, compute_result=False) == {}
        with pytest.raises(ValueError, match="predictions must be token ids"):
            metrics(SimpleNamespace(**{**vars(PREDICTION), "predictions": np.zeros((2, 3, 9))}))
        assert metrics(PREDICTION, compute_result=False) == {}
        assert metrics(PREDICTION, compute_result=True) == {"mars": 1.0}
    assert len(scored) == 2
    assert scored[0][1] == [["a b", "c"] * 2, [["a b"], ["c"]] * 2, ["x", "y z", "x", "y\nz"]]


@pytest.mark.parametrize(
    "ids", [np.zeros((2, 3)), np.zeros((2, 3, 9), int), np.array(3), [[0.5]], [1, 2], None, "a"]
)
def test_what_is_not_token_ids_is_refused(mars, ids):
    with pytest.raises(ValueError, match="predictions must be token ids"):
        compute_metrics(mars, Tokenizer())(SimpleNamespace(**{**vars(PREDICTION), "predictions": ids}))


def test_labels_may_be_missing_where_they_do_not_count(mars):
    unlabelled = SimpleNamespace(**{**vars(PREDICTION), "label_ids": None})
    with pytest.raises(ValueError, match=r"label_ids are missing.*use_references=False"):
        compute_metrics(mars, Tokenizer())(unlabelled)
    alone = MarsScorer("mini", variant="fast")
    expected = {"mars": alone.score(["a b", "c"], None, ["a", "b c"]).score}
    for prediction in (unlabelled, PREDICTION):
        assert compute_metrics(alone, Tokenizer(), use_references=False)(prediction) == expected
