"""Compare peak memory and rows per second of ``mars score`` on very many rows with few rows, from a warm store.

Invented rows (see texts.py) are repeated, so that the cost of a row without the models is measured. Each number of
rows has a new process. Rows per second exclude the start-up, which is measured with each distinct row once.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from benchmarks.common import MARS, fresh_store, median_ratio, parser, progress, report
from benchmarks.texts import invented, rows_of, write_rows
from mars_score.settings import DEFAULT_VARIANT

DISTINCT = 200  # rows
# A small process in between, because the peak memory of a process begins with that of its parent.
MEASURED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(json.dumps({"seconds": seconds, "peak mebibytes": peak}))
"""


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--few", type=int, default=10_000, help="rows to compare with")
    options.add_argument("--repeats", type=int, default=1, help="runs in turns, of which the median is reported")
    options.add_argument("--variant", default=DEFAULT_VARIANT, help=f"default: {DEFAULT_VARIANT}")
    options.add_argument("--sentences", type=int, default=1, help="of a context, of 11 words (default: 1)")
    args = options.parse_args()
    rows = rows_of(invented(DISTINCT, args.sentences))
    measure = partial(_measure, variant=args.variant)
    with fresh_store() as store:
        once = _file(store, rows, len(rows))
        progress(f"warming the store with {len(rows)} rows")
        measure(store, once)
        start_up = [measure(store, once)["seconds"] for _ in range(max(3, args.repeats))]
        measured: dict[int, list[dict[str, float]]] = {args.few: [], args.rows: []}
        for _ in range(args.repeats):
            for count, runs in measured.items():
                file = _file(store, rows, count)
                runs.append(measure(store, file))
                runs[-1]["rows per second"] = (count - len(rows)) / (runs[-1]["seconds"] - min(start_up))
                progress(f"{count} rows: {json.dumps(runs[-1])}")
                file.unlink()
    figures: dict[str, object] = {"start_up_seconds": start_up}
    for count, runs in measured.items():
        figures[f"seconds_at_{count}_rows"] = [run["seconds"] for run in runs]
    for name, target in (("peak mebibytes", 1.2), ("rows per second", None)):
        values = {count: [run[name] for run in runs] for count, runs in measured.items()}
        title = f"streaming: {name} at {args.rows} rows / at {args.few}"
        by_count = {f"at_{count}_rows": found for count, found in values.items()}
        report(args, title, median_ratio(values[args.rows], values[args.few]), target, {**by_count, **figures})


def _file(store: Path, rows: Sequence[dict[str, str]], count: int) -> Path:
    """Write a file of ``count`` numbered rows, which repeat ``rows``."""
    repeated = enumerate(islice(cycle(rows), count))
    return write_rows(store / f"{count}.jsonl", ({"id": number, **row} for number, row in repeated))


def _measure(store: Path, file: Path, variant: str) -> dict[str, float]:
    """Score a file in a new process, check that all rows were scored, and remove the output."""
    out = file.with_suffix(".scores.jsonl")
    mars = [sys.executable, "-c", MARS, "score", str(file), "--out", str(out)]
    options = ["--preset", "mini", "--variant", variant, "--store", str(store)]
    command = [sys.executable, "-c", MEASURED, *mars, *options]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    with file.open("rb") as rows, out.open("rb") as scored:
        for row, with_score in zip(rows, scored, strict=True):
            if not with_score.startswith(row.rstrip(b"}\n")):
                raise AssertionError(f"{with_score!r} is not the score of {row!r}")
    out.unlink()
    return measured


if __name__ == "__main__":
    main()
