"""What the benchmarks share: options, scorers, printing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mars_score.cli.tables import show_table
from mars_score.report.contents import Table
from mars_score.store.location import store_folder


def parser(description: str | None) -> argparse.ArgumentParser:
    """Options that all benchmarks take."""
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    made.add_argument("--json", action="store_true", help="print one JSON object per line")
    return made


def speed_parser(description: str | None, repeats: int | None = None) -> argparse.ArgumentParser:
    """Options that all benchmarks of speed take; see :func:`parse`. No ``repeats``: nothing is repeated."""
    made = parser(description)
    made.add_argument("--full", action="store_true", help="the sizes of the targets, which may take long")
    if repeats:
        made.add_argument(
            "--repeats", type=int, default=repeats, help="runs in turns, of which the median is reported"
        )
    return made


def parse(options: argparse.ArgumentParser, **full: Any) -> argparse.Namespace:
    """Parse the command line; with ``--full`` the values of ``full`` are the defaults."""
    if "--full" in sys.argv[1:]:
        options.set_defaults(**full)
    return options.parse_args()


def files_parser(description: str | None) -> argparse.ArgumentParser:
    """Options of benchmarks with :func:`sampling.sample_rows`."""
    options = parser(description)
    keys = "keys context, references, candidate, group"
    options.add_argument("files", nargs="+", metavar="FILE.jsonl", help=keys)
    options.add_argument("--max-context-words", type=int, default=150, help="leave out rows with longer contexts")
    options.add_argument(
        "--min-reference-words", type=int, default=5, help="leave out rows with shorter references"
    )
    options.add_argument("--seed", type=int, default=0, help="of the sample")
    return options


@cache
def language_model() -> tuple[Any, Any]:
    """Model and tokenizer of preset mini; converted once in the store."""
    from mars_score.models.loading import load_language_model
    from mars_score.settings import resolve_settings
    from mars_score.store.results import ResultStore
    from mars_score.store.runtime import Runtime

    models = resolve_settings("mini").models
    runtime = Runtime(store=ResultStore(store_folder(None)))
    return load_language_model(models.language_model, "causal", models.dtype, runtime)


@contextmanager
def fresh_store() -> Iterator[Path]:
    """An empty store in a temporary folder, with the converted models alone."""
    language_model()
    usual = store_folder(None)
    assert usual is not None
    with tempfile.TemporaryDirectory(prefix="mars-benchmark-") as folder:
        (Path(folder) / "models").symlink_to(usual.resolve() / "models", target_is_directory=True)
        yield Path(folder)


def in_turns(runs: Mapping[str, Callable[[], float | None]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each run, all of them once and then all again: changes of the machine's speed affect all alike.

    A run that times only a part of itself returns the seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            own = run()
            seconds[name].append(time.perf_counter() - start if own is None else own)
            progress(f"run {repeat + 1} of {repeats}, {name}: {seconds[name][-1]:.3g} s")
    return seconds


def seconds_of(work: Callable[[], object]) -> float:
    """How long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median of the ratios of what was measured side by side."""
    return statistics.median(one / other for one, other in zip(first, second, strict=True))


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Figures for :func:`report`: the median seconds of each run of :func:`in_turns`."""
    return {f"seconds_{name.replace(' ', '_')}": statistics.median(values) for name, values in seconds.items()}


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(text, file=sys.stderr, flush=True)


def report(
    args: argparse.Namespace, name: str, ratio: float | None, target: float | None, figures: Mapping[str, Any]
) -> None:
    """Print a result: one JSON object on one line, or a table."""
    settings = {key: value for key, value in vars(args).items() if key != "json"}
    entry = {"name": name, "ratio": ratio, "target": target, "figures": figures, "settings": settings}
    if args.json:
        print(json.dumps({**entry, "machine": _machine()}, ensure_ascii=False), flush=True)
        return
    first = {"ratio": ratio, **({"target": target} if target is not None else {})}
    values = {**first, **figures, **_machine()}
    rows = tuple((key.replace("_", " "), _readable(value)) for key, value in values.items())
    show_table(Table(name, "", ("figure", "value"), rows))


def _readable(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return (
        " .. ".join(map(_readable, value))
        if isinstance(value, Iterable) and not isinstance(value, str)
        else str(value)
    )


def _machine() -> dict[str, Any]:
    import torch

    device = (
        torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    )
    return {
        "device": device,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
