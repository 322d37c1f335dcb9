"""The folder of a learned head: ``head.json`` says what it is, ``head.safetensors`` holds its numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.data.files import replaced, whole_file
from mars_score.settings import SETTINGS, ModelSettings
from mars_score.settings.fields import settings_of

FORMAT = 2  # raised when folders that were written before can no longer be read
_ABOUT, _NUMBERS = "head.json", "head.safetensors"
_MODELS = {field.name for field in settings_of(ModelSettings)}
_TYPES = {"kind": str, "models": dict, "settings": dict, "parameters": dict, "learned_from": list, "numbers": str}


@dataclass(frozen=True)
class HeadFolder:
    """A head as it is saved.

    Attributes:
        path: of the folder.
        kind: of the head, such as ``"terms"``.
        models: fingerprints of the models that it was trained with, by the setting's name. They are compared with
            the models that a scorer names, and no model is ever loaded from here.
        settings: those that its scores depend on, by name; models are none of them.
        parameters: plain data of the kind's own.
        learned_from: name and sizes of each data set.
        numbers: hash of ``head.safetensors``.
        digest: hash of ``head.json``, and so of both files.
    """

    path: Path
    kind: str
    models: Mapping[str, str]
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any]
    learned_from: Sequence[Mapping[str, Any]]
    numbers: str
    digest: str

    @property
    def fingerprint(self) -> str:
        """Identifies the head in signatures and keys of the store: ``terms:0123456789abcdef``."""
        return f"{self.kind}:{self.digest}"

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its numbers, by name.

        Raises:
            ValueError: the file is not the one that was saved.
        """
        from safetensors.numpy import load

        path = self.path / _NUMBERS
        content = path.read_bytes() if path.is_file() else b""
        if _hash(content) != self.numbers:
            raise _damaged(self.path, f"{_NUMBERS} is not the file that was saved with {_ABOUT}")
        return load(content)


def read_head(head: str | os.PathLike[str]) -> HeadFolder:
    """Read a head's folder; its numbers are read when they are needed.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no head.
        ValueError: the folder is damaged or was written by another version, or the head asks for models or for
            settings that there are not.
    """
    path = Path(head)
    if not os.path.isfile(path / _ABOUT):
        raise FileNotFoundError(
            f"{path}: no learned head, as it has no {_ABOUT}; give a folder that mars train wrote"
        )
    content = (path / _ABOUT).read_bytes()
    try:
        about = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"{_ABOUT} cannot be read: {error}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(
            f"{path}: {_ABOUT} is not of format {FORMAT}, the only one that this version of mars_score reads; "
            "train the head again"
        )
    for name, kind in _TYPES.items():
        if not isinstance(about.get(name), kind):
            raise _damaged(path, f"{name!r} of {_ABOUT} is missing or no {kind.__name__}")
    if refused := [name for name in about["settings"] if name not in SETTINGS or name in (*_MODELS, "learned")]:
        raise ValueError(f"{path}: the head sets {', '.join(refused)}, which no head may set; train it again")
    if unknown := [name for name in about["models"] if name not in _MODELS]:
        raise ValueError(f"{path}: the head names {', '.join(unknown)}, which is no model; train it again")
    return HeadFolder(path, **{name: about[name] for name in _TYPES}, digest=_hash(content))


def write_head(
    path: str | os.PathLike[str],
    kind: str,
    *,
    models: Mapping[str, str],
    settings: Mapping[str, Any],
    parameters: Mapping[str, Any],
    learned_from: Sequence[Mapping[str, Any]],
    arrays: Mapping[str, NDArray[Any]],
) -> HeadFolder:
    """Write a head's folder, and read it back; a head that was there is replaced.

    Args: see :class:`HeadFolder`; the folder is made where it is missing.

    Raises:
        OSError: the folder cannot be written.
    """
    from safetensors.numpy import save

    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    about = {
        "format": FORMAT,
        "kind": kind,
        "models": dict(models),
        "settings": dict(settings),
        "parameters": dict(parameters),
        "learned_from": list(learned_from),
        "numbers": _hash(numbers),
    }
    with replaced(folder / _NUMBERS) as beside:  # an older head.json refuses it until that is replaced as well
        beside.write_bytes(numbers)
    with whole_file(folder / _ABOUT) as file:
        file.write(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return read_head(folder)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path}: the learned head is damaged: {why}; train it again, or copy the whole folder again"
    )
