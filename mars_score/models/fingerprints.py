"""Fingerprints of models: a wheel's version, a Hub revision, a hash of files or weights; nothing is loaded."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mars_score.models.shipped_nli import SHIPPED
from mars_score.models.wheels import is_wheel, wheel_revision

# One thread loads at a time: a model is loaded once, and transformers' lazy imports fail in two threads at once.
loading_lock = threading.RLock()
_folders: dict[Any, str] = {}  # hashes of folders by their files' paths, sizes and times
_MODEL_ATTRIBUTES = (
    "config",
    "generation_config",
    "max_seq_length",
    "prompts",
    "default_prompt_name",
    "truncate_dim",
)
_KNOWN_LIBRARIES = ("torch", "transformers", "sentence_transformers")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
# Attributes of every torch module that are looked at otherwise, or that change without changing outputs.
_MODULE_INTERNALS = frozenset(
    (
        "training",
        "name_or_path",
        "_parameters",
        "_buffers",
        "_modules",
        "_is_hf_initialized",
        "_is_full_backward_hook",
    )
)
_TOKENIZER_ATTRIBUTES = (
    "special_tokens_map",
    "chat_template",
    "padding_side",
    "truncation_side",
    "model_max_length",
    "clean_up_tokenization_spaces",
)


@dataclass(frozen=True)
class Fingerprint:
    """The identity of a model.

    Attributes:
        name: its Hub id or wheel, ``"folder"``, or the class of an object.
        revision: its commit, its wheel's version, or a hash of its files or weights (of a model that is in wheels
            and on the Hub, the same from both). None: not known, as of a Hub
            model that was never downloaded, or of an object that does not show what it computes with: results of
            such a model are not stored. "": there is no model.
    """

    name: str
    revision: str | None

    def __str__(self) -> str:
        return self.name if self.revision == "" else f"{self.name}@{self.revision or 'unknown'}"

    def matches(self, text: str) -> bool:
        """Compare with a fingerprint written as text; where the revision is not known the name decides."""
        return text == str(self) if self.revision is not None else text.startswith(f"{self.name}@")


_known: ContextVar[dict[Any, Fingerprint]] = ContextVar("known")


@contextmanager
def cached_fingerprints() -> Iterator[None]:
    """Fingerprint each model once within: it is assumed not to change."""
    token = _known.set(_known.get({}))
    try:
        yield
    finally:
        _known.reset(token)


def fingerprint(spec: Any) -> Fingerprint:
    """Return the fingerprint of a model: a Hub id, a folder, a wheel's name, or ready-made objects."""
    known, key = _known.get({}), str(spec) if is_name(spec) else id(spec)
    if key not in known or known[key].revision is None:
        known[key] = _fingerprint(spec)
    return known[key]


def name_and_revision(spec: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Split a Hub id from the branch, tag or commit asked for as ``"name@revision"``; paths as they are."""
    name, _, revision = str(spec).rpartition("@")
    return (name, revision) if name and revision and not Path(spec).exists() else (str(spec), None)


def is_name(spec: Any) -> bool:
    """Tell whether a model is given by a Hub id, a folder or a wheel's name, and not as objects."""
    return isinstance(spec, (str, os.PathLike))


def _fingerprint(spec: Any) -> Fingerprint:
    if spec is None:
        return Fingerprint("none", "")
    if is_wheel(spec):
        return Fingerprint(spec, wheel_revision(spec))
    if is_name(spec):
        if spec in SHIPPED:
            return Fingerprint(str(spec), SHIPPED[str(spec)].revision)
        if Path(spec).is_dir():
            return Fingerprint("folder", _hash_folder(Path(spec)))
        name, asked = name_and_revision(spec)
        return Fingerprint(name, _commit_here(name, asked))
    parts = spec if isinstance(spec, tuple) else (spec,)
    return Fingerprint(type(parts[0]).__name__, _hash_objects(parts))


def _commit_here(name: str, revision: str | None) -> str | None:
    """Return the commit of this machine's copy of a Hub model; None without one."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    # sentence-transformers adds its own name to names without an owner, and can have its own cache.
    names = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    caches = (None, os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None)
    with suppress(HFValidationError):  # loading raises a clear error
        for cache, full_name, file in product(caches, names, ("config.json", "modules.json")):
            path = try_to_load_from_cache(full_name, file, cache_dir=cache, revision=revision)
            if isinstance(path, str):
                return Path(path).parent.name
    return None


def _hash_folder(folder: Path) -> str:
    """Hash all files of a folder (not of its path) but hidden ones, such as those of git."""
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [folder / name for name in names if not any(part.startswith(".") for part in name.parts)]
    state = tuple((str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    if state not in _folders:
        digest = hashlib.blake2b(digest_size=8)
        for path in files:
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        _folders[state] = digest.hexdigest()
    return _folders[state]


def _hash_objects(parts: tuple[Any, ...]) -> str | None:
    """Hash models and tokenizers; None where one does not show all that it computes with."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        tokenizer = part
        if hasattr(part, "state_dict"):
            if not _update_with_model(digest, part):
                return None
            tokenizer = getattr(part, "tokenizer", None)
        rules = _tokenizer_rules(tokenizer)
        if rules is None:
            return None
        digest.update(rules.encode())
    return digest.hexdigest()


def _update_with_model(digest: hashlib.blake2b, model: Any) -> bool:
    """Add the weights, buffers, configuration and plain attributes of a model.

    Returns:
        False where outputs may depend on anything else: a module of another library (such as PEFT's adapters) or
        of the user, a hook, a replaced ``forward``, tensors that are no parameters or buffers.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        return False
    digest.update(f"{model}{[str(getattr(model, name, '')) for name in _MODEL_ATTRIBUTES]}".encode())
    for name, module in model.named_modules():
        values = {key: value for key, value in vars(module).items() if key not in _MODULE_INTERNALS}
        is_foreign = type(module).__module__.partition(".")[0] not in _KNOWN_LIBRARIES
        is_hooked = any(getattr(module, hooks) for hooks in _HOOKS) or "_hf_hook" in values or "forward" in values
        if is_foreign or is_hooked or any(map(_holds_tensors, values.values())):
            return False
        plain = sorted((key, value) for key, value in values.items() if isinstance(value, (str, int, float)))
        digest.update(f"{name}{plain}".encode())
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return True


def _holds_tensors(value: Any) -> bool:
    import torch

    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (list, tuple)) and any(map(_holds_tensors, value))
    )


def _tokenizer_rules(tokenizer: Any) -> str | None:
    """Return all that token ids depend on; "" without a tokenizer, None for one that does not show it."""
    if tokenizer is None:
        return ""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        return None
    rules = json.loads(backend.to_str())
    del rules["truncation"], rules["padding"]  # changed by calls
    return json.dumps([rules, *(str(getattr(tokenizer, name, "")) for name in _TOKENIZER_ATTRIBUTES)])
