"""What MARS promises about files that others made: models, its store, rows, settings; and about its packages."""

import contextlib
import json
import os
import pickle
import re
import stat
import subprocess
import sys

import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Dense

from mars_score.cache import ResultStore, digest
from mars_score.cli import main
from mars_score.errors import ModelUnavailableError
from mars_score.models.loading import load_model
from mars_score.models.packages import made_once
from mars_score.models.running import Runtime
from tests import ROOT, jsonl, tiny_models

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


# Models: their code never runs


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def sprung(tmp_path):
    """The file that code of a model's own would make."""
    return tmp_path / "sprung"


@pytest.fixture(params=["language_model", "encoder"])
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    """That of a tiny model; an encoder has a dense layer."""
    if kind == "language_model":
        for part in tiny_models.tiny_gpt2(seed=1):
            part.save_pretrained(tmp_path / "model")
    else:
        encoder = tiny_models.tiny_encoder(seed=4)
        encoder.append(Dense(tiny_models.HIDDEN, 8))
        encoder.save(str(tmp_path / "model"))
    return tmp_path / "model"


def load(kind, folder):
    """A language model, or the dense layer of an encoder."""
    model = load_model(kind, str(folder), "float64", Runtime(device="cpu"))
    return model[0] if kind == "language_model" else model[-1]


def test_a_pickle_file_of_weights_gives_tensors_and_runs_nothing(kind, folder, sprung):
    inside = folder if kind == "language_model" else folder / "2_Dense"
    before = load(kind, folder).state_dict()
    (inside / "model.safetensors").unlink()
    torch.save(before, inside / "pytorch_model.bin")
    assert all(torch.equal(before[name], weight) for name, weight in load(kind, folder).state_dict().items())
    torch.save({"weight": Trap(sprung)}, inside / "pytorch_model.bin")
    with pytest.raises((ModelUnavailableError, pickle.UnpicklingError), match=r"[Ww]eights"):
        load(kind, folder)
    assert not sprung.exists()
    torch.load(inside / "pytorch_model.bin", weights_only=False)
    assert sprung.exists()  # it would have


def test_a_models_own_code_never_runs(kind, folder, sprung):
    code = f"open({str(sprung)!r}, 'w')\nclass Model:\n    pass\nclass Config:\n    pass\n"
    (folder / "own.py").write_text(code)
    file = folder / ("config.json" if kind == "language_model" else "modules.json")
    config = json.loads(file.read_text())
    if kind == "language_model":
        config["auto_map"] = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
        config["model_type"] = "own"
    else:
        config[1]["type"] = "own.Model"
    file.write_text(json.dumps(config))
    with pytest.raises(ModelUnavailableError, match="its own code, which MARS never runs"):
        load(kind, folder)
    assert not sprung.exists()


DANGERS = (
    r"import (c?pickle|dill|cloudpickle|shelve|marshal|joblib|yaml|subprocess|pty)\b",
    r"from (c?pickle|dill|cloudpickle|shelve|marshal|joblib|yaml|subprocess|pty)\b",
    r"(?<![\w.])(eval|exec|compile|__import__)\(",
    r"\b(torch\.load|os\.system|os\.popen|n(um)?py?\.load|read_pickle)\(",
    r"\b(shell|allow_pickle|trust_remote_code) ?= ?True",
)


def test_no_source_makes_code_of_data():
    sources = [*ROOT.glob("*.py"), *(ROOT / "mars_score").rglob("*.py"), *(ROOT / "space").rglob("*.py")]
    assert len(sources) > 60
    for source in sources:
        assert not re.findall("|".join(DANGERS), source.read_text(encoding="utf-8")), source


# The store: data for its owner's eyes


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_store_is_its_owners_alone_and_an_old_one_keeps_its_modes(tmp_path, mask):
    store = tmp_path / "above" / "store"
    before = os.umask(mask)
    try:
        ResultStore(store).put("infills", {digest(1): b"a"})
        made_once(store / "models" / "model-1", lambda beside: (beside / "weights").touch())
    finally:
        os.umask(before)
    assert [mode(folder) for folder in (store, store / "models", store / "models" / "model-1")] == [0o700] * 3
    assert mode(store / "results.sqlite3") == 0o600
    assert mode(store.parent) == 0o777 & ~mask
    store.chmod(0o750)
    (store / "results.sqlite3").chmod(0o640)
    ResultStore(store).put("infills", {digest(2): b"b"})
    assert (mode(store), mode(store / "results.sqlite3")) == (0o750, 0o640)


