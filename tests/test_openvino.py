"""OpenVINO as the engine: it reads as torch does, whatever is read beside it, and says what it cannot do."""

import os
from importlib.metadata import PackageNotFoundError

import numpy as np
import openvino
import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.errors import MarsWarning, UnsupportedModelError
from mars_score.models import loading
from mars_score.models.encoder import SentenceEncoder
from mars_score.models.openvino import converted
from mars_score.progress import Runtime
from mars_score.settings import stages

pytestmark = pytest.mark.usefixtures("nothing_loaded")
TEXTS = [
    "She took the bus.",
    "He would call a friend, or he would go back, find the book and read it by the river until noon.",
    "Rain.",
    "The shops were full. Nobody was surprised, because that is how things happen in a small place.",
]
CONTEXTS = ["Her car broke down.", "Her car broke down.", " ".join(TEXTS * 3), "They walked. It rained."]
ROWS = (TEXTS, TEXTS[1:] + TEXTS[:1], CONTEXTS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Settings that name folders of tiny models in float32; ``language_model`` is still to be chosen."""
    folder = tmp_path_factory.mktemp("models")
    models = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
    pairs = {name: build(dtype=torch.float32) for name, build in models.items()}
    for name, pair in {**pairs, "qwen3": tiny_models.tiny_qwen3(), "nli": tiny_models.tiny_classifier()}.items():
        pair[0].config.id2label = {0: "contradiction", 1: "entailment", 2: "neutral"}
        for part in pair:
            part.save_pretrained(folder / name)
    tiny_models.tiny_encoder(dtype=torch.float32).save(str(folder / "encoder"))
    return {"encoder": str(folder / "encoder"), "entailment_model": str(folder / "nli")}, folder


@pytest.fixture
def scorer(folders):
    """Makes a scorer of variant ``plus``; converted models are kept from test to test, and nothing else."""
    settings, folder = folders

    def make(engine="openvino", language_model="gpt2", **more):
        (folder / "store" / "results.sqlite3").unlink(missing_ok=True)
        names = {**settings, "language_model": str(folder / language_model), "store": folder / "store"}
        return MarsScorer("mini", variant="plus", engine=engine, **{**names, **more})

    return make


def scores_of(scorer, rows=ROWS):
    with pytest.warns(MarsWarning):  # a context is longer than the language model's window
        return scorer.score(*map(list, rows)).scores


@pytest.mark.parametrize("language_model", ["gpt2", "llama", "qwen3"])
def test_it_reads_as_torch_does(scorer, language_model):
    """Likelihoods, vectors and entailment, in 8 bits, so that no digit of a score need be the same."""
    ours, exact = scorer(language_model=language_model), scorer("torch", language_model)
    by_openvino, by_torch = (np.array(scores_of(one)) for one in (ours, exact))
    assert np.abs(by_openvino - by_torch).max() < 0.03
    assert (by_openvino != by_torch).all()


@pytest.mark.parametrize("language_model", ["gpt2", "llama"])
def test_a_score_does_not_depend_on_what_is_read_beside_it(scorer, language_model):
    expected = scores_of(scorer(language_model=language_model))
    backwards = scores_of(scorer(language_model=language_model), [part[::-1] for part in ROWS])
    small = scorer(language_model=language_model, batch_size=1, encoder_batch_size=1)
    assert backwards[::-1] == expected == scores_of(small)


def test_vectors_of_each_text_alone(folders):
    encoder = loading._load("encoder", folders[0]["encoder"], "float32", Runtime(device="cpu"))
    exact = SentenceEncoder(encoder).encode(TEXTS, tokens=True)
    ours = SentenceEncoder(converted("encoder", encoder, None))
    together = ours.encode(TEXTS, tokens=True)
    for text, expected, read in zip(TEXTS, exact, together, strict=True):
        alone = ours.encode([text], tokens=True)[0]
        assert np.array_equal(alone.vector, read.vector)
        assert np.array_equal(alone.tokens, read.tokens)
        assert read.tokens.shape == expected.tokens.shape
        assert read.vector @ expected.vector > 0.99 * np.linalg.norm(read.vector) * np.linalg.norm(expected.vector)


def test_models_are_converted_once_and_named_in_the_signature(scorer, monkeypatch, tmp_path, run):
    store = tmp_path / "store"
    first = scorer(store=store)
    expected = scores_of(first)
    assert scores_of(scorer("torch", store=store)) != expected  # nothing that the other engine read is taken
    loading.free_models()
    (store / "results.sqlite3").unlink()
    monkeypatch.setattr(openvino, "convert_model", None)
    assert scores_of(scorer(store=store)) == expected
    numbers = f"openvino-{openvino.__version__.split('-')[0]}-int8"
    signature = first.score(*[list(part[:2]) for part in ROWS]).signature
    assert f"|engine:{numbers}|" in str(signature)
    assert "engine" not in str(scorer("torch").score(["A bus."], ["A train."], ["It came."]).signature)
    assert sum(numbers in line for line in run("cache", "info", "--store", store)[1].splitlines()) == 4
    run("cache", "clear", "--store", store)
    assert not (store / "models").exists()


def test_what_it_cannot_do(scorer, encoder, monkeypatch):
    with pytest.raises(ValueError, match="dtype='float16' has no effect with engine='openvino'"):
        scorer(dtype="float16")
    with pytest.raises(
        UnsupportedModelError, match="models that have a name, got an object of SentenceTransformer; save it"
    ):
        scorer(encoder=encoder).score(*ROWS)
    with pytest.raises(UnsupportedModelError, match="runs on a CPU; leave out device='meta'"):
        scorer(device="meta").score(*ROWS)
    ready = scorer()
    scores_of(ready)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match='forked process; use "spawn"'):
        ready.score(["Snow."], ["It snowed."], ["They walked."])
    monkeypatch.undo()
    monkeypatch.setattr(stages, "version", not_installed)
    with pytest.raises(
        ImportError, match="openvino is not installed; run: pip install 'mars-score\\[openvino\\]'"
    ):
        scorer()


def not_installed(name):
    raise PackageNotFoundError(name)


def test_a_model_that_cannot_be_converted(folders, monkeypatch):
    encoder = loading._load("encoder", folders[0]["encoder"], "float32", Runtime(device="cpu"))
    encoder.tokenizer.padding_side = "left"
    with pytest.raises(UnsupportedModelError, match='padded on the right; choose engine="torch"'):
        converted("encoder", encoder, None)
    encoder.tokenizer.padding_side = "right"
    monkeypatch.setattr("mars_score.models.openvino.TOLERANCE", 1e-9)
    with pytest.raises(UnsupportedModelError, match="in OpenVINO the model gives other numbers"):
        converted("encoder", encoder, None)
    monkeypatch.setattr(openvino, "convert_model", not_installed)
    with pytest.raises(UnsupportedModelError, match="OpenVINO cannot convert it"):
        converted("encoder", encoder, None)
