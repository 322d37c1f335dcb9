"""The README's snippets run, in order and in one namespace, and its tables say what the code says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import evaluate
import fakes
import numpy as np
import pytest

from mars_score import presets, shared
from mars_score.cli import main
from mars_score.settings import SETTING_NAMES, resolve_settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    """The code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def commands(program):
    """Command lines of the bash blocks that begin with ``program``, as lists of words without it."""
    lines = "\n".join(blocks("(?:bash|console)")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [line[1:] for line in words if line[:1] == [program]]


def table(heading):
    """Rows of the table under a heading, as lists of cells."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@dataclass
class Tokenizer:
    """What the recipe for the Trainer needs of one: decodes by a list of texts."""

    texts: list[str]
    pad_token_id: int = 0

    def batch_decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return [" ".join(self.texts[one] for one in row if one) for row in ids]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the checkout's ``mars``, in which ``evaluate.load("mars")`` works."""
    shutil.copytree(ROOT / "mars", tmp_path / "mars")
    for name, text in zip(("rows.jsonl", "rated.jsonl"), blocks("jsonl"), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copy(tmp_path / "rows.jsonl", tmp_path / "other.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shared, "_scorers", {})
    return tmp_path


@pytest.fixture
def tiny_mini(monkeypatch, llama, encoder):
    """Preset "mini" stands for tiny models."""
    tiny = {"language_model": llama, "encoder": encoder, "masked_language_model": None}
    monkeypatch.setitem(presets.PRESETS, "mini", tiny)


@pytest.fixture
def no_hub(folder, monkeypatch):
    """Metrics of the Hub are a toy metric."""
    (folder / "toy.py").write_text(fakes.TOY_METRIC)
    load = evaluate.load

    def load_here(path, *args, **kwargs):
        return load(str(folder / "toy.py") if path in ("bleu", "rouge") else path, *args, **kwargs)

    monkeypatch.setattr(evaluate, "load", load_here)


def run_snippets():
    """All python blocks; returns what they leave."""
    namespace = {"__name__": "readme"}
    snippets = blocks("python")
    assert len(snippets) >= 5
    for snippet in snippets:
        line = README[: README.index(snippet)].count("\n")
        exec(compile("\n" * line + snippet, "README.md", "exec"), namespace)  # faults name the README's line
    return namespace


def check_snippets(left):
    assert isinstance(left["detailed"]["mars"], float)
    assert left["detailed"]["mars"] == pytest.approx(left["result"].score, abs=1e-6)
    assert len(left["detailed"]["scores"]) == len(left["rows"]["predictions"])
    assert left["augmented"][0][0] == left["rows"]["references"][0]
    assert left["augmented"] == left["detailed"]["augmented_references"]
    metrics = left["score_with"](Tokenizer(["", "a", "boat"]), ["At sea."])
    prediction = {"predictions": np.array([[1, 2]]), "label_ids": np.array([[2, -100]])}
    assert list(metrics(type("EvalPrediction", (), prediction))) == ["mars"]


@pytest.mark.usefixtures("tiny_mini", "no_hub")
def test_python():
    check_snippets(run_snippets())


@pytest.mark.slow
@pytest.mark.usefixtures("no_hub")
def test_python_with_the_models_of_mini():
    left = run_snippets()
    check_snippets(left)
    fitting, unfitting = left["detailed"]["scores"]
    assert fitting > unfitting


@pytest.mark.parametrize("argv", commands("mars"), ids=" ".join)
def test_command_lines(argv, folder, monkeypatch, capsys):
    worker, fake = fakes.install_worker(monkeypatch), fakes.install(monkeypatch)
    monkeypatch.setattr("mars_score.meta.metrics.mars.MarsScorer", fake)
    assert main(argv) == 0, capsys.readouterr().err
    assert bool(fake.loads) == (argv[0] in ("compare", "meta"))
    assert bool(worker.made) == (argv[0] in ("score", "augment"))
    if "--report" in argv:
        assert "BLEU-1" in (folder / argv[argv.index("--report") + 1] / "report.md").read_text(encoding="utf-8")
    if "--json" in argv:
        assert len(json.loads(capsys.readouterr().out)["scores"]) == 2
    if "--out" in argv:
        assert len((folder / argv[argv.index("--out") + 1]).read_text().splitlines()) == 2


def test_there_are_command_lines():
    assert {argv[0] for argv in commands("mars")} == {"score", "augment", "compare", "meta", "cache"}


def test_make_and_pip_name_what_exists():
    makefile = (ROOT / "Makefile").read_text()
    assert ["demo"] in commands("make")
    for (target,) in commands("make"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    for argv in commands("pip"):
        for option, value in pairwise(argv):
            assert option not in ("-r", "-c") or (ROOT / value).is_file()


def test_presets_are_those_of_the_code():
    rows = {re.findall(r"`(\w+)`", row[0])[0]: row for row in table("Presets")}
    assert set(rows) == set(presets.PRESETS)
    for name, (_, language_model, encoder, masked, _) in rows.items():
        preset = presets.PRESETS[name]
        assert f"`{preset['language_model']}`" in language_model
        assert f"`{preset['encoder']}`" in encoder
        assert masked == (f"`{preset['masked_language_model']}`" if preset["masked_language_model"] else "none")
        assert ("default" in rows[name][0]) == (name == presets.DEFAULT_PRESET)


def test_settings_are_those_of_the_code():
    defaults = dict(resolve_settings("base").items())
    named = [(name, row[1]) for row in table("Settings") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(name for name, _ in named) == sorted(SETTING_NAMES)
    for name, default in named:
        if default.startswith("`"):
            assert default.strip("`").replace('"', "'") == repr(defaults[name]), name
