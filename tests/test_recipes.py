"""The snippets of docs/recipes.md run, most of them with the scores of tests/word_recall.py."""

import re
import sys
from pathlib import Path

import evaluate
import harnesses
import jsonl
import numpy as np
import pytest
import tiny_models
from datasets import Dataset
from transformers import EvalPrediction

import mars_score
from mars_metric import Mars
from mars_score.scorer import MarsScorer

pytestmark = pytest.mark.usefixtures("scored")
RECIPES = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")


@pytest.fixture
def real(monkeypatch, tmp_path):
    """The scores of the variants as they are."""
    monkeypatch.undo()
    monkeypatch.setenv("MARS_STORE", str(tmp_path))


def blocks(heading, language="python"):
    section = RECIPES.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


def run(heading, replaced=("", ""), **names):
    """Run the block of a section; returns all names that it leaves."""
    (block,) = blocks(heading)
    names = {"__name__": "recipe", "mars_score": mars_score, **names}
    exec(block.replace(*replaced), names)
    return names


def test_trainer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokenizer = tiny_models.roberta_tokenizer()
    ids = np.array([tokenizer("the road")["input_ids"] + [-100]])
    prediction = EvalPrediction(predictions=ids, label_ids=ids, inputs=ids)
    mars = Mars(preset="mini", cache_dir=str(tmp_path))
    names = {"mars": mars, "tokenizer": tokenizer, "contexts": ["a"]}
    for block in blocks("Trainer"):
        exec(block, names)
        assert names["metrics"](prediction) == {"mars": 1.0}
    assert names["arguments"].include_for_metrics == ["inputs"]


def test_combine(tmp_path, monkeypatch, capsys):
    load = evaluate.load
    monkeypatch.setattr(evaluate, "load", lambda path: load(str(Path(__file__).with_name("toy_metric.py"))))
    run("Combine", mars=Mars(preset="mini", cache_dir=str(tmp_path)))
    assert "'mars': " in capsys.readouterr().out


def test_datasets_map(real, tiny_mini):
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
def test_ray(real, tmp_path, monkeypatch):
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


def test_torchmetrics(capsys):
    pytest.importorskip("torchmetrics")
    run("torchmetrics")
    assert capsys.readouterr().out == "tensor(0.7500)\n"


def assert_score(score, rows, **settings):
    """Of rows of candidate, references and context."""
    expected = MarsScorer("mini", **settings).score(*map(list, zip(*rows, strict=True))).score
    assert score == pytest.approx(expected, abs=1e-6)


def test_lm_evaluation_harness(real, evaluated):
    (metric,) = blocks("lm-evaluation-harness", "yaml")
    results, samples = harnesses.run_lm_eval(evaluated, metric)
    docs = [(sample["resps"][0][0], sample["doc"]["reference"], sample["doc"]["context"]) for sample in samples]
    assert_score(results["mars,none"], docs)


def test_lighteval(real, evaluated, monkeypatch):
    (metric,) = blocks("lighteval")
    results, details = harnesses.run_lighteval(monkeypatch, evaluated, metric)
    rows = [(detail.model_response.text[0], detail.doc.choices, detail.doc.query) for detail in details]
    assert_score(results["mars:preset=mini"], rows)


def test_inspect(real, evaluated):
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
COLUMNS = ["She walked.", "She walked home."], ["She walked home."] * 2, [{"passages": PASSAGES}] * 2


def test_ragas(real, tiny_mini):
    pytest.importorskip("ragas")
    names = run("ragas")
    row = {"reference": "She walked home.", "retrieved_contexts": PASSAGES}
    scores = names["mars"].batch_score([{"response": text, **row} for text in COLUMNS[0]])
    expected = names["scorer"].score(*COLUMNS).scores
    assert [result.value for result in scores] == pytest.approx(expected, abs=1e-6)


def test_deepeval(real, tiny_mini, tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.chdir(tmp_path)
    deepeval = pytest.importorskip("deepeval")
    from deepeval.test_case import LLMTestCase

    names = run("deepeval")
    scores = MarsScorer("mini", variant="plus").score(*COLUMNS).scores
    monkeypatch.setattr(names["Mars"], "threshold", sum(scores) / 2)
    row = {"input": "", "expected_output": "She walked home.", "context": PASSAGES}
    cases = [LLMTestCase(actual_output=text, **row) for text in COLUMNS[0]]
    results = deepeval.evaluate(cases, [names["Mars"]()]).test_results
    metrics = {case.actual_output: case.metrics_data[0] for case in results}
    assert [metrics[text].score for text in COLUMNS[0]] == pytest.approx(scores, abs=1e-6)
    assert [metrics[text].success for text in COLUMNS[0]] == [False, True]


def test_tables(capsys):
    names = run("Tables")
    assert [record["row"] for record in names["result"].to_records()] == [0, 1, 1]
    assert "terms.references" in capsys.readouterr().out


def test_chats_and_passages():
    names = run("Chats and passages")
    first, second = (record["context"] for record in names["result"].to_records())
    assert first.splitlines()[-1] == names["chat"][-1]["content"]
    assert second.split("\n\n") == names["passages"]["passages"]


def test_streams(capsys, scored):
    run("Streams")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1", "2"]
    assert len(scored) == 1


def test_several_systems(capsys):
    run("Several systems")
    assert capsys.readouterr().out.startswith("C cannot be told apart from ")


def test_gates():
    run("Gates")
    with pytest.raises(AssertionError):
        run("Gates", ("0.1", "1.1"))


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    result = MarsScorer("mini").score(["a b", "c q"], ["a b", "c d"], ["first", "second"])
    run("MLflow", result=result)
    [logged] = mlflow.search_runs(output_format="list")
    assert logged.data.metrics == {"mars": 0.75}
    assert logged.data.params == {"mars_signature": str(result.signature)}
    table = mlflow.load_table("mars.json")
    assert list(table["mars"]) == result.scores


def test_contradictions(presets_as_they_are, real, capsys):
    """With the models of preset "mini"; the sentence that is denied is not said to be supported."""
    run("Contradictions")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines] == ["supported", "contradicted"]
    assert lines[1].endswith("The bus was not late. By: She took the bus, which was late.")


def test_every_heading_is_tested():
    headings = re.findall(r"^## (.*)$", RECIPES, flags=re.MULTILINE)
    tested = {name.removeprefix("test_") for name in vars(sys.modules[__name__]) if name.startswith("test_")}
    assert {re.sub(r"\W", "_", heading.lower()) for heading in headings} <= tested
