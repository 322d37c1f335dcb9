"""What ``mars estimate`` says of a file is what ``mars score`` then does; with tiny models."""

import json
import time
from pathlib import Path

import jsonl
import pytest
import tiny_models

from mars_score import MarsScorer, estimate
from mars_score.cache import ResultStore
from mars_score.data.files import Columns
from mars_score.models.encoder import SentenceEncoder

WORDS = tiny_models.TEXT.split()
ROWS = [
    {
        "prediction": " ".join(WORDS[number : number + 6]),
        "reference": " ".join(WORDS[number // 2 : number // 2 + 5]),  # that of two rows, as the context
        "context": " ".join(WORDS[number // 2 + 20 : number // 2 + 30]),
    }
    for number in range(30)
]


@pytest.fixture
def file(tmp_path):
    return str(jsonl.write(tmp_path / "rows.jsonl", ROWS))


@pytest.fixture
def few_rows_are_scored(monkeypatch):
    monkeypatch.setattr(estimate, "SAMPLE_ROWS", 4)
    monkeypatch.setattr(estimate, "SAMPLE_SECONDS", 0.0)


@pytest.fixture
def estimated(file, tiny_mini, tmp_path):
    """Estimates the run over the file with settings; returns it with the scorer's arguments."""

    def call(**settings):
        arguments = {**tiny_mini, "store": str(tmp_path / "store"), **settings}
        return estimate.estimate(file, Columns("reference", "context", "prediction"), arguments, 8), arguments

    return call


def stored(arguments):
    return {kind: count for kind, (count, _) in ResultStore(Path(arguments["store"])).info().items() if count}


@pytest.mark.parametrize("variant", ["fast", "plus", "paper"])
def test_counts_are_those_of_the_run(variant, estimated, few_rows_are_scored):
    """Also of chunks that share references; a sample is computed, and then nothing is left."""
    settings = {"idf_corpus": [" ".join(WORDS)]} if variant == "paper" else {}
    found, arguments = estimated(variant=variant, **settings)
    before = stored(arguments)
    MarsScorer(**arguments).score(*jsonl.columns([tuple(row.values()) for row in ROWS]))
    after = stored(arguments)
    assert {
        kind: call.missing for kind, call in found.calls.items() if kind != "encodings" or variant != "paper"
    } == {kind: after[kind] - before[kind] for kind in after if kind != "encodings" or variant != "paper"}
    assert all(0 < call.missing < call.items for call in found.calls.values())
    assert (found.rows, found.loading > 0, found.disk > 0) == (30, True, True)
    again, _ = estimated(variant=variant, **settings)
    assert [call.missing for call in again.calls.values() if call.missing] == []
    assert again.seconds == pytest.approx(again.rest, abs=0.1)
    assert stored(arguments) == after


def test_seconds_are_extrapolated(estimated, few_rows_are_scored, monkeypatch):
    """From a model that takes a millisecond for a character."""
    encode, read = SentenceEncoder._encode_batch, []

    def slowly(self, texts, tokens):
        read.extend(texts)
        time.sleep(0.001 * sum(map(len, texts)))
        return encode(self, texts, tokens)

    monkeypatch.setattr(SentenceEncoder, "_encode_batch", slowly)
    found, arguments = estimated(variant="fast")
    read.clear()
    MarsScorer(**arguments).score(*jsonl.columns([tuple(row.values()) for row in ROWS]))
    expected = 0.001 * sum(map(len, read))
    assert expected / 1.5 < found.calls["encodings"].seconds < 1.5 * expected


def test_the_command_takes_the_options_of_score(file, named_models, tmp_path, run):
    models = [part for name, value in named_models.items() for part in (f"--{name.replace('_', '-')}", value)]
    options = [file, "--variant", "fast", "--store", str(tmp_path / "store"), *models]
    code, printed, _ = run("estimate", *options, "--json", "--out", str(tmp_path / "out.jsonl"))
    shown = json.loads(printed)
    assert (code, shown["rows"], sorted(shown["calls"])) == (0, 30, ["encodings", "entailments"])
    assert shown["seconds"] > 0
    assert not (tmp_path / "out.jsonl").exists()
    code, printed, _ = run("estimate", *options)
    assert (code, printed.splitlines()[0]) == (0, "30 rows")
    code, _, error = run("estimate", file, "--prediction-column", "answer")
    assert (code, "answer" in error) == (2, True)
    code, _, error = run("estimate", "-")
    assert (code, "standard input" in error) == (2, True)