# Rows are texts: they name no files

TEXTS = ["{path}", "file://{path}", "@{path}", "../{path}", "<(cat {path})", "{path}\0", "$(touch {path}.new)"]


@contextlib.contextmanager
def watched():
    """All files opened, processes started and connections made meanwhile, as texts."""
    events, watching = [], True

    def watch(event, arguments):
        if watching and event in ("open", "os.listdir", "subprocess.Popen", "os.system", "socket.connect"):
            events.append(f"{event} {arguments}")

    sys.addaudithook(watch)
    try:
        yield events
    finally:
        watching = False  # as a hook cannot be removed


@pytest.mark.parametrize("command", ["score", "augment"])
def test_columns_and_texts_of_a_file_are_never_paths(command, tmp_path, named_models):
    secret, file, out = (tmp_path / name for name in ("secret.txt", "rows.jsonl", "out.jsonl"))
    secret.write_text("secret")
    argv = [command, str(file), "--out", str(out), "--preset", "mini", "--quiet", "--dtype", "float64"]
    argv += ["--language-model", named_models["language_model"]]
    if command == "score":
        argv += ["--encoder", named_models["encoder"], "--entailment-model", named_models["entailment_model"]]
        argv += ["--variant", "plus", "--samples-column", "others"]
    else:
        argv += ["--variant", "paper", "--max-mask-ratio", "0.2"]
    texts = [text.format(path=secret) for text in TEXTS]
    columns = ("prediction", "reference", "context", "others", str(secret))
    rows = [dict.fromkeys(columns, text) for text in texts]
    rows = [{**row, "store": str(secret), "encoder": str(secret), "idf_corpus": str(secret)} for row in rows]
    jsonl.write(file, [{"prediction": "a", "reference": "b", "context": "c", "others": "d"}])
    assert main(argv) == 0  # loads libraries, which may start processes
    jsonl.write(file, rows)
    out.unlink()
    before = set(tmp_path.iterdir())
    with watched() as events:
        assert main(argv) == 0
        secret.open().close()
    assert [event for event in events if str(secret) in event] == events[-1:]  # the last one was ours
    assert not [event for event in events if event.startswith(("os.system", "socket", "subprocess"))]
    assert set(tmp_path.iterdir()) - before == {out}


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_a_report_shows_hostile_names_and_texts_as_text(tmp_path):
    from tests.meta.test_sets import row

    rows = [row(number) for number in range(12)]
    for values in rows:
        values |= {"system": HOSTILE, "prediction": values["prediction"] + HOSTILE, "context": HOSTILE}
    file = tmp_path / "<script>alert(3)<.jsonl"
    jsonl.write(file, rows)
    report = tmp_path / "report"
    chosen = ["--metrics", "length,rouge_l", "--no-attacks", "--resamples", "20", "--quiet"]
    assert main(["meta", str(file), "--preset", "mini", "--report", str(report), *chosen]) == 0
    page = (report / "report.md").read_text(encoding="utf-8")
    assert "alert(3)" in page
    assert "\\<script>" in page
    assert not re.search(r"(?<!\\)<(script|img)", page)
    assert {path.parent for path in report.rglob("*.jsonl")} == {report / "scores"}


def test_hostile_json_is_one_line(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    assert main(["meta", str(tmp_path / "rows.jsonl"), "--pos-weights", "[" * 100_000]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "recursion" in line or "nested" in line


# Packages

AUDITOR = """
import json, sys
text = open(sys.argv[sys.argv.index("-r") + 1]).read()
answer = {answer}
print(answer if isinstance(answer, str) else json.dumps({{"dependencies": answer}}))
"""
KNOWN = '[{"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}]'
SOUND = '[{"name": "numpy", "version": "2", "vulns": []}, {"name": "torch", "skip_reason": "not there"}]'


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (f'{KNOWN} if "jinja2==2.4.1" in text else {SOUND}', 0, "no known vulnerability in 2 packages"),
        (KNOWN, 1, "jinja2 2.4.1: CVE-1, fixed in 3"),
        (SOUND, 75, "NOT DONE"),  # an index without advisories
        ('"no JSON"', 75, "NOT DONE"),
    ],
)
def test_the_audit_has_a_status_of_its_own_if_it_was_not_done(tmp_path, answer, code, message):
    (tmp_path / "pip_audit.py").write_text(AUDITOR.format(answer=answer))
    command, environment = [sys.executable, ROOT / ".ci" / "audit.py"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    audit = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (audit.returncode, message in audit.stdout + audit.stderr) == (code, True)
