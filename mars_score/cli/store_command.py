"""``mars models`` shows the models of each preset. ``mars cache`` shows or clears the store."""

import argparse
import json
import shutil
from contextlib import suppress
from pathlib import Path

from mars_score.cache import ResultStore, store_folder
from mars_score.cli.arguments import Commands
from mars_score.cli.printing import print_line, print_notices, scoring
from mars_score.models.loading import locate
from mars_score.models.packages import stored_models
from mars_score.presets import PRESETS


def add_parser(commands: Commands) -> None:
    """Add both commands to argparse's subparsers."""
    text = "Show the models of each preset: which are on this machine, and how to get the others."
    models = commands.add_parser("models", help=text, description=f"{text} Nothing is fetched.")
    text = "Show or remove what is kept between runs: model outputs and converted models."
    actions = commands.add_parser("cache", help=text, description=text).add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    text = "Show the store's folder and what it holds."
    info = actions.add_parser("info", help=text, description=text)
    text = "Remove all model outputs and converted models; both are made again when they are needed."
    clear = actions.add_parser("clear", help=text, description=text)
    for parser, run in ((models, run_models), (info, run_info), (clear, run_clear)):
        text = "the store's folder (default: MARS_STORE, else the user's cache folder)"
        parser.add_argument("--store", metavar="FOLDER", help=text)
        parser.set_defaults(run=run)
    models.add_argument("--json", action="store_true", help="print one JSON object")
    info.add_argument("--json", action="store_true", help="print one JSON object; sizes are in bytes")
    text = "only the models, which preset mini or medium unpacks again when it is used"
    clear.add_argument("--models", action="store_true", help=text)


def run_models(args: argparse.Namespace) -> None:
    """Print the models of each preset."""
    store, presets = _folder(args), {}
    for preset, models in PRESETS.items():
        sources = {setting: locate(name) for setting, name in models.items()}
        presets[preset] = {
            setting: {"name": source.name, "here": source.is_here(store), "install": source.install}
            for setting, source in sources.items()
        }
    if args.json:
        print(json.dumps({"presets": presets}))
        return
    for preset, described in presets.items():
        print_line(preset)
        for setting, model in described.items():
            place = "here" if model["here"] else f"missing ({model['install']})"
            print_line(f"  {setting.replace('_', ' '):<16}  {model['name']}  {place}")


def run_info(args: argparse.Namespace) -> None:
    """Print the store's folder, limit, results and models."""
    folder = _folder(args)
    store = ResultStore(folder)
    with scoring() as notices:
        results = store.info()
    print_notices(notices)
    sizes = {model.name: _bytes(model) for model in stored_models(folder)}
    if args.json:
        kinds = {kind: {"entries": entries, "bytes": size} for kind, (entries, size) in results.items()}
        print(json.dumps({"folder": str(folder), "limit": store.limit, "results": kinds, "models": sizes}))
        return
    rows = [(kind, str(entries), size) for kind, (entries, size) in results.items()]
    rows += [(f"model {name}", "", size) for name, size in sizes.items()]
    print_line(f"store {folder}")
    print_line(f"limit {_mebibytes(store.limit)} of results (MARS_STORE_LIMIT)")
    width = max(len(name) for name, _, _ in rows)
    for name, entries, size in rows:
        print_line(f"{name:<{width}}  {entries:>9}  {_mebibytes(size):>12}")
    if sizes:
        print_line("to free the models alone: mars cache clear --models")


def run_clear(args: argparse.Namespace) -> None:
    """Remove results and models, also unfinished ones. With ``--models``, remove only models."""
    folder = _folder(args)
    store, models = ResultStore(folder), stored_models(folder)
    before, count = _bytes(folder), 0
    if not args.models:
        with scoring():  # It drops the notice on a damaged file, which counts as empty.
            count = sum(entries for entries, _ in store.info().values())
            store.clear()
    for model in models:
        shutil.rmtree(model)
    with suppress(OSError):  # The folder is missing or not empty.
        (folder / "models").rmdir()
    print(f"{_mebibytes(before - _bytes(folder))} freed (results: {count}, converted models: {len(models)})")


def _folder(args: argparse.Namespace) -> Path:
    folder = store_folder(args.store)
    assert folder is not None  # These commands have no --no-store.
    return folder


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
