"""Find models by their names, and load them without running code that comes with a model."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.errors import ModelUnavailableError
from mars_score.locks import ForkSafeLock
from mars_score.models.packages import Difference, find_known
from mars_score.models.running import number_type, ordinary_mode, pick_device
from mars_score.models.sources import Folder, HubModel, ReadyMade, Source

if TYPE_CHECKING:
    import torch

    from mars_score.models.nli import PrefixClassifier
    from mars_score.models.running import Runtime
    from mars_score.presets import ModelSettings

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


# One thread loads at a time: a model is loaded once, and transformers' lazy imports are not thread-safe.
loading_lock = ForkSafeLock()
NLI_LABELS = ("contradiction", "entailment", "neutral")  # classes of the shipped NLI models, in order
_MODEL_CLASSES = {
    "language_model": "AutoModelForCausalLM",
    "entailment_model": "AutoModelForSequenceClassification",
}
# Models by setting, number type, device and source. All scorers of the process share them.
_loaded: dict[tuple[str, ...], Any] = {}


def free_models() -> None:
    """Release all loaded models, and look up anew which files their names stand for.

    A scorer keeps the models that it uses until it is freed, or until their files have changed.
    """
    _loaded.clear()
    clear_lookups()


def shared_model(setting: str, models: ModelSettings, runtime: Runtime) -> Any:
    """Load a model once per process, except a ready-made one.

    Args:
        setting: ``"encoder"``, ``"language_model"`` or ``"entailment_model"``.
        models: names of all models, and their number type.
        runtime: device, store for unpacked models, and progress reports.

    Returns:
        A ``SentenceTransformer``, a ``CausalLanguageModel``, or the pair of an NLI model and its tokenizer.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
        UnsupportedModelError: the language model cannot be used. The message says why.
    """
    spec, dtype = getattr(models, setting), number_type(models.dtype, runtime.device)
    if isinstance(locate(spec), ReadyMade):
        return _load(setting, spec, dtype, runtime)

    key = setting, dtype, pick_device(runtime.device)
    with loading_lock:
        model = _loaded.get((*key, str(locate(spec))))
        if model is None:
            model = _load(setting, spec, dtype, runtime)
            _loaded[*key, str(locate(spec))] = model  # The revision of a Hub model is known only after loading.
        return model


def _load(setting: str, spec: object, dtype: str, runtime: Runtime) -> Any:
    model = load_model(setting, spec, dtype, runtime)
    if setting == "language_model":
        from mars_score.models.causal_lm import CausalLanguageModel

        return CausalLanguageModel(*model)
    return model


def load_model(setting: str, spec: object, dtype: str, runtime: Runtime) -> Any:
    """Load a model, also if it is already loaded.

    Args:
        setting: as for :func:`shared_model`.
        spec: as for :func:`locate`. A ready-made model is returned unchanged.
        dtype: name of a torch number type, or ``"auto"``.
        runtime: device, store for unpacked models, and progress reports.

    Returns:
        A ``SentenceTransformer`` for ``"encoder"``, else the pair of a model and its tokenizer.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    source = locate(spec)
    if isinstance(source, ReadyMade):
        return spec
    import torch

    device, torch_type = pick_device(runtime.device), getattr(torch, number_type(dtype, runtime.device))
    with _loading(spec):
        runtime.report(f"load {spec}", 0, 1)
        place, options = source.arguments(runtime)
        model: Any
        if isinstance(source, Difference):
            model = _load_difference(source, place, torch_type, device)
        elif setting == "encoder":
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(place, device=device, trust_remote_code=False, **options)
            model.to(torch_type).eval()
        else:
            import transformers

            tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False, **options)
            loader = getattr(transformers, _MODEL_CLASSES[setting])
            network = loader.from_pretrained(place, dtype=torch_type, trust_remote_code=False, **options)
            network.requires_grad_(False).eval().to(device)
            model = network, tokenizer
        runtime.report(f"load {spec}", 1, 1)
        return model


def _load_difference(
    source: Difference, folder: str, dtype: torch.dtype, device: str
) -> tuple[PrefixClassifier, Any]:
    """Load a shipped NLI model and its tokenizer from the encoder in ``folder``.

    ``research/entailment/train.py`` writes the file: norms, heads, and for each linear layer a low-rank update
    (LoRA, Hu et al. 2022, https://openreview.net/forum?id=nZeVKeeFYf9).
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    from mars_score.models.nli import PrefixClassifier

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # hides the report of the missing pooler
    try:
        encoder = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
    finally:
        logging.set_verbosity(verbosity)
    learned = {name: tensor.float() for name, tensor in load_file(source.file).items()}
    model = PrefixClassifier(encoder, NLI_LABELS)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            layer = name.removesuffix(".weight")
            if name in learned:
                parameter.copy_(learned[name])
            elif f"{layer}.up" in learned:
                parameter.add_(learned[f"{layer}.up"] @ learned[f"{layer}.down"])
    model.to(device).requires_grad_(False).eval()
    model.set_number_type(dtype)
    return model, AutoTokenizer.from_pretrained(folder)


@contextlib.contextmanager
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


@contextlib.contextmanager
def _loading(spec: object) -> Iterator[None]:
    """Leave the caller's torch modes, hide progress bars, and turn loading errors into ModelUnavailableError."""
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
