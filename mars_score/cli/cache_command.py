"""``mars cache``: what is kept between runs, shown or removed."""

import argparse
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from mars_score.cache import ResultStore, store_folder
from mars_score.cli.printing import print_line, print_notices, scoring
from mars_score.models.wheels import is_wheel


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Show or remove what is kept between runs: results and converted models."
    actions = commands.add_parser("cache", help=text, description=text).add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    info = "Show the store's folder and what it holds."
    clear = "Remove all kept results and converted models; both are made again when they are needed."
    for name, text, run in (("info", info, run_info), ("clear", clear, run_clear)):
        parser = actions.add_parser(name, help=text, description=text)
        parser.add_argument(
            "--store", metavar="FOLDER", help="the store's folder (default: MARS_STORE, else the cache)"
        )
        parser.set_defaults(run=run)
        if run is run_info:
            parser.add_argument("--json", action="store_true", help="print one JSON object; sizes are in bytes")


def run_info(args: argparse.Namespace) -> None:
    """Print folder, limit, results and models; see :func:`mars_score.cli.main` for errors."""
    folder, store, models = _kept(args)
    with scoring() as notices:
        results = store.info()
    print_notices(notices)
    sizes = {model.name: _bytes(model) for model in models}
    if args.json:
        kinds = {kind: {"entries": entries, "bytes": size} for kind, (entries, size) in results.items()}
        print(json.dumps({"folder": str(folder), "limit": store.limit, "results": kinds, "models": sizes}))
        return
    rows = [(kind, str(entries), size) for kind, (entries, size) in results.items()]
    rows += [(f"model {name}", "", size) for name, size in sizes.items()]
    print_line(f"store {folder}")
    print_line(f"limit {_shown(store.limit)} of results (MARS_STORE_LIMIT)")
    width = max(len(name) for name, _, _ in rows)
    for name, entries, size in rows:
        print_line(f"{name:<{width}}  {entries:>9}  {_shown(size):>12}")


def run_clear(args: argparse.Namespace) -> None:
    """Remove results and models, also unfinished ones; see :func:`mars_score.cli.main` for errors."""
    folder, store, models = _kept(args)
    before = _bytes(folder)
    with scoring():  # a damaged file counts as empty
        count = sum(entries for entries, _ in store.info().values())
        store.clear()
    for model in models:
        shutil.rmtree(model)
    with suppress(OSError):  # missing, or there is more in it
        (folder / "models").rmdir()
    print(f"{_shown(before - _bytes(folder))} freed (results: {count}, converted models: {len(models)})")


def _kept(args: argparse.Namespace) -> tuple[Path, ResultStore, list[Path]]:
    """The store's folder, its results, and the folders of converted models.

    These are finished (``wheel-version``) or not (``.wheel-version.1234.tmp``); others are somebody else's.
    """
    folder = store_folder(args.store)
    assert folder is not None  # only --no-store keeps nothing
    models = [
        path
        for path in sorted((folder / "models").glob("*"))
        if is_wheel(path.name.removeprefix(".").rpartition("-")[0]) or "-openvino-" in path.name
    ]
    return folder, ResultStore(folder), models


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _shown(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
