"""The evaluate module with models: tiny ones as settings, in evaluate's and in transformers' hands."""

from __future__ import annotations

import json
from pathlib import Path

import evaluate
import fakes
import pytest
import tiny_models
import torch

import mars_metric
from mars_score.models import loading as models
from mars_score.runtime import Runtime
from mars_score.scorer import MarsScorer

ROOT = Path(mars_metric.__file__).parent
ROWS = {
    "predictions": ["She took a train home.", "They won the game!", "Nobody came."],
    "references": [["She called a friend."], ["They didn't win.", "They lost."], ["It closed early."]],
    "contexts": ["Her old car broke.", "", "The library is near."],
}


@pytest.fixture(scope="module")
def settings(gpt2, encoder):
    """Tiny models as settings of MARS."""
    values = {"language_model": gpt2, "encoder": encoder, "dtype": "float64"}
    return {"preset": "mini", **values, "store": False, "samples": 0, "max_mask_ratio": 0.4}


@pytest.fixture(autouse=True)
def own_scorers(monkeypatch):
    monkeypatch.setattr(models, "_loaded", {})


@pytest.fixture(scope="module")
def expected(settings):
    """What the scorer says of the rows."""
    return MarsScorer(**settings).score(*ROWS.values())


def check(found, expected):
    assert set(found) == {"mars", "scores", "signature", "augmented_references"}
    assert found["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert found["scores"] == pytest.approx(expected.scores, abs=1e-9)
    assert found["signature"] == str(expected.signature)
    texts = [[text for one in row.references for text in one.augmented.texts] for row in expected.rows]
    assert found["augmented_references"] == [list(dict.fromkeys(row)) for row in texts]
    json.dumps(found)


@pytest.fixture
def make(settings, tmp_path):
    return lambda **arguments: mars_metric.Mars(cache_dir=str(tmp_path / "cache"), **{**settings, **arguments})


def test_compute_is_what_the_scorer_says(make, expected):
    metric = make()
    check(metric.compute(**ROWS, detailed=True), expected)
    assert metric.compute(**ROWS) == {"mars": pytest.approx(expected.score, abs=1e-9)}
    assert 0 < expected.score < 1


def test_batches_equal_one_call(make, expected):
    """IDF is counted over all rows that were added, not batch by batch."""
    metric = make()
    for part in (slice(0, 1), slice(1, 3)):
        metric.add_batch(**{name: values[part] for name, values in ROWS.items()})
    check(metric.compute(detailed=True), expected)


def test_models_are_loaded_once_until_they_are_freed(make, named_models, expected):
    """Metrics and calls share the models of a name, whatever their other settings."""
    named = {name: named_models[name] for name in ("language_model", "encoder")}
    reports = []
    one = make(**named, progress=lambda *report: reports.append(report))
    other = make(**named, context_weight=0.3)
    loading = [(f"load {name}", done, 1) for name in named.values() for done in (0, 1)]
    assert one.compute(**ROWS)["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert sorted(report for report in reports if report[0].startswith("load")) == sorted(loading)
    model = models.causal_model(MarsScorer("mini", **named, dtype="float64").settings.models, Runtime())
    other.compute(**ROWS)
    one.compute(**ROWS)
    assert sum(report in loading for report in reports) == 4
    assert model is models.causal_model(MarsScorer("mini", **named, dtype="float64").settings.models, Runtime())
    other.free()
    one.compute(**ROWS)
    assert sum(report in loading for report in reports) == 8


def test_settings_of_a_call(make, settings, expected):
    other = MarsScorer(**{**settings, "max_mask_ratio": 0.2}).score(*ROWS.values())
    found = make().compute(**ROWS, max_mask_ratio=0.2, detailed=True)
    check(found, other)
    assert found["signature"] != str(expected.signature)


@pytest.mark.parametrize("path", ["mars", mars_metric.__file__])
def test_evaluate_load(path, settings, expected, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    metric = evaluate.load(path, cache_dir=str(tmp_path), **settings)
    check(metric.compute(**ROWS, detailed=True), expected)


def test_combine(make, expected, tmp_path):
    (tmp_path / "toy.py").write_text(fakes.TOY_METRIC)
    toy = evaluate.load(str(tmp_path / "toy.py"), cache_dir=str(tmp_path / "cache"))
    both = evaluate.combine([toy, make()])
    one_each = {**ROWS, "references": [texts[:1] for texts in ROWS["references"]]}
    both.add_batch(**one_each)
    result = both.compute()
    assert set(result) == {"toy", "mars"}
    assert result["mars"] == pytest.approx(make().compute(**one_each)["mars"], abs=1e-9)


def test_trainer(make, tmp_path):
    """A real run: two steps, evaluated with MARS over the contexts of the evaluation set."""
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

    model, tokenizer = tiny_models.tiny_gpt2(seed=9, dtype=torch.float32)
    references = [texts[0] for texts in ROWS["references"]]
    data = [{"input_ids": tokenizer(text)["input_ids"]} for text in references]
    metric = make()
    seen = []

    def compute_metrics(prediction):
        written = tokenizer.batch_decode(prediction.predictions.argmax(-1), skip_special_tokens=True)
        seen.append((written, torch.is_grad_enabled()))
        return metric.compute(predictions=written, references=references, contexts=ROWS["contexts"])

    arguments = TrainingArguments(
        output_dir=str(tmp_path / "run"),
        max_steps=2,
        per_device_train_batch_size=2,
        eval_strategy="steps",
        eval_steps=1,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=data,
        eval_dataset=data,
        data_collator=collator,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    scores = [entry["eval_mars"] for entry in trainer.state.log_history if "eval_mars" in entry]
    assert len(scores) == 2
    assert all(type(score) is float and -1 <= score <= 1 for score in scores)
    assert len(seen) == 2
    final = trainer.evaluate()
    trainer.log_metrics("eval", final)
    trainer.save_metrics("eval", final)
    assert json.loads((tmp_path / "run" / "eval_results.json").read_text())["eval_mars"] == final["eval_mars"]
    written, _ = seen[-1]
    again = metric.compute(predictions=written, references=references, contexts=ROWS["contexts"])
    assert again["mars"] == pytest.approx(final["eval_mars"], abs=1e-9)
