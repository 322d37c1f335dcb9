"""The snippets of docs/data.md, docs/training.md and docs/frameworks.md run, each alone, most with tiny models."""

import ast
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import evaluate
import pytest

import mars_score
from mars_score.cli import main
from mars_score.scorer import MarsScorer
from tests import ROOT, tiny_models
from tests.integrations import harnesses

DOCS = ROOT / "docs"
PAGES = [(DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("data", "training", "frameworks")]
SECTIONS = {
    section.split("\n")[0]: section for page in PAGES for section in re.split("^## ", page, flags=re.MULTILINE)[1:]
}
# What a section prints, where nothing but MARS is needed.
PRINTED = {
    "Tables": r" +row +prediction +mars +terms\.references\n0 +0 +She took.*\n1 +1 +She walk.*\n2 +1 +By bus.*\n",
    "Contexts": r"\['dialogue', 'summary', 'data', 'dialogue'\] \[.*\]\n",
    "Streams": r"0 .*\d\n1 .*\d\n2 .*\d\n",
    "Several systems": "[ABC] cannot be told apart from .*\n",
    "Samples": r"\[-?\d.*\]\n",
    "torchmetrics": r"tensor\(-?0\.\d+\)\n",
}


def blocks(heading, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTIONS[heading], flags=re.MULTILINE | re.DOTALL)


def run(heading, replaced=("", "")):
    """Run the first block of a section; returns all names that it leaves."""
    block, *_ = blocks(heading)
    assert replaced[0] in block
    names = {"__name__": "recipe"}
    exec(block.replace(*replaced), names)
    return names


@pytest.mark.parametrize("heading", PRINTED)
def test_what_is_printed(heading, tiny_mini, capsys):
    run(heading)
    assert re.fullmatch(PRINTED[heading], capsys.readouterr().out)


def test_in_a_build(tiny_mini, tmp_path, monkeypatch):
    """The test, the options of a project and the commands of the action run, by what stands on the page."""
    monkeypatch.chdir(tmp_path)
    row = {"prediction": "She took the bus.", "reference": "She took the bus.", "context": "The car was old."}
    Path("answers.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    names = run("In a build", ("threshold=0.3", "threshold=-9"))
    assert names["ROWS"] == [row]
    names["test_answer"](row)
    names = run("In a build", ("threshold=0.3", "threshold=9"))
    with pytest.raises(AssertionError, match=r"says .* of the reference"):
        names["test_answer"](row)
    [options] = blocks("In a build", "toml")
    Path("pyproject.toml").write_text(options.replace("medium", "mini").replace("0.5", "-9"), "utf-8")
    [action] = blocks("In a build", "yaml")
    [command] = re.findall(r"run: (mars .*)", action)
    assert main([*shlex.split(command)[1:], "--fail-under", "-9"]) == 0
    assert json.loads(Path("scores.jsonl").read_text("utf-8")).keys() >= {"mars", "contradicted", "supported"}
    assert main(["score", "answers.jsonl", "--fail-under", "9"]) == 3


@pytest.fixture
def tokenizer(monkeypatch):
    """The tokenizer of every name."""
    tokenizer = tiny_models.roberta_tokenizer()
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda name: tokenizer)
    return tokenizer


def test_trainer(tiny_mini, tokenizer, tmp_path, monkeypatch, capsys):
    """The score is that of what the model writes."""
    monkeypatch.chdir(tmp_path)
    scored, score = [], MarsScorer.score
    monkeypatch.setattr(MarsScorer, "score", lambda *one, **rows: scored.append(score(*one, **rows)) or scored[-1])
    names = run("Trainer")
    [result] = scored
    ids = tokenizer(names["contexts"])["input_ids"]
    assert [row.context for row in result.rows] == tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert capsys.readouterr().out.splitlines()[-1] == str(result.score)


def test_beside_other_metrics(tiny_mini, tokenizer, monkeypatch, capsys):
    """What both metrics get are the texts of the ids, without padding."""
    scored, score_rows = [], MarsScorer.score_rows
    rouge = SimpleNamespace(compute=lambda predictions, references: {"rouge": (predictions, references)})
    monkeypatch.setattr(evaluate, "load", lambda name: rouge)
    monkeypatch.setattr(
        MarsScorer, "score_rows", lambda *one, **rest: scored.append(one[1]) or score_rows(*one, **rest)
    )
    names = run("Beside other metrics")
    assert (names["labels"] == -100).any()
    assert (names["ids"] != -100).all()
    texts = tokenizer.batch_decode(names["ids"], skip_special_tokens=True)
    result = ast.literal_eval(capsys.readouterr().out)
    assert result["rouge"] == (texts, texts)
    [rows] = scored
    assert [row.context for row in rows] == names["contexts"]
    assert [row.candidate for row in rows] == [text.strip() for text in texts]
    assert isinstance(result["mars"], float)


def test_evaluate(tiny_mini, tmp_path, monkeypatch, capsys):
    """With a metric of this folder as ROUGE, which is on the Hub."""
    load, path = evaluate.load, str(ROOT / "tests" / "toy_metric.py")
    monkeypatch.setattr(evaluate, "load", lambda name: load(path, cache_dir=str(tmp_path)))
    run("evaluate")
    assert "'mars': " in capsys.readouterr().out


@pytest.mark.slow
def test_ray(presets_as_they_are, tmp_path, monkeypatch, capsys):
    """A real cluster of this machine, with the models of preset "mini"."""
    ray = pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    row = {"reference": "She went by bus.", "context": "Her car broke down."}
    rows = [{"prediction": f"She took bus {number}.", **row} for number in range(20)]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    ray.init(include_dashboard=False, num_cpus=4)
    try:
        names = run("Ray")
    finally:
        ray.shutdown()
    scored = ast.literal_eval(capsys.readouterr().out.splitlines()[-1])
    expected = names["Score"]().scorer.score_table(rows).scores
    assert {row["prediction"]: row["mars"] for row in scored} == pytest.approx(
        {row["prediction"]: score for row, score in zip(rows, expected, strict=True)}, abs=1e-6
    )


# Evaluation frameworks: make recipes

CONTEXT, REFERENCE, OUTPUT = "Jane's car broke down on Monday.", "She went to work by bus.", "She took the bus."


def judged():
    """Of the row that most snippets have."""
    return mars_score.judge(OUTPUT, REFERENCE, CONTEXT, preset="mini", variant="plus")


def assert_score(score, rows, **settings):
    """Of rows of candidate, references and context."""
    expected = MarsScorer("mini", **settings).score(*map(list, zip(*rows, strict=True))).score
    assert score == pytest.approx(expected, abs=1e-6)


def test_mlflow(tiny_mini, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    result = run("MLflow")["result"]
    expected = judged()
    assert result.metrics["mars/mean"] == pytest.approx(expected["score"], abs=1e-6)
    assert capsys.readouterr().out.splitlines()[-1] == expected["reason"]


def test_inspect(tiny_mini, tmp_path, monkeypatch, capsys):
    pytest.importorskip("inspect_ai")
    monkeypatch.chdir(tmp_path)
    [log] = [run("Inspect")["log"]]
    expected = judged()
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(expected["score"], abs=1e-6)
    assert capsys.readouterr().out.splitlines()[-1].endswith(expected["reason"])


def test_promptfoo(tiny_mini):
    """Called as promptfoo does, with what is in the YAML; nothing of promptfoo's is needed."""
    import yaml

    [block] = blocks("promptfoo", "yaml")
    [test] = yaml.safe_load(block)["tests"]
    [assertion] = test["assert"]
    assert assertion["value"] == "file://mars.py"
    context = {"prompt": "", "vars": test["vars"], "test": test, "config": assertion["config"]}
    returned = run("promptfoo")["get_assert"](OUTPUT, context)
    expected = judged()
    assert (returned["score"], returned["reason"]) == (expected["score"], expected["reason"])
    assert returned["pass"] is (expected["score"] >= assertion["config"]["threshold"])
    assert sum(returned["named_scores"].values()) == pytest.approx(expected["score"])


def test_langfuse(tiny_mini, monkeypatch, capsys):
    pytest.importorskip("langfuse")
    for name in ("PUBLIC", "SECRET"):
        monkeypatch.setenv(f"LANGFUSE_{name}_KEY", "none")
    evaluation = run("Langfuse")["evaluation"]
    expected = judged()
    assert (evaluation.name, evaluation.value) == ("mars", expected["score"])
    assert (evaluation.comment, evaluation.metadata) == (expected["reason"], expected["metadata"])


def test_lm_evaluation_harness(evaluated):
    [task] = blocks("lm-evaluation-harness", "yaml")
    documents = [{"question": document["context"], **document} for document in harnesses.DOCUMENTS]
    task = task.replace("max_gen_toks: 64", "max_gen_toks: 12")
    results, samples = harnesses.run_lm_eval(evaluated, "", documents, task=task)
    docs = [(sample["resps"][0][0], sample["doc"]["reference"], sample["doc"]["context"]) for sample in samples]
    assert_score(results["mars,none"], docs, variant="plus")


def test_lighteval(evaluated, monkeypatch):
    [metric] = blocks("lighteval")
    results, details = harnesses.run_lighteval(monkeypatch, evaluated, metric)
    rows = [(detail.model_response.text[0], detail.doc.choices, detail.doc.query) for detail in details]
    [score] = [value for name, value in results.items() if name.startswith("mars:") and "stderr" not in name]
    assert_score(score, rows, variant="plus")


PASSAGES = [CONTEXT, "The bus leaves at nine."]


def test_ragas(tiny_mini, capsys):
    pytest.importorskip("ragas")
    run("ragas")
    [score] = ast.literal_eval(capsys.readouterr().out.splitlines()[-1])
    context = {"question": "How did Jane get to work?", "passages": PASSAGES}
    assert_score(score, [(OUTPUT, REFERENCE, context)], variant="plus")


def test_deepeval(tiny_mini, tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("deepeval")
    context = {"passages": PASSAGES}
    expected = mars_score.judge(OUTPUT, REFERENCE, context, preset="mini", variant="plus")
    for threshold in (expected["score"] - 0.01, expected["score"] + 0.01):
        [metric] = run("deepeval", ("threshold = 0.4", f"threshold = {threshold}"))["result"].metrics_data
        assert metric.score == pytest.approx(expected["score"], abs=1e-6)
        assert metric.reason == expected["reason"]
        assert metric.success is (expected["score"] >= threshold)


def test_every_heading_is_tested():
    """But those without a snippet: tests/data/test_forms.py has the rows of other tools."""
    with_snippet = [heading for heading, section in SECTIONS.items() if "```" in section]
    names = {re.sub(r"\W", "_", heading.lower()) for heading in with_snippet if heading not in PRINTED}
    assert {f"test_{name}" for name in names} <= set(globals())
