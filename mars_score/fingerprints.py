"""Which model is it? Said without loading it, by its wheel's version, its Hub revision or its weights."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from mars_score.wheels import is_wheel, wheel_version

_hashes: dict[Any, str] = {}  # of folders and objects as they were when they were hashed


def fingerprint(spec: Any) -> str:
    """What identifies a model: its wheel's version, its Hub revision, or a hash of its weights."""
    if is_wheel(spec):
        return f"{spec}=={wheel_version(spec)}"
    if spec is None:
        return "none"
    if isinstance(spec, (str, os.PathLike)):
        if Path(spec).is_dir():
            return f"folder:{_hash_folder(Path(spec))}"
        return f"{spec}@{_hub_revision(str(spec)) or 'not-loaded'}"
    parts = spec if isinstance(spec, tuple) else (spec,)
    return f"{type(parts[0]).__name__}:{_hash_object(parts)}"


def is_here(spec: Any) -> bool:
    """Whether a model can be identified without loading it: all but those that were never fetched from the Hub."""
    return not _is_hub_name(spec) or _hub_revision(str(spec)) is not None


def _is_hub_name(spec: Any) -> bool:
    return isinstance(spec, (str, os.PathLike)) and not is_wheel(spec) and not Path(spec).is_dir()


def pinned(spec: Any) -> dict[str, str]:
    """The revision to load: that of the copy on this machine if there is one, as results kept from it say."""
    revision = _hub_revision(str(spec)) if _is_hub_name(spec) else None
    return {"revision": revision} if revision else {}


def _hub_revision(name: str) -> str | None:
    """The commit of the locally cached copy that a load would use."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for file in ("config.json", "modules.json"):
        try:
            path = try_to_load_from_cache(name, file)
        except HFValidationError:  # loading will say so
            return None
        if isinstance(path, str):
            return Path(path).parent.name
    return None


def _hash_folder(folder: Path) -> str:
    """Hash of a model folder's files (not of its path)."""
    kinds = {".safetensors", ".bin", ".json", ".txt", ".model"}
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in kinds and path.is_file()]
    state = tuple((str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    if state not in _hashes:
        digest = hashlib.blake2b(digest_size=8)
        for path in files:
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        _hashes[state] = digest.hexdigest()
    return _hashes[state]


def _hash_object(parts: tuple[Any, ...]) -> str:
    """Hash of a model object's weights, modules and configuration, and of its tokenizer's vocabulary.

    Weights are hashed anew only when a fast checksum or the tensors themselves say that they have changed.
    """
    rest, weights = hashlib.blake2b(digest_size=8), []
    for part in parts:
        if hasattr(part, "state_dict"):
            rest.update(f"{part}{getattr(part, 'config', '')}{getattr(part, 'max_seq_length', '')}".encode())
            weights += part.state_dict().items()
        tokenizer = getattr(getattr(part, "tokenizer", part), "backend_tokenizer", None)
        if tokenizer is not None:
            rules = json.loads(tokenizer.to_str())
            del rules["truncation"], rules["padding"]  # as the last call left them
            rest.update(json.dumps(rules).encode())
    state = tuple((name, *_state(weight)) for name, weight in weights)
    if state not in _hashes:
        digest = hashlib.blake2b(digest_size=8)
        for name, weight in weights:
            digest.update(f"{name}{weight.dtype}{tuple(weight.shape)}".encode())
            digest.update(_bytes(weight.cpu()).numpy().data)
        _hashes[state] = digest.hexdigest()
    rest.update(_hashes[state].encode())
    return rest.hexdigest()


def _state(weight: Any) -> tuple[Any, ...]:
    """Where a tensor is, how often it was written, and a checksum of its content."""
    import torch

    data = _bytes(weight)
    whole = data.numel() % 8 == 0 and data.storage_offset() % 8 == 0
    checksum = int((data.view(torch.int64) if whole else data).sum())
    written = None if weight.is_inference() else weight._version
    return weight.dtype, weight.shape, weight.device, weight.data_ptr(), written, checksum


def _bytes(weight: Any) -> Any:
    """A tensor's content as a flat tensor of bytes."""
    import torch

    return weight.detach().contiguous().flatten().view(torch.uint8)
