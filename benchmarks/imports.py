"""Measure the start of ``import mars_score``, ``mars --help`` and ``mars score`` of ten rows in new processes.

The rows are scored from an empty store, with the models on disk, and again when all is stored. They are compared
with the import of torch and transformers: the packages alone, and with the modules that models need.
"""

import resource
import time
from functools import partial
from pathlib import Path

from benchmarks.common import (
    MARS,
    Clock,
    Ratio,
    fresh_store,
    parse,
    report_ratios,
    run_python,
    seconds_of,
    speed_parser,
)
from benchmarks.texts import invented, rows_of, write_rows
from mars_score.cache import FILE

CODES = {
    "bare": "pass",
    "import": "import mars_score",
    "help": "from mars_score.cli import main; main(['--help'])",
    "libraries": "import torch, transformers",
    "modules": "import torch, transformers.modeling_utils, sentence_transformers",
}


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument(
        "--processor-time", action="store_true", help="instead of time, on a machine with other load"
    )
    args = parse(options, repeats=15)
    clock = _processor_time if args.processor_time else time.perf_counter
    with fresh_store() as store:
        file = write_rows(store / "rows.jsonl", rows_of(invented(10, 3)))
        runs = {name: partial(_python, clock, code) for name, code in CODES.items()}
        ratios = [
            Ratio("import mars_score / bare python", "import", "bare"),
            Ratio("mars --help / bare python", "help", "bare"),
        ]
        for variant in ("fast", "plus"):
            first, kept = f"{variant} of 10 rows", f"{variant} of 10 stored rows"
            runs[first] = partial(_score, clock, file, store, variant, anew=True)
            runs[kept] = partial(_score, clock, file, store, variant)
            ratios += [
                Ratio(f"{first} / importing torch and transformers", first, "libraries"),
                Ratio("the same / importing the modules that models need", first, "modules"),
                Ratio(f"{kept} / importing torch and transformers", kept, "libraries", 2.0),
            ]
        report_ratios(args, runs, ratios)


def _score(clock: Clock, file: Path, store: Path, variant: str, *, anew: bool = False) -> float:
    if anew:
        (store / FILE).unlink(missing_ok=True)
    options = ["--preset", "mini", "--variant", variant, "--quiet", "--store", str(store)]
    return _python(clock, MARS, "score", str(file), *options)


def _python(clock: Clock, code: str, *arguments: str) -> float:
    return seconds_of(lambda: run_python(code, *arguments), clock)


def _processor_time() -> float:
    """Return the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
