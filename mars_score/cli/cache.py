"""``mars cache``: what is kept between runs, shown or removed."""

import argparse
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from mars_score.cli.running import print_line, print_notices, scoring
from mars_score.models.wheels import is_wheel
from mars_score.store.results import ResultStore, store_folder


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
    folder, kept = _store(args)
    with scoring() as notices:
        results = kept.info()
    print_notices(notices)
    models = {path.name: _bytes(path) for path in _models(folder)}
    if args.json:
        kinds = {kind: {"entries": entries, "bytes": size} for kind, (entries, size) in results.items()}
        print(json.dumps({"folder": str(folder), "limit": kept.limit, "results": kinds, "models": models}))
        return
    rows = [(kind, str(entries), _shown(size)) for kind, (entries, size) in results.items()]
    rows += [(f"model {name}", "", _shown(size)) for name, size in models.items()]
    empty = not models and not any(entries for entries, _ in results.values())
    print_line(f"store {folder}" + (" (empty)" if empty else ""))
    print_line(f"limit {_shown(kept.limit)} of results (MARS_STORE_LIMIT)")
    width = max(len(name) for name, _, _ in rows)
    for name, entries, size in rows:
        print_line(f"{name:<{width}}  {entries:>9}  {size:>9}")


def run_clear(args: argparse.Namespace) -> None:
    """Remove results and models, also unfinished ones; see :func:`mars_score.cli.main` for errors."""
    folder, kept = _store(args)
    files = list(folder.glob("results.sqlite3*"))
    models = _models(folder)
    before = sum(map(_bytes, [*files, *models]))
    with scoring():  # a damaged file counts as empty
        count = sum(entries for entries, _ in kept.info().values())
        kept.clear()
    for model in models:
        shutil.rmtree(model)
    with suppress(OSError):  # missing, or there is more in it
        (folder / "models").rmdir()
    if not files and not models:
        print_line(f"store {folder} is empty")
        return
    freed = before - sum(_bytes(path) for path in files if path.exists())
    print(f"{_shown(max(freed, 0))} freed (results: {count}, converted models: {len(models)})")


def _store(args: argparse.Namespace) -> tuple[Path, ResultStore]:
    folder = store_folder(args.store)
    assert folder is not None  # only --no-store keeps nothing
    return folder, ResultStore(folder)


def _models(folder: Path) -> list[Path]:
    """The folders of converted models, finished (``wheel-version``) or not (``.wheel-version.1234.tmp``)."""
    paths = (folder / "models").glob("*")
    return sorted(
        path
        for path in paths
        if is_wheel(path.name.removeprefix(".").rpartition("-")[0]) or "-openvino-" in path.name
    )


def _bytes(path: Path) -> int:
    return sum(one.stat().st_size for one in (path, *path.rglob("*")) if one.is_file())


def _shown(size: float) -> str:
    """``size`` bytes for people."""
    if size < 1024:
        return f"{size} B"
    for unit in ("KiB", "MiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:,.1f} GiB"
