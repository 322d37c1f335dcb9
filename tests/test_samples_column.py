"""Texts that others wrote for the contexts, given with the rows: the same scores by every surface."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mars_metric
import mars_score
from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.compare import rank_systems
from mars_score.integrations.trainer import compute_metrics
from tests import jsonl, tiny_models

CANDIDATES = ["She took a train.", "They won it again!", "No one came.", "It was late."]
REFERENCES = ["She called a friend and waited.", "They did not win.", "Nobody came.", "It was very late."]
CONTEXTS = ["Her old car broke down.", "They played an old game.", "It was late.\nWho came?", "It was late."]
SAMPLES = [["She waited for a train.", "A truck took her home."], "They won the game.", [], ["It was late."]]
AS_CELLS = ["She waited for a train.", "They won the game.", "", "It was late."]
ROWS = {"predictions": CANDIDATES, "references": REFERENCES, "contexts": CONTEXTS}


@pytest.fixture(scope="module")
def encoder():
    return tiny_models.tiny_encoder()


@pytest.fixture(autouse=True)
def models(monkeypatch, tiny_mini):
    """No language model is needed."""
    tiny_mini["language_model"] = None
    monkeypatch.setenv("MARS_PRESET", "mini")


@pytest.fixture
def scorer():
    return MarsScorer(variant="fast", store=False)


@pytest.fixture
def expected(scorer):
    return scorer.score(**ROWS, samples=SAMPLES).scores


def test_samples_count(scorer):
    """Also without references; they need no language model, and a sample that is the candidate is left out."""
    with pytest.warns(mars_score.errors.MarsWarning, match="a sample is the candidate itself.*1 of 4 rows"):
        result = scorer.score(**ROWS, samples=SAMPLES, explain=True)
    assert [len(row.samples) for row in result.row_scores] == [2, 1, 0, 0]
    assert any(match.kind == "sample" for match in result.explanations[0].matches)
    assert "|samples:given|" in str(result.signature)
    without = scorer.score(**ROWS)
    assert result.scores[0] > without.scores[0]
    assert result.scores[2:] == pytest.approx(without.scores[2:])
    assert "samples" not in str(without.signature)
    alone = scorer.score(CANDIDATES, None, CONTEXTS, samples=SAMPLES).row_scores
    named = ["samples" in {term.name for term in row.terms} for row in alone]
    assert named == [True, True, False, False]


def table(samples):
    columns = {"prediction": CANDIDATES, "reference": REFERENCES, "context": CONTEXTS, "texts": samples}
    return pd.DataFrame(columns)


def part(rows):
    return {**{name: column[rows] for name, column in ROWS.items()}, "samples": SAMPLES[rows]}


def of_evaluate(tmp_path):
    metric = mars_metric.Mars("fast", cache_dir=str(tmp_path))
    metric.add(prediction=CANDIDATES[0], reference=REFERENCES[0], context=CONTEXTS[0], samples=SAMPLES[0])
    metric.add_batch(**part(slice(1, 3)))
    return metric.compute(**part(slice(3, 4)), detailed=True)["scores"]


def of_frame(tmp_path):
    return mars_score.score_table(table(SAMPLES), columns={"samples": "texts"}, variant="fast").scores


def of_stream(tmp_path):
    rows = table(SAMPLES).to_dict("records")
    records = mars_score.score_iter(rows, columns={"samples": "texts"}, chunk_size=3, variant="fast")
    return [record["mars"] for record in records]


def of_file(tmp_path):
    path = jsonl.write(tmp_path / "rows.jsonl", table(SAMPLES).to_dict("records"))
    command = ["score", str(path), "--samples-column", "texts", "--variant", "fast", "--quiet"]
    assert main([*command, "--out", str(tmp_path / "out.jsonl")]) == 0
    return [row["mars"] for row in jsonl.read(tmp_path / "out.jsonl")]


def of_trainer(tmp_path):
    texts = [*CANDIDATES, *REFERENCES]
    tokenizer = SimpleNamespace(batch_decode=lambda rows, **options: [texts[number] for (number,) in rows])
    ids = np.arange(8)[:, None]
    compute = compute_metrics(MarsScorer(variant="fast"), tokenizer, CONTEXTS, samples=SAMPLES)
    return compute(SimpleNamespace(predictions=ids[:4], label_ids=ids[4:]))["mars"]


def of_torchmetrics(tmp_path):
    metric = pytest.importorskip("mars_score.integrations.torchmetrics").MarsScore("mini", variant="fast")
    for rows in (slice(0, 1), slice(1, 4)):
        metric.update(*part(rows).values())
    return metric.compute().item()


@pytest.mark.parametrize("surface", [of_evaluate, of_frame, of_stream, of_file, of_trainer, of_torchmetrics])
def test_every_surface_takes_samples(surface, tmp_path, expected):
    result = surface(tmp_path)
    assert result == pytest.approx(expected if isinstance(result, list) else np.mean(expected), abs=1e-6)


def test_a_cell_of_csv_is_one_text_and_an_empty_one_none(tmp_path, scorer):
    table(AS_CELLS).to_csv(tmp_path / "rows.csv", index=False)
    options = ["--samples-column", "texts", "--variant", "fast", "--quiet"]
    assert main(["score", str(tmp_path / "rows.csv"), *options, "--out", str(tmp_path / "out.csv")]) == 0
    scores = pd.read_csv(tmp_path / "out.csv")["mars"]
    assert list(scores) == pytest.approx(scorer.score(**ROWS, samples=AS_CELLS).scores, abs=1e-9)


def test_samples_of_several_systems(scorer):
    """With the others' texts as samples each system has the scores of its candidates with these samples."""
    systems = {"a": CANDIDATES, "b": REFERENCES, "c": [*AS_CELLS[:2], " ", "It was late."]}
    others = [[b, c] if c.strip() else [b] for b, c in zip(systems["b"], systems["c"], strict=True)]
    for origin, samples, theirs in (("others", "others", others), ("given", SAMPLES, SAMPLES)):
        ranking = rank_systems(scorer, systems, REFERENCES, CONTEXTS, samples=samples)
        assert f"|samples:{origin}|" in str(ranking.signature)
        [scores] = [system.scores for system in ranking.systems if system.name == "a"]
        assert scores == pytest.approx(scorer.score(**ROWS, samples=theirs).scores, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "origin"),
    [(["--samples-from-others"], "others"), (["--samples-column", "texts"], "given"), ([], None)],
)
def test_the_command_compares(tmp_path, run, options, origin):
    second = table(SAMPLES).assign(prediction=AS_CELLS)
    files = {"a.jsonl": table(SAMPLES), "b.jsonl": second}
    paths = [str(jsonl.write(tmp_path / name, frame.to_dict("records"))) for name, frame in files.items()]
    command = ["compare", *paths, "--variant", "fast", "--quiet", "--json", *options]
    signature = json.loads(run(*command)[1])["signature"]
    assert f"|samples:{origin}|" in signature if origin else "samples" not in signature
    if origin == "given":
        code, _, err = run(*command, "--samples-from-others")
        assert (code, "exclude each other" in err) == (2, True)


@pytest.mark.parametrize(
    ("variant", "samples", "message"),
    [
        ("paper", SAMPLES, "samples have no effect with variant 'paper'"),
        ("fast", SAMPLES[:2], "predictions has 4, .*samples has 2"),
        ("fast", 4, "samples must be a list"),
        ("fast", "text", "samples must be a list"),
    ],
)
def test_bad_input(variant, samples, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        MarsScorer(variant=variant, store=False).score(**ROWS, samples=samples)
    metric = mars_metric.Mars(variant, cache_dir=str(tmp_path))
    metric.add_batch(**ROWS)
    with pytest.raises((TypeError, ValueError), match=message):
        metric.compute(**ROWS, samples=samples)
    assert len(metric) == 4
