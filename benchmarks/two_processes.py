"""Two ``mars score`` at the same time on the same cores, against one alone; and the same with threads that spin.

All score rows of their own from an empty store, with the encoder and without a language model. Two processes with
twice the work cannot take less than one that uses all cores, twice over: 2 is the floor.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.common import in_turns, median_ratio, medians, parse, report, speed_parser
from benchmarks.streaming import MARS, different_rows, write_rows

OPTIONS = ["--preset", "mini", "--variant", "fast", "--no-store", "--quiet"]
SPINNING = {"OMP_WAIT_POLICY": "ACTIVE"}


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=100, help="of each process")
    args = parse(options, rows=2000, repeats=5)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{seed}.jsonl" for seed in range(2)]
        for seed, file in enumerate(files):
            write_rows(file, different_rows(args.rows, seed))
        runs = {
            "one": partial(_score, files[:1], {}),
            "two": partial(_score, files, {}),
            "one spinning": partial(_score, files[:1], SPINNING),
            "two spinning": partial(_score, files, SPINNING),
        }
        in_turns({"warm-up": runs["one"]}, 1)
        seconds = in_turns(runs, args.repeats)
    figures = {"rows": args.rows, **medians(seconds)}
    ratio = median_ratio(seconds["two"], seconds["one"])
    report(args, "two mars score at once / one", ratio, 2.5, figures)
    spinning = median_ratio(seconds["two spinning"], seconds["one spinning"])
    report(args, "the same, threads that spin", spinning, None, figures)


def _score(files: list[Path], environment: Mapping[str, str]) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MARS, "score", str(file), *OPTIONS],
            stdout=subprocess.DEVNULL,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("OMP_")},
                **environment,
            },
        )
        for file in files
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError("a process failed")


if __name__ == "__main__":
    main()
