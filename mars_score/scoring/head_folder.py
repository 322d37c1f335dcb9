"""The folder of a learned head: ``head.json`` says what it is, ``head.safetensors`` holds its numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.files import whole_file

FORMAT = 1  # raised when folders that were written before can no longer be read
_ABOUT, _NUMBERS = "head.json", "head.safetensors"


@dataclass(frozen=True)
class HeadFolder:
    """A head as it is saved, checked but not yet made.

    Attributes:
        path: of the folder.
        kind: of the head, such as ``"terms"``.
        models: fingerprints of the models that it was trained with, by the setting's name; of another model a
            head understands nothing.
        settings: that its scores depend on and that follow from it, by name; ``variant`` is one of them.
        about: all of ``head.json``; ``about["parameters"]`` are the kind's own.
        digest: of both files.
    """

    path: Path
    kind: str
    models: Mapping[str, str]
    settings: Mapping[str, Any]
    about: Mapping[str, Any]
    digest: str

    @property
    def fingerprint(self) -> str:
        """Identifies the head in signatures and keys of the store: ``terms:0123456789abcdef``."""
        return f"{self.kind}:{self.digest}"

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its numbers, by name."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            return load((self.path / _NUMBERS).read_bytes())
        except SafetensorError as error:
            raise _damaged(self.path, f"{_NUMBERS} cannot be read: {error}") from None


def read_head(head: str | os.PathLike[str]) -> HeadFolder:
    """Read and check a head's folder.

    Args:
        head: a folder.

    Raises:
        FileNotFoundError: there is no such head.
        ValueError: the folder is damaged, was written by another version, or holds something else.
    """
    path = Path(head)
    about, digest = path / _ABOUT, hashlib.blake2b(digest_size=8)
    if not os.path.isfile(about):
        raise FileNotFoundError(
            f"{path}: no learned head, as it has no {_ABOUT}; give a folder that mars train wrote"
        )
    digest.update(about.read_bytes())
    found = _parse(about)
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{path}: a head of format {found.get('format')!r}, where this version of mars_score reads format "
            f"{FORMAT}; train it again, or install version {found.get('version', 'of mars_score that wrote it')}"
        )
    wanted = {"kind": str, "version": str, "models": dict, "settings": dict, "parameters": dict, "numbers": str}
    for name, kind in wanted.items():
        if not isinstance(found.get(name), kind):
            raise _damaged(path, f"{name!r} of {_ABOUT} is missing or no {kind.__name__}")
    numbers = path / _NUMBERS
    if not numbers.is_file():
        raise _damaged(path, f"{_NUMBERS} is missing")
    if (of_numbers := _digest(numbers)) != found["numbers"]:
        raise _damaged(path, f"{_NUMBERS} is not the file that was saved with {_ABOUT}")
    digest.update(of_numbers.encode())
    return HeadFolder(path, found["kind"], found["models"], found["settings"], found, digest.hexdigest())


def write_head(
    path: str | os.PathLike[str],
    kind: str,
    *,
    models: Mapping[str, str],
    settings: Mapping[str, Any],
    parameters: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    **more: Any,
) -> HeadFolder:
    """Write a head's folder, and read it back; a head that was there is replaced.

    Args:
        path: of the folder; made where it is missing.
        kind: of the head.
        models: see :class:`HeadFolder`.
        settings: see :class:`HeadFolder`.
        parameters: plain data of the kind's own.
        arrays: its numbers, by name.
        more: plain data that says more about the head, such as what it was trained on.

    Raises:
        OSError: the folder cannot be written.
    """
    from safetensors.numpy import save_file

    from mars_score import __version__

    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{_NUMBERS}.unfinished"
    save_file({name: np.ascontiguousarray(one) for name, one in arrays.items()}, unfinished)
    numbers = _digest(unfinished)
    os.replace(unfinished, folder / _NUMBERS)  # with another head.json it is refused, until that is written, too
    about = {
        "format": FORMAT,
        "version": __version__,
        "kind": kind,
        "models": dict(models),
        "settings": dict(settings),
        "parameters": dict(parameters),
        "numbers": numbers,
        **more,
    }
    with whole_file(folder / _ABOUT) as file:
        file.write(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return read_head(folder)


def _parse(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path.parent, f"{_ABOUT} cannot be read: {error}") from None
    if not isinstance(found, dict) or "kind" not in found:
        raise ValueError(f"{path}: not the description of a learned head; give a folder that mars train wrote")
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path}: the learned head is damaged: {why}; train it again, or copy the whole folder again"
    )
