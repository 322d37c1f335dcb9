"""What MARS promises about files that others made: models, its store, rows, settings; and about its packages."""

import ast
import contextlib
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import jsonl
import pytest
import tiny_models
import torch
from users import unprivileged

from mars_score.cli import main
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import loading as models
from mars_score.models import wheels
from mars_score.scorer import MarsScorer
from mars_score.store.results import ResultStore, digest
from mars_score.store.runtime import Runtime

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "mars_score").rglob("*.py"), ROOT / "mars_metric.py", ROOT / "app.py"])
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


@pytest.fixture(autouse=True)
def no_leave(monkeypatch, nothing_loaded):
    monkeypatch.delenv("MARS_PICKLED_WEIGHTS", raising=False)


# Models: weights from safetensors files only


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


def pickled(folder, weights):
    """Put a pickle file in the place of the weights in a folder."""
    (folder / "model.safetensors").unlink(missing_ok=True)
    torch.save(weights, folder / "pytorch_model.bin")


@pytest.fixture
def language_model(tmp_path):
    """Folder and weights of a tiny language model."""
    folder = tmp_path / "model"
    model, tokenizer = tiny_models.tiny_gpt2(seed=1)
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return folder, model.state_dict()


def encoder_with(tmp_path, *modules):
    """The folder of a tiny encoder with further modules."""
    encoder = tiny_models.tiny_encoder(seed=4)
    for module in modules:
        encoder.append(module)
    encoder.save(str(tmp_path / "encoder"))
    return tmp_path / "encoder"


@pytest.fixture
def dense(tmp_path):
    """The folder of an encoder with a dense layer, and that of the layer."""
    from sentence_transformers.sentence_transformer.modules import Dense

    folder = encoder_with(tmp_path, Dense(tiny_models.HIDDEN, 8))
    return folder, folder / "2_Dense"


@pytest.fixture
def static(tmp_path):
    """The folder of an encoder of static vectors."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    encoder = SentenceTransformer(modules=[StaticEmbedding(tiny_models.causal_tokenizer(), embedding_dim=8)])
    encoder.save(str(tmp_path / "static"))
    return tmp_path / "static"


def load_language_model(folder, kind="causal"):
    return models.load_language_model(str(folder), kind, "float64", Runtime(device="cpu"))[0]


def load_encoder(folder):
    return models.load_encoder(str(folder), "float64", Runtime(device="cpu"))


def refused(load, folder):
    with pytest.raises(ModelUnavailableError, match="MARS_PICKLED_WEIGHTS=1") as caught:
        load(folder)
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message


def test_a_pickled_language_model_is_refused_unless_the_user_says_otherwise(language_model, monkeypatch):
    folder, weights = language_model
    pickled(folder, weights)
    refused(load_language_model, folder)
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", "0")
    refused(load_language_model, folder)
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", "1")
    loaded = load_language_model(folder).state_dict()
    assert all(torch.equal(weights[name], loaded[name]) for name in weights)


def test_a_pickled_masked_language_model_is_refused(tmp_path, roberta_mlm):
    for part in roberta_mlm:
        part.save_pretrained(tmp_path / "model")
    pickled(tmp_path / "model", roberta_mlm[0].state_dict())
    refused(lambda folder: load_language_model(folder, "masked"), tmp_path / "model")


def test_a_pickled_encoder_is_refused_unless_the_user_says_otherwise(tmp_path, monkeypatch):
    folder = encoder_with(tmp_path)
    pickled(folder, load_encoder(folder)[0].state_dict())
    models.free_models()
    refused(load_encoder, folder)


@pytest.mark.parametrize("kind", ["dense", "static"])
def test_other_modules_of_an_encoder_are_not_unpickled_either(kind, request, monkeypatch):
    found = request.getfixturevalue(kind)
    folder, inside = found if kind == "dense" else (found, found)
    before = load_encoder(folder)
    vector = before.encode("She took a train.")
    pickled(inside, before[-1].state_dict())
    refused(load_encoder, folder)
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", "1")
    assert load_encoder(folder).encode("She took a train.") == pytest.approx(vector)


@pytest.mark.parametrize("allowed", ["0", "1"])
def test_no_code_of_a_pickle_file_runs(language_model, dense, sprung, monkeypatch, allowed):
    """Without leave the file is not read, and with leave by a reader that makes tensors only."""
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", allowed)
    for load, folder, inside in (
        (load_language_model, language_model[0], language_model[0]),
        (load_encoder, *dense),
    ):
        pickled(inside, {"weight": Trap(sprung)})
        with pytest.raises((ModelUnavailableError, pickle.UnpicklingError), match=r"pickle|[Ww]eights"):
            load(folder)
    assert not sprung.exists()
    torch.load(language_model[0] / "pytorch_model.bin", weights_only=False)
    assert sprung.exists()  # it would have


def test_a_pickle_file_beside_safetensors_is_not_read(language_model, dense, sprung, monkeypatch):
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", "1")
    for load, folder, inside in (
        (load_language_model, language_model[0], language_model[0]),
        (load_encoder, *dense),
    ):
        torch.save({"weight": Trap(sprung)}, inside / "pytorch_model.bin")
        load(folder)
    assert not sprung.exists()


def test_a_folder_that_is_not_there_is_not_called_pickled(tmp_path):
    with pytest.raises(ModelUnavailableError, match="Check the name"):
        load_language_model(tmp_path / "missing")


# Models: code of their own never runs


def own_code(folder, sprung):
    """A module that marks that it was imported, in a model's folder."""
    (folder / "own.py").write_text(
        f"open({str(sprung)!r}, 'w')\nclass Model:\n    pass\nclass Config:\n    pass\n"
    )


