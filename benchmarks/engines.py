"""Ray against ``--workers`` on the same work: an empty store each, start-up taken out, the same bytes in the end.

What starting up takes is measured with a single row; both engines have two workers of one thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import fresh_store, parser, progress, report
from benchmarks.streaming import MARS, different_rows, write_rows

WORKERS = {"processes": ["--engine", "processes"], "ray": ["--engine", "ray"]}


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=200)
    options.add_argument("--chunk-size", type=int, default=16)
    args = options.parse_args()
    rows = different_rows(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        one, all_of_them = Path(folder) / "one.jsonl", Path(folder) / "all.jsonl"
        write_rows(one, rows[:1])
        write_rows(all_of_them, rows)
        seconds: dict[str, float] = {}
        figures: dict[str, Any] = {}
        outputs = []
        for engine, option in WORKERS.items():
            start_up, _ = _run(args, one, option)
            whole, output = _run(args, all_of_them, option)
            seconds[engine] = whole - start_up
            figures |= {f"start_up_seconds_{engine}": start_up, f"seconds_{engine}": whole}
            outputs.append(output)
            progress(f"{engine}: {whole:.1f} s, of it {start_up:.1f} s to start up")
    figures["same_bytes"] = outputs[0] == outputs[1]
    report(args, "Ray / processes, two workers", seconds["ray"] / seconds["processes"], 1.15, figures)


def _run(args: Any, file: Path, option: list[str]) -> tuple[float, bytes]:
    """Seconds and output of a run from an empty store."""
    with fresh_store() as store:
        out = store / "scores.jsonl"
        common = ["--workers", "2", "--threads", "1", "--chunk-size", str(args.chunk_size), "--quiet"]
        mars = [sys.executable, "-c", MARS, "score", str(file), "--out", str(out), "--preset", "mini"]
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        start = time.perf_counter()
        subprocess.run(
            [*mars, *common, *option, "--store", str(store)],
            check=True,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        return time.perf_counter() - start, out.read_bytes()


if __name__ == "__main__":
    main()
