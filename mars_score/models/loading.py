"""Loading models by name, folder or wheel: weights from safetensors files, and never code of a model's own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mars_score.errors import ModelUnavailableError
from mars_score.models.fingerprints import Current, hub_copy, loading_lock, name_and_revision, pinned
from mars_score.models.wheels import has_word_vectors, is_wheel, language_model_source, wheel_folder

_HUB_SECONDS = 5.0  # for an answer of the Hub
_MODEL_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "translation": "AutoModelForSeq2SeqLM",
    "classification": "AutoModelForSequenceClassification",
}


def pick_device(device: str | None) -> str:
    """The given device, else CUDA where there is one, else the CPU.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(device)
    return device


def check_device(device: str | None) -> None:
    """Raise unless this machine has the device; CUDA is not initialised, so that processes may be forked.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    if device in (None, "cpu"):
        return
    import torch

    try:
        one = torch.device(device)
        if one.type != "cuda":
            torch.empty(0, device=one)
        elif (one.index or 0) >= torch.cuda.device_count():
            raise RuntimeError(f"number of CUDA devices: {torch.cuda.device_count()}")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r} is not available ({str(error).splitlines()[0]})") from error


def pickled_weights() -> bool:
    """Whether weights may be read from pickle files: ``MARS_PICKLED_WEIGHTS`` is set, and not to 0.

    An environment variable, so that it holds in all entry points and workers, and no file of data can set it.
    """
    return os.environ.get("MARS_PICKLED_WEIGHTS", "0") not in ("", "0")


def _safely() -> dict[str, bool | None]:
    """Arguments that refuse models' own code (otherwise transformers asks on the terminal) and pickle files."""
    return {"trust_remote_code": False, "use_safetensors": None if pickled_weights() else True}


@contextmanager
def _loading(name: Any) -> Iterator[None]:
    """No torch modes of the caller, no progress bars of transformers, and one class of errors."""
    from transformers.utils import logging

    from mars_score.models.torch_modes import ordinary_mode

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with ordinary_mode():
            yield
    except ModelUnavailableError:
        raise
    except (OSError, ConnectionError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if not pickled_weights() and "file named model.safetensors" in reason:
            raise _pickled_only(name) from error
        raise ModelUnavailableError(
            f"could not load {str(name)!r} ({reason}). Check the name and the connection to the Hub; "
            'preset="mini" runs without the Hub'
        ) from error
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ModelUnavailableError(
            f"{str(name)!r} needs its own code, which MARS never runs; choose another model, or load it "
            "yourself and pass the object"
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()


def _hub_source(spec: Any) -> tuple[str, dict[str, Any]]:
    """Name or folder, and extra ``from_pretrained`` arguments: of a Hub model its revision.

    That is the one of this machine's copy, if there is one. Without a connection the copy is loaded without asking
    the Hub, which would be tried for nearly a minute.

    Raises:
        ModelUnavailableError: there is neither a copy nor a connection.
    """
    from huggingface_hub import constants, get_session

    name, asked = name_and_revision(spec)
    revision = pinned(spec) or ({"revision": asked} if asked else {})
    if Path(spec).is_dir() or constants.is_offline_mode():
        return name, dict(revision)
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_SECONDS)
    except Exception as error:  # of the HTTP library, which differs between versions of huggingface_hub
        if pinned(spec):
            return name, {**revision, "local_files_only": True}
        raise ModelUnavailableError(
            f"could not load {str(spec)!r}: {constants.ENDPOINT} cannot be reached ({error}). "
            'Check the connection, name a local folder, or choose preset="mini", which runs without the Hub'
        ) from None
    return name, dict(revision)


def _pickled_only(name: Any) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{str(name)!r} has no weights as safetensors, and pickle files can hold code: convert it (load it and "
        "save_pretrained), or set MARS_PICKLED_WEIGHTS=1 if you trust where it comes from"
    )


# Models by name, folder or wheel, shared by the process's scorers.
_loaded: dict[tuple[str, ...], Current[Any]] = {}


def free_models() -> None:
    """Release all loaded models; a scorer that uses some keeps them until it is freed."""
    _loaded.clear()


def load_language_model(
    spec: Any, kind: str, dtype: str, device: str | None, store: Path | None
) -> tuple[Any, Any]:
    """Model and tokenizer.

    Args:
        spec: a Hub id, a folder, a wheel's name, or a pair (model, tokenizer), which is returned.
        kind: ``"causal"``, ``"masked"``, ``"translation"`` or ``"classification"``.
        dtype: name of torch's number type.
        device: see :func:`pick_device`.
        store: folder for converted wheels, or None.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    if isinstance(spec, tuple):
        return spec
    where = pick_device(device)
    load = partial(_load_language_model, spec, kind, dtype, where, store)
    model, tokenizer = _once((kind, str(spec), dtype, where), spec, load)
    return model, tokenizer


def _once(key: tuple[str, ...], spec: Any, load: Callable[[], Any]) -> Any:
    """A loaded model; it is loaded again if the files behind its name have changed.

    Threads that ask at the same time wait for one load.
    """
    with loading_lock:
        current = _loaded.get(key) or Current(spec, load)
        model = current.get()
        _loaded[key] = current
    return model


def _load_language_model(spec: Any, kind: str, dtype: str, device: str, store: Path | None) -> tuple[Any, Any]:
    import torch
    import transformers

    with _loading(spec):
        source, extra = language_model_source(spec, store) if is_wheel(spec) else _hub_source(spec)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False, **extra)
        loader = getattr(transformers, _MODEL_CLASSES[kind])
        model = loader.from_pretrained(source, dtype=getattr(torch, dtype), **_safely(), **extra)
        model.requires_grad_(False)
        return model.eval().to(device), tokenizer


def load_encoder(spec: Any, dtype: str, device: str | None) -> Any:
    """A SentenceTransformer, loaded once per process; a ready-made one is returned.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
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
            _refuse_pickled_modules(source)
            name, extra = (str(source), {}) if is_wheel(spec) else _hub_source(spec)
            encoder = SentenceTransformer(
                name, device=device, trust_remote_code=False, model_kwargs=_safely(), **extra
            )
            _refuse_pickled_modules(source)  # what was only now downloaded; torch read it without running code
        return encoder.to(getattr(torch, dtype)).eval()


def _refuse_pickled_modules(source: str | os.PathLike[str]) -> None:
    """Raise if a module of an encoder (a Dense layer, static vectors) has its weights in a pickle file only.

    sentence-transformers loads such a file if there is no other; only the transformer can be told not to.

    Raises:
        ModelUnavailableError: there is such a module.
    """
    folder = Path(source) if Path(source).is_dir() else hub_copy(str(source))
    if pickled_weights() or folder is None or not (folder / "modules.json").is_file():
        return
    for module in json.loads((folder / "modules.json").read_text(encoding="utf-8")):
        weights = folder / module["path"] / "pytorch_model.bin"
        in_shards = module["type"].endswith("Transformer")  # refused by transformers
        if weights.is_file() and not in_shards and not weights.with_name("model.safetensors").is_file():
            raise _pickled_only(source)