@pytest.mark.parametrize("allowed", ["0", "1"])
def test_a_language_models_own_code_never_runs(language_model, sprung, monkeypatch, allowed):
    monkeypatch.setenv("MARS_PICKLED_WEIGHTS", allowed)
    folder, _ = language_model
    own_code(folder, sprung)
    config = json.loads((folder / "config.json").read_text())
    auto_map = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "own", "auto_map": auto_map}))
    with pytest.raises(ModelUnavailableError, match="its own code, which MARS never runs"):
        load_language_model(folder)
    assert not sprung.exists()


def test_an_encoders_own_code_never_runs(tmp_path, sprung):
    folder = encoder_with(tmp_path)
    own_code(folder, sprung)
    listed = json.loads((folder / "modules.json").read_text())
    listed[1]["type"] = "own.Model"
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(ModelUnavailableError, match="its own code, which MARS never runs"):
        load_encoder(folder)
    assert not sprung.exists()


# The store: data for its owner's eyes


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@contextlib.contextmanager
def umask(value):
    usual = os.umask(value)
    try:
        yield
    finally:
        os.umask(usual)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_store_is_its_owners_alone(tmp_path, mask):
    store = tmp_path / "above" / "store"
    with umask(mask):
        ResultStore(store).put("infills", {digest(1): b"a"})
    assert mode(store) == 0o700
    assert mode(store / "results.sqlite3") == 0o600
    assert mode(store.parent) == 0o777 & ~mask


@posix
def test_folders_and_files_that_are_there_keep_their_modes(tmp_path):
    store = tmp_path / "store"
    ResultStore(store).put("infills", {digest(1): b"a"})
    store.chmod(0o750)
    (store / "results.sqlite3").chmod(0o640)
    ResultStore(store).put("infills", {digest(2): b"b"})
    assert (mode(store), mode(store / "results.sqlite3")) == (0o750, 0o640)


@posix
def test_converted_models_are_their_owners_alone(tmp_path, monkeypatch):
    """With tiny parts in the place of the wheel's."""
    import transformers

    class Parts:
        config = type("Config", (), {"quantization_config": None})()

        @classmethod
        def from_pretrained(cls, *names, **how):
            return cls()

        def save_pretrained(self, folder):
            (folder / "weights").write_text("")

    for name in ("AutoTokenizer", "AutoModelForCausalLM"):
        monkeypatch.setattr(transformers, name, Parts)
    monkeypatch.setattr(Parts.config.__class__, "__delattr__", lambda self, name: None)
    with umask(0):
        wheels._convert(tmp_path / "model.gguf", tmp_path / "store" / "models" / "model-1")
    for folder in ("store", "store/models", "store/models/model-1"):
        assert mode(tmp_path / folder) == 0o700


@posix
def test_a_store_that_all_may_write_to_is_told(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o1777)
    with pytest.warns(MarsWarning, match="other users can change the results in .*store: everyone may write"):
        ResultStore(store).put("infills", {digest(1): b"a"})
    store.chmod(0o700)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ResultStore(store).put("infills", {digest(1): b"a"})


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give a folder away")
def test_a_store_of_another_user_is_told(tmp_path):
    for folder in (tmp_path, *tmp_path.parents):  # pytest's are its user's alone
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    store = tmp_path / "store"
    store.mkdir()
    os.chown(store, 12345, -1)
    store.chmod(0o755)
    with unprivileged(), pytest.warns(MarsWarning, match=r"belongs to another user \(number 12345\)"):
        ResultStore(store).put("infills", {digest(1): b"a"})


# No way from a file to code

UNPICKLES: set[str] = set()
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml", "subprocess", "pty"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {"torch.load", "os.system", "os.popen", "numpy.load", "np.load", "pandas.read_pickle"}


