"""``mars score`` killed at random moments and started again: the same bytes, and how much work is done twice.

Each kill falls within what a start-up and a share of the run's work take, so that together they reach its end. A
chunk that a worker begins again was lost by a kill: each may lose what its workers were at, and no more.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import fresh_store, parser, progress, report
from benchmarks.streaming import different_rows, write_rows

# "mars" with a line in a log when a worker begins a chunk; child processes read this file, too.
DRIVER = """
import os, sys
from mars_score.cli import main
from mars_score.runs.worker import Worker

log = os.open(os.environ["KILLS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
work = Worker.work

def logged(self, chunk):
    os.write(log, f"{chunk.stage} {chunk.number}\\n".encode())
    return work(self, chunk)

Worker.work = logged
if __name__ == "__main__":
    sys.exit(main())
"""
GONE_SECONDS = 15.0  # by when a killed process's workers must have gone


class Command:
    """``mars score`` over a file, with an output of its own."""

    def __init__(self, folder: Path, file: Path, store: Path, options: list[str]) -> None:
        folder.mkdir()
        self.out, self._log, self._errors = folder / "scores.jsonl", folder / "log", folder / "errors"
        driver = folder / "driver.py"
        driver.write_text(DRIVER, encoding="utf-8")
        self._command = [sys.executable, str(driver), "score", str(file), "--out", str(self.out), *options]
        self._command += ["--store", str(store)]

    def begun(self) -> list[str]:
        """The chunks that workers began, as often as they did."""
        return self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []

    def run(self, kill_after: float | None = None) -> float:
        """Run it, or kill it after some seconds and wait for its workers to exit; the seconds it took.

        Raises:
            AssertionError: it failed, or workers are still running.
        """
        start = time.perf_counter()
        environment = {**os.environ, "KILLS_LOG": str(self._log)}
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(self._command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            workers = _descendants(process.pid)
            process.kill()
            process.wait()
            _wait_until_gone(workers)
        if process.returncode not in (0, -9):
            raise AssertionError(self._errors.read_text(encoding="utf-8"))
        return time.perf_counter() - start


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--rows", type=int, default=120, help="with a reference each")
    options.add_argument("--chunk-size", type=int, default=6)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--seed", type=int, default=0, help="of the moments")
    args = options.parse_args()
    mars = ["--preset", "mini", "--quiet", "--planner", "none", "--threads", "1"]
    mars += ["--chunk-size", str(args.chunk_size), "--workers", str(args.workers)]
    generator = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="mars-kills-") as temporary:
        folder = Path(temporary)
        file = folder / "rows.jsonl"
        write_rows(file, different_rows(args.rows))
        with fresh_store() as store:
            undisturbed = Command(folder / "undisturbed", file, store, mars)
            seconds = undisturbed.run()
            expected, chunks = undisturbed.out.read_bytes(), set(undisturbed.begun())
            start_up = Command(folder / "warm", file, store, mars).run()
        if [json.loads(line)["id"] for line in expected.splitlines()] != list(range(args.rows)):
            raise AssertionError("the undisturbed run lacks rows")
        progress(
            f"undisturbed: {seconds:.1f} s, {len(chunks)} chunks; again with the warm store: {start_up:.1f} s"
        )
        with fresh_store() as store:
            killed = Command(folder / "killed", file, store, mars)
            for number in range(args.kills):
                killed.run(generator.random() * (start_up + 2 * (seconds - start_up) / args.kills))
                if killed.out.exists() and killed.out.read_bytes() != expected:
                    raise AssertionError("an output that is not whole stands in its place")
                progress(f"kill {number + 1}: {len(set(killed.begun()))} of {len(chunks)} chunks begun")
            killed.run()
        begun = killed.begun()
        same = killed.out.read_bytes() == expected
    repeated = len(begun) - len(set(begun))
    figures = {
        "output_byte_identical": same,
        "rows": args.rows,
        "kills": args.kills,
        "chunks": len(chunks),
        "chunks_begun": len(begun),
        "chunks_are_those_of_the_undisturbed_run": set(begun) == chunks,
        "undisturbed_seconds": seconds,
        "start_up_seconds": start_up,
    }
    name = f"kills: chunks begun again per kill, {args.workers} workers"
    report(args, name, repeated / args.kills, float(args.workers), figures)
    if not same or set(begun) != chunks or repeated > args.kills * args.workers:
        sys.exit("the killed run differs")


def _descendants(pid: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields:
            parents[int(folder.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _stat(pid: int) -> list[str]:
    """State, parent and so on; nothing when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while any(_stat(pid)[:1] not in ([], ["Z"]) for pid in pids):
        if time.monotonic() > deadline:
            raise AssertionError(f"processes are still running: {pids}")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
