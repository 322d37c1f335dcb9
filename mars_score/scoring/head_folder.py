"""The folder of a learned head: ``head.json`` says what it is, ``head.safetensors`` holds its numbers."""

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
from safetensors.numpy import load, save

from mars_score.data.files import whole_file
from mars_score.settings import SETTINGS, ModelSettings
from mars_score.settings.fields import settings_of

FORMAT = 3  # raised when folders that were written before can no longer be read
_ABOUT, _NUMBERS = "head.json", "head.safetensors"
_MODELS = {field.name for field in settings_of(ModelSettings)}


@dataclass(frozen=True)
class HeadFolder:
    """A head as it is saved."""

    path: Path
    digest: str  # hash of head.json, and so of both files
    kind: str  # one of mars_score.scoring.heads.KINDS
    # Fingerprints of the models that it was trained with, by the setting's name. They are compared with the models
    # that a scorer names, and no model is ever loaded from here.
    models: Mapping[str, str]
    settings: Mapping[str, Any]  # those that its scores depend on, by name; models are none of them
    parameters: Mapping[str, Any]  # how it was trained, as plain data
    learned_from: Sequence[Mapping[str, Any]]  # name and sizes of each data set
    numbers: str  # hash of head.safetensors

    @property
    def fingerprint(self) -> str:
        """Identifies the head in signatures and keys of the store: ``terms:0123456789abcdef``."""
        return f"{self.kind}:{self.digest}"

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its numbers, by name; ValueError where the file is not the one that was saved."""
        path = self.path / _NUMBERS
        content = path.read_bytes() if path.is_file() else b""
        if _hash(content) != self.numbers:
            raise ValueError(
                f"{self.path}: the learned head is damaged: {_NUMBERS} is not the file that was saved with it; "
                "train it again, or copy the whole folder again"
            )
        return load(content)


def read_head(head: str | os.PathLike[str]) -> HeadFolder:
    """Read a head's folder; its numbers are read when they are needed.

    Raises:
        FileNotFoundError: there is no such folder, or it holds no head.
        ValueError: the folder is damaged or was written by another version, or the head asks for settings that it
            may not have.
    """
    path = Path(head)
    if not os.path.isfile(path / _ABOUT):
        raise FileNotFoundError(
            f"{path}: no learned head, as it has no {_ABOUT}; give a folder that mars train wrote"
        )
    content = (path / _ABOUT).read_bytes()
    try:
        about = json.loads(content)
        if about.pop("format") != FORMAT:
            raise ValueError
        saved = HeadFolder(path, _hash(content), **about)
        refused = [name for name in saved.settings if name not in SETTINGS or name in (*_MODELS, "learned")]
        refused += [name for name in saved.models if name not in _MODELS]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"{path}: {_ABOUT} is damaged or not of format {FORMAT}, the only one that this version of mars_score "
            "reads; train the head again"
        ) from None
    if refused:  # a folder from elsewhere could name any model
        raise ValueError(f"{path}: the head sets {', '.join(refused)}, which no head may set; train it again")
    return saved


def write_head(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], **about: Any) -> HeadFolder:
    """Write a head's folder, which is made where it is missing, and read it back; a head there is replaced.

    Besides its numbers, by name, it gets the fields ``kind`` to ``learned_from`` of :class:`HeadFolder`.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    (folder / _NUMBERS).write_bytes(numbers)  # an older head.json refuses it until that is replaced as well
    about = {"format": FORMAT, **about, "numbers": _hash(numbers)}
    with whole_file(folder / _ABOUT) as file:
        file.write(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return read_head(folder)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
