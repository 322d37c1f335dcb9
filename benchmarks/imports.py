"""Start: ``import mars_score``, ``mars --help`` and ``mars score`` of ten rows, each in a new process.

The rows are scored from an empty store, with the models on disk, and again when all is stored. Beside them torch
and transformers are imported: by their names alone, and with the modules that models need.
"""

import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.common import Clock, Ratio, fresh_store, parse, report_ratios, seconds_of, speed_parser
from benchmarks.texts import invented
from mars_score.cache import FILE

CODES = {
    "bare": "pass",
    "import": "import mars_score",
    "help": "from mars_score.cli import main; main(['--help'])",
    "libraries": "import torch, transformers",
    "modules": "import torch, transformers.modeling_utils, sentence_transformers",
}
SCORE = "import sys; from mars_score.cli import main; sys.exit(main())"


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument(
        "--processor-time", action="store_true", help="instead of time, on a machine with other load"
    )
    args = parse(options, repeats=15)
    clock = _processor_time if args.processor_time else time.perf_counter
    with fresh_store() as store:
        file = store / "rows.jsonl"
        rows = (
            {"prediction": text.candidate, "reference": text.reference, "context": text.context}
            for text in invented(10, 3)
        )
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
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
    return _python(clock, SCORE, "score", str(file), *options)


def _python(clock: Clock, code: str, *arguments: str) -> float:
    command = [sys.executable, "-c", code, *arguments]
    return seconds_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), clock)


def _processor_time() -> float:
    """Return the seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
