"""Compare two ``mars score`` at the same time on the same cores with one alone, also with threads that spin.

Each scores its own rows without a store, with the encoder and without a language model. Two processes have twice
the work of one that uses all cores, so the ratio is at least 2. All rows are also scored by two workers, and by
two actors of Ray if it is installed, and compared with one process that uses all cores.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from benchmarks.common import MARS, in_turns, median_ratio, medians, parse, report, speed_parser
from benchmarks.texts import invented, rows_of, write_rows

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
        parts = [rows_of(invented(args.rows, seed=seed)) for seed in range(2)]
        files = [write_rows(Path(folder) / f"{seed}.jsonl", rows) for seed, rows in enumerate(parts)]
        both = write_rows(Path(folder) / "both.jsonl", chain(*parts))
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
    """Run Python code with arguments, each in its own process, at the same time."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | {
        **environment
    }
    processes = [
        subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.DEVNULL, env=variables)
        for command in commands
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError("a process failed")


if __name__ == "__main__":
    main()
