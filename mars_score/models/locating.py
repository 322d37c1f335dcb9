"""Find the source of a model by its name, without loading it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from itertools import product
from pathlib import Path

from mars_score.models.packages import find_known
from mars_score.models.sources import Folder, HubModel, ReadyMade, Source

_commits: dict[tuple[str, str | None], str] = {}  # of Hub models, by name and revision


def locate(spec: object) -> Source:
    """Return the source of a Hub id, a folder, a known name, a ready-made model or None.

    The files of a folder and the commit of a Hub model are looked up once per process.
    """
    if spec is None:
        return ReadyMade("none", "")
    if not isinstance(spec, (str, os.PathLike)):
        return ReadyMade(type(spec[0] if isinstance(spec, tuple) else spec).__name__, None)
    if isinstance(spec, str) and (known := find_known(spec)) is not None:
        return known
    path = Path(spec)
    if path.is_dir():
        return Folder("folder", _hash_folder(path.absolute()), path)
    name, _, asked = str(spec).rpartition("@")
    if not (name and asked) or path.exists():
        name, asked = str(spec), ""
    return HubModel(name, _commit_here(name, asked or None), asked or None)


def clear_lookups() -> None:
    """Forget which files the names of folders and Hub models stand for."""
    _hash_folder.cache_clear()
    _commits.clear()


@cache
def _hash_folder(folder: Path) -> str:
    """Hash the names and contents of a folder's files, except hidden ones."""
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(parent, name) for name in names if not name.startswith(".")]
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(filter(Path.is_file, paths)):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def _commit_here(name: str, revision: str | None) -> str | None:
    """Return the commit of the cached copy of a Hub model, if there is one."""
    if commit := _commits.get((name, revision)):
        return commit
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    # sentence-transformers adds its name to names without an owner, and can use another cache.
    names = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    folders = (None, os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None)
    with contextlib.suppress(HFValidationError):  # Loading raises a clear error.
        for folder, full_name, file in product(folders, names, ("config.json", "modules.json")):
            path = try_to_load_from_cache(full_name, file, cache_dir=folder, revision=revision)
            if isinstance(path, str):
                return _commits.setdefault((name, revision), Path(path).parent.name)
    return None