def dangers(tree):
    """What in a module could make code of data."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            yield from dangers_of_call(node)


def dangers_of_call(node):
    called = node.func
    if isinstance(called, ast.Name) and called.id in CALLS:
        yield called.id
    if isinstance(called, ast.Attribute) and ast.unparse(called) in METHODS:
        yield ast.unparse(called)
    for option in node.keywords:
        on = isinstance(option.value, ast.Constant) and option.value.value is True
        if on and option.arg in ("shell", "allow_pickle", "trust_remote_code"):
            yield option.arg


def test_nothing_is_unpickled_or_run():
    found = {path: list(dangers(ast.parse(path.read_text(encoding="utf-8")))) for path in SOURCES}
    assert {path.relative_to(ROOT).as_posix() for path, some in found.items() if some} == UNPICKLES


@pytest.mark.parametrize(
    "code",
    [
        *("import pickle", "from joblib import load", "import yaml", "torch.load(path)", "np.load(path)"),
        *("eval(text)", "exec(text)", "subprocess.run(line, shell=True)", "load(path, trust_remote_code=True)"),
    ],
)
def test_the_check_sees(code):
    assert list(dangers(ast.parse(code)))


# Rows are texts: they name no files

TEXTS = ["{path}", "file://{path}", "@{path}", "../{path}", "<(cat {path})", "{path}\0", "$(touch {path}.new)"]
opened: list[str] = []
watching = False


def watch(event, arguments):
    if watching and event in ("open", "os.listdir", "subprocess.Popen", "os.system", "socket.connect"):
        opened.append(f"{event} {arguments}")


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("secret")
    return path


@contextlib.contextmanager
def watched():
    """All files opened, processes started and connections made meanwhile (a hook cannot be removed)."""
    global watching
    if not opened:
        sys.addaudithook(watch)
    opened[:] = ["watched"]
    watching = True
    try:
        yield opened
    finally:
        watching = False


def test_texts_are_never_paths(secret, gpt2, encoder, tmp_path):
    texts = [text.format(path=secret) for text in TEXTS]
    models = {"language_model": gpt2, "encoder": encoder, "dtype": "float64"}
    scorer = MarsScorer("mini", max_mask_ratio=0.2, sample_count=2, variant="plus", **models)
    scorer.score(["a"], ["b"], ["c"])  # loads libraries, which may start processes
    with watched() as seen:
        scorer.score(texts, texts, texts)
        secret.open().close()
    assert [one for one in seen if str(secret) in one] == seen[-1:]  # the last one was ours
    assert not [one for one in seen if one.startswith(("os.system", "socket", "subprocess"))]
    assert [path for path in tmp_path.iterdir() if path.name != "store"] == [secret]


@pytest.mark.parametrize("command", ["score", "augment"])
def test_columns_and_texts_of_a_file_are_never_paths(command, secret, tmp_path, language_model):
    texts = [text.format(path=secret) for text in TEXTS]
    rows = [{"prediction": text, "reference": text, "context": text, str(secret): text} for text in texts]
    rows = [{**row, "store": str(secret), "encoder": str(secret), "idf_corpus": str(secret)} for row in rows]
    jsonl.write(tmp_path / "rows.jsonl", rows)
    encoder = encoder_with(tmp_path)
    before = set(tmp_path.iterdir())
    models_of = ["--language-model", str(language_model[0]), "--dtype", "float64"]
    models_of += ["--encoder", str(encoder)] if command == "score" else []
    argv = [command, str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "out.jsonl"), "--preset", "mini"]
    with watched() as seen:
        assert main([*argv, *models_of, "--max-mask-ratio", "0.2", "--quiet"]) == 0
    assert not [one for one in seen if str(secret) in one]
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "out.jsonl", tmp_path / "store"}


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_a_report_shows_hostile_names_and_texts_as_text(tmp_path, capsys):
    from test_meta_items import row

    rows = [row(number) for number in range(12)]
    rows = [
        {**one, "system": HOSTILE, "candidate": one["candidate"] + HOSTILE, "context": HOSTILE} for one in rows
    ]
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
    ("answer", "code", "says"),
    [
        (f'{KNOWN} if "jinja2==2.4.1" in text else {SOUND}', 0, "no known vulnerability in 2 packages"),
        (f"{KNOWN} if True else {SOUND}", 1, "jinja2 2.4.1: CVE-1, fixed in 3"),
        (SOUND, 75, "NOT DONE"),  # an index without advisories
        ('"no JSON"', 75, "NOT DONE"),
        ("sys.exit(1)", 75, "NOT DONE"),
    ],
)
def test_the_audit_has_a_status_of_its_own_if_it_was_not_done(tmp_path, answer, code, says):
    (tmp_path / "pip_audit.py").write_text(AUDITOR.format(answer=answer))
    run = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "audit.py")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, says in run.stdout + run.stderr) == (code, True)
