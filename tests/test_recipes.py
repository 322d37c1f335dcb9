"""The snippets of docs/recipes.md run, most of them with tiny models."""

import re
from pathlib import Path

import evaluate
import harnesses
import jsonl
import numpy as np
import pytest
import tiny_models
from datasets import Dataset
from transformers import EvalPrediction

import mars_metric
import mars_score
from mars_score.scorer import MarsScorer

RECIPES = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")


# How the output of a section begins.
PRINTED = {
    "Tables": r" +row +prediction +mars +terms\.references\n0 +0 +She took.*\n1 +1 +She walk.*\n2 +1 +By bus",
    "Contexts": r"\['dialogue', 'text', 'data', 'dialogue'\]\n",
    "Streams": r"0 .*\d\n1 .*\d\n2 .*\d\n$",
    "Several systems": "[ABC] cannot be told apart from ",
    "torchmetrics": r"tensor\(-?0\.\d+\)\n",
}


def blocks(heading, language="python"):
    section = RECIPES.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


def run(heading, replaced=("", ""), **names):
    """Run the block of a section; returns all names that it leaves."""
    (block,) = blocks(heading)
    names = {"__name__": "recipe", "mars_score": mars_score, **names}
    exec(block.replace(*replaced), names)
    return names


@pytest.mark.parametrize("heading", PRINTED)
def test_what_is_printed(heading, tiny_mini, capsys):
    run(heading)
    assert re.match(PRINTED[heading], capsys.readouterr().out)


