"""Measure time per reference and peak memory with ten times as many references.

Each figure is from a new process that scores invented rows (see texts.py) with short contexts, from an empty
store. Time excludes the loading of models and a warm-up. Memory is the peak of the process.
"""

import json
import resource
import subprocess
import sys
from functools import partial

from benchmarks.common import fresh_store, in_turns, median_ratio, parse, report, seconds_of, speed_parser
from benchmarks.texts import columns, invented
from mars_score import MarsScorer

TIMES = 10  # as many references
WARM_UP = 16  # references scored before, to load models and allocate memory


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--references", type=int, default=120, help="for the time, against a tenth of them")
    options.add_argument("--memory-references", type=int, default=120, help="for the memory, likewise")
    options.add_argument(
        "--batch-size", type=int, default=16, help="0: as the engine chooses; else few references fill no batch"
    )
    options.add_argument(
        "--child", type=int, help="score this many and print the numbers (used by the script itself)"
    )
    args = parse(options, references=1000, memory_references=2000, batch_size=0)
    if args.child:
        print(json.dumps(_measure(args.child, args.batch_size)))
        return
    measured: dict[int, list[dict[str, float]]] = {}

    def child(count: int) -> float:
        command = [sys.executable, "-m", "benchmarks.growth", "--child", str(count)]
        command += ["--batch-size", str(args.batch_size)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        measured.setdefault(count, []).append(json.loads(output))
        return measured[count][-1]["seconds"]

    sizes = {
        "milliseconds per reference": (args.references, 1.1),
        "peak mebibytes": (args.memory_references, 1.25),
    }
    counts = sorted({size // part for size, _ in sizes.values() for part in (TIMES, 1)})
    in_turns({f"{count} references": partial(child, count) for count in counts}, args.repeats)
    for name, (size, target) in sizes.items():
        values = {count: [one[name] for one in measured[count]] for count in (size // TIMES, size)}
        few, many = values.values()
        figures = {f"at_{count}_references": found for count, found in values.items()}
        report(args, f"growth: {name} at {size} / at {size // TIMES}", median_ratio(many, few), target, figures)


def _measure(count: int, batch_size: int) -> dict[str, float]:
    """Score ``count`` references in this process."""
    with fresh_store() as store:
        scorer = MarsScorer("mini", variant="paper", store=store, planner="none", batch_size=batch_size or None)
        scorer.score(*columns(invented(WARM_UP, seed=1)))
        seconds = seconds_of(lambda: scorer.score(*columns(invented(count))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kibibytes on Linux, bytes on macOS
    mebibytes = peak / (2**20 if sys.platform == "darwin" else 2**10)
    return {"seconds": seconds, "milliseconds per reference": 1000 * seconds / count, "peak mebibytes": mebibytes}


if __name__ == "__main__":
    main()
