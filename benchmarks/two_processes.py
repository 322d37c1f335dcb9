"""Two ``mars score`` at the same time on the same cores, against one alone; and the same with threads that spin.

All score rows of their own from an empty store, with the encoder and without a language model. Two processes with
twice the work cannot take less than one that uses all cores, twice over: 2 is the floor. The rows of both are also
scored by two workers, and by two actors of Ray where it is installed, against one process that uses all cores.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.common import in_turns, median_ratio, medians, parse, report, speed_parser
from benchmarks.streaming import MARS, different_rows, write_rows
from mars_score.data.reading import read_rows

OPTIONS = ["--preset", "mini", "--variant", "fast", "--no-store", "--quiet"]
SPINNING = {"OMP_WAIT_POLICY": "ACTIVE"}
RAY = """
import sys
import ray
from mars_score import MarsScorer

class Score:
    def __init__(self):
        self.scorer = MarsScorer("mini", variant="fast", store=False)

    def __call__(self, rows):
        return rows.assign(mars=self.scorer.score_table(rows).scores)

ray.init(num_cpus=3, include_dashboard=False)
rows = ray.data.read_json(sys.argv[1])
rows.map_batches(Score, batch_format="pandas", batch_size=64, concurrency=2).take_all()
"""


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=100, help="of each process")
    args = parse(options, rows=2000, repeats=5)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{seed}.jsonl" for seed in range(2)]
        for seed, file in enumerate(files):
            write_rows(file, different_rows(args.rows, seed))
        both = Path(folder) / "both.jsonl"
        write_rows(both, [row for file in files for row in read_rows(file).rows])
        runs = {
            "one": partial(_score, files[:1], {}),
            "two": partial(_score, files, {}),
            "one spinning": partial(_score, files[:1], SPINNING),
            "two spinning": partial(_score, files, SPINNING),
            "all rows in one": partial(_score, [both], {}),
            "two workers": partial(_score, [both], {}, "--workers=2"),
        }
        if importlib.util.find_spec("ray"):
            runs["two actors of Ray"] = partial(_run, [[RAY, str(both)]], {"OMP_NUM_THREADS": "1"})
        in_turns({"warm-up": runs["one"]}, 1)
        seconds = in_turns(runs, args.repeats)
    figures = {"rows": args.rows, **medians(seconds)}
    ratio = median_ratio(seconds["two"], seconds["one"])
    report(args, "two mars score at once / one", ratio, 2.5, figures)
    spinning = median_ratio(seconds["two spinning"], seconds["one spinning"])
    report(args, "the same, threads that spin", spinning, None, figures)
    for name in ("two workers", "two actors of Ray"):
        if name in seconds:
            ratio = median_ratio(seconds[name], seconds["all rows in one"])
            report(args, f"{name} / one process with all cores", ratio, None, figures)


def _score(files: list[Path], environment: Mapping[str, str], *options: str) -> None:
    _run([[MARS, "score", str(file), *OPTIONS, *options] for file in files], environment)


def _run(commands: list[list[str]], environment: Mapping[str, str]) -> None:
    """Run Python code with arguments, each in a process, at the same time."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", *command],
            stdout=subprocess.DEVNULL,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("OMP_")},
                **environment,
            },
        )
        for command in commands
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError("a process failed")


if __name__ == "__main__":
    main()