def test_trainer(tiny_mini, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokenizer = tiny_models.roberta_tokenizer()
    ids = np.array([tokenizer("the road")["input_ids"] + [-100]])
    prediction = EvalPrediction(predictions=ids, label_ids=ids, inputs=ids)
    names = {"tokenizer": tokenizer, "contexts": ["a"]}
    for block, context in zip(blocks("Trainer"), ["a", "the road"], strict=True):
        exec(block, names)
        expected = names["mars"].score(["the road"], ["the road"], [context]).score
        assert names["metrics"](prediction) == {"mars": expected}
    assert names["arguments"].include_for_metrics == ["inputs"]


def test_combine(tiny_mini, tmp_path, monkeypatch, capsys):
    load = evaluate.load
    paths = {"rouge": Path(__file__).with_name("toy_metric.py"), "mars": mars_metric.__file__}
    monkeypatch.setattr(
        evaluate,
        "load",
        lambda path, *name, **more: load(str(paths[path]), *name, cache_dir=str(tmp_path), **more),
    )
    run("Combine")
    assert "'mars': " in capsys.readouterr().out


def test_datasets_map(tiny_mini):
    """The scores of batches are those of one call, which they are not without the corpus."""
    references = [
        ["A friend sold the car to the town library."],
        ["The bridge leads the friend to a shop.", "They lost the game in town."],
        ["The baker met a friend near the bridge."],
        ["The mayor lost a ticket and the friend."],
    ]
    rows = {"predictions": ["They won the game!"] * 4, "references": references, "contexts": ["It was late."] * 4}
    names = run("datasets.map", ("batch_size=1000", "batch_size=1"), dataset=Dataset.from_dict(rows))
    scorer = MarsScorer("mini", variant="paper")
    together = scorer.score(*rows.values()).scores
    assert names["scored"]["mars"] == pytest.approx(together, abs=1e-9)
    alone = [scorer.score(*([column[row]] for column in rows.values())).scores[0] for row in range(4)]
    assert alone != pytest.approx(together, abs=1e-9)


@pytest.mark.slow
def test_ray(presets_as_they_are, tmp_path, monkeypatch):
    """A real cluster of this machine, with the models of preset "mini"."""
    ray = pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    row = {"reference": "She went by bus.", "context": "Her car broke down."}
    rows = [{"prediction": f"She took bus {number}.", **row} for number in range(20)]
    jsonl.write(tmp_path / "rows.jsonl", rows)
    ray.init(include_dashboard=False, num_cpus=4)
    try:
        names = run("Ray", ("batch_size=256", "batch_size=8"))
    finally:
        ray.shutdown()
    scored = [row for path in (tmp_path / "scored").iterdir() for row in jsonl.read(path)]
    expected = names["Score"]().scorer.score(rows).scores
    assert {row["prediction"]: row["mars"] for row in scored} == pytest.approx(
        {row["prediction"]: score for row, score in zip(rows, expected, strict=True)}, abs=1e-6
    )


def assert_score(score, rows, **settings):
    """Of rows of candidate, references and context."""
    expected = MarsScorer("mini", **settings).score(*map(list, zip(*rows, strict=True))).score
    assert score == pytest.approx(expected, abs=1e-6)


def test_lm_evaluation_harness(evaluated):
    (metric,) = blocks("lm-evaluation-harness", "yaml")
    results, samples = harnesses.run_lm_eval(evaluated, metric)
    docs = [(sample["resps"][0][0], sample["doc"]["reference"], sample["doc"]["context"]) for sample in samples]
    assert_score(results["mars,none"], docs, variant="plus")


def test_lighteval(evaluated, monkeypatch):
    (metric,) = blocks("lighteval")
    results, details = harnesses.run_lighteval(monkeypatch, evaluated, metric)
    rows = [(detail.model_response.text[0], detail.doc.choices, detail.doc.query) for detail in details]
    [score] = [value for name, value in results.items() if name.startswith("mars:") and "stderr" not in name]
    assert_score(score, rows, variant="plus")


def test_inspect(evaluated):
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample

    names = run("Inspect")
    samples = [Sample(row["context"], target=row["reference"], metadata=row) for row in harnesses.DOCUMENTS]
    task = inspect_ai.Task(samples, scorer=names["mars"](preset="mini", variant="plus"))
    model = {"model_path": evaluated, "device": "cpu"}
    [log] = inspect_ai.eval(
        task, model="hf/local", model_args=model, max_tokens=12, display="none", log_dir="logs"
    )
    rows = [(row.output.completion, row.target, row.metadata["context"]) for row in log.samples]
    assert_score(log.results.scores[0].metrics["mean"].value, rows, variant="plus")


# Columns for ragas and deepeval, which call a context retrieved passages.
PASSAGES = ["It rained.", "A bus."]
QUESTION = "What did she do?"
CANDIDATES, REFERENCES = ["She walked.", "She walked home."], ["She walked home."] * 2


def test_ragas(tiny_mini):
    pytest.importorskip("ragas")
    names = run("ragas")
    row = {"user_input": QUESTION, "reference": REFERENCES[0], "retrieved_contexts": PASSAGES}
    scores = names["mars"].batch_score([{"response": text, **row} for text in CANDIDATES])
    contexts = [{"question": QUESTION, "passages": PASSAGES}] * 2
    expected = names["scorer"].score(CANDIDATES, REFERENCES, contexts).scores
    assert [result.value for result in scores] == pytest.approx(expected, abs=1e-6)


def test_deepeval(tiny_mini, tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.chdir(tmp_path)
    deepeval = pytest.importorskip("deepeval")
    from deepeval.test_case import LLMTestCase

    names = run("deepeval")
    scores = MarsScorer("mini", variant="plus").score(CANDIDATES, REFERENCES, [{"passages": PASSAGES}] * 2).scores
    monkeypatch.setattr(names["MarsPlus"], "threshold", sum(scores) / 2)
    row = {"input": "", "expected_output": REFERENCES[0], "context": PASSAGES}
    cases = [LLMTestCase(actual_output=text, **row) for text in CANDIDATES]
    results = deepeval.evaluate(cases, [names["MarsPlus"]()]).test_results
    metrics = {case.actual_output: case.metrics_data[0] for case in results}
    assert [metrics[text].score for text in CANDIDATES] == pytest.approx(scores, abs=1e-6)
    assert [metrics[text].success for text in CANDIDATES] == [False, True]


def test_gates(tiny_mini):
    run("Gates")
    with pytest.raises(AssertionError):
        run("Gates", ("0.1", "1.1"))


def test_mlflow(tiny_mini, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    result = MarsScorer("mini", variant="plus").score(["a b", "c q"], ["a b", "c d"], ["first", "second"])
    run("MLflow", result=result)
    [logged] = mlflow.search_runs(output_format="list")
    assert logged.data.metrics == {"mars": result.score}
    assert logged.data.params == {"mars_signature": str(result.signature)}
    table = mlflow.load_table("mars.json")
    assert list(table["mars"]) == pytest.approx(result.scores, abs=1e-9)


def test_contradictions(presets_as_they_are, capsys):
    """With the models of preset "mini"; the sentence that is denied is not said to be supported."""
    run("Contradictions")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines] == ["supported", "contradicted"]
    assert lines[1].endswith("The bus was not late. By: She took the bus, which was late.")


def test_every_heading_is_tested():
    headings = re.findall(r"^## (.*)$", RECIPES, flags=re.MULTILINE)
    others = {re.sub(r"\W", "_", heading.lower()) for heading in headings if heading not in PRINTED}
    assert {f"test_{name}" for name in others} <= set(globals())
