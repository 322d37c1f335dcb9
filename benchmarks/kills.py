"""``mars score`` killed (SIGKILL) at random moments and given again each time, against a run that nobody disturbs.

Both begin with an empty store. Kills fall into the start-up, the language model's work, the reading and the end,
also when the output is in its place. Shown are whether the output is the same byte for byte, whether a chunk was
done twice, and how often the language model's work on a chunk was begun anew. Linux only.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import progress, report
from benchmarks.streaming import different_rows, run_parser, run_store, write_rows
from mars_score.runs.worker import AUGMENT

# `mars` with a log: a process a line, what it begins and ends; also in worker processes, which import this file.
DRIVER = """
import os, sys, time
from mars_score.augmentation import Augmenter
from mars_score.cli import main
from mars_score.runs.worker import Worker

log = os.open(os.environ["KILLS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
work, infill = Worker.work, Augmenter._compute_infills
current = None

def note(event):
    line = f"{event} {current.stage} {current.number} {time.monotonic()}"
    os.write(log, (line + chr(10)).encode())

def logged_work(self, chunk):
    global current
    current = chunk
    note("begin")
    results = work(self, chunk)
    note("end")
    return results

def logged_infill(self, *arguments):
    self._infiller.get()  # loading the model is start-up
    note("model")
    return infill(self, *arguments)

Worker.work, Augmenter._compute_infills = logged_work, logged_infill
if __name__ == "__main__":
    sys.exit(main())
"""
KIND_SHARES = {"start-up": 0.1, "reading": 0.05, "end": 0.2}  # of the kills; the others fall into the model's work
GONE_SECONDS = 15.0  # by when a killed process's workers must have gone
Chunk = tuple[str, int]  # stage and number


class Event(NamedTuple):
    """A line of the driver's log: ``kind`` is begin, model or end."""

    kind: str
    chunk: Chunk
    when: float


@dataclass
class Undisturbed:
    """The run to compare with."""

    output: bytes
    events: list[Event]
    seconds: float
    warm_seconds: float  # given again, all from the store

    @property
    def model_chunks(self) -> set[Chunk]:
        """Those that the language model works on."""
        return {event.chunk for event in self.events if event.kind == "model"}

    @property
    def chunk_seconds(self) -> float:
        """The model's usual time for one, start-up left out."""
        return statistics.median(self._model_seconds)

    @property
    def _model_seconds(self) -> list[float]:
        begun = {event.chunk: event.when for event in self.events if event.kind == "model"}
        return [
            event.when - begun[event.chunk]
            for event in self.events
            if event.kind == "end" and event.chunk in begun
        ]

    @property
    def reading(self) -> list[Event]:
        """What happened after the references were augmented, in order."""
        return sorted((event for event in self.events if event.chunk[0] != AUGMENT), key=lambda event: event.when)


@dataclass
class Command:
    """``mars score`` over a file with a store and an output of its own."""

    folder: Path
    file: Path
    store: Path
    options: list[str]
    events: list[Event] = field(default_factory=list)  # of all processes that have ended

    @property
    def out(self) -> Path:
        """Its output."""
        return self.folder / "scores.jsonl"

    def start(self) -> subprocess.Popen[bytes]:
        """Begin it, or go on with it."""
        driver = self.folder / "driver.py"
        driver.write_text(DRIVER, encoding="utf-8")
        self._log.write_bytes(b"")
        command = [sys.executable, str(driver), "score", str(self.file), "--out", str(self.out), *self.options]
        environment = {**os.environ, "KILLS_LOG": str(self._log)}
        return subprocess.Popen(
            [*command, "--store", str(self.store)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "stderr").open("ab"),
        )

    def said(self) -> list[Event]:
        """Events of the process that is going on."""
        lines = [line.split() for line in self._log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [Event(kind, (stage, int(number)), float(when)) for kind, stage, number, when in lines]

    def done(self) -> set[Chunk]:
        """The chunks that are recorded as done; read in a copy, so that recovery is left to the run."""
        with tempfile.TemporaryDirectory() as copy:
            for file in self.out.with_name(self.out.name + ".run").glob("run.sqlite3*"):
                shutil.copy(file, copy)
            records = Path(copy) / "run.sqlite3"
            if not records.exists():
                return set()
            db = sqlite3.connect(records)
            try:
                return set(db.execute("SELECT stage, number FROM done"))
            except sqlite3.OperationalError as error:  # killed before its tables were made
                if "no such table" not in str(error):
                    raise
                return set()
            finally:
                db.close()

    @property
    def _log(self) -> Path:
        return self.folder / "log"


def main() -> None:
    """Run the benchmark."""
    options = run_parser(__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--rows", type=int, default=120, help="with a reference each")
    options.add_argument("--chunk-size", type=int, default=6)
    options.add_argument("--workers", type=int, default=1)
    args = options.parse_args()
    mars = ["--preset", "mini", "--quiet", "--planner", "none", "--threads", "1"]
    mars += ["--chunk-size", str(args.chunk_size), "--workers", str(args.workers)]
    with tempfile.TemporaryDirectory(prefix="mars-kills-") as temporary:
        file = Path(temporary) / "rows.jsonl"
        write_rows(file, different_rows(args, args.rows))
        folders = [Path(temporary) / name for name in ("undisturbed", "killed")]
        for folder in folders:
            folder.mkdir()
        with run_store(args) as store:
            undisturbed = _undisturbed(Command(folders[0], file, store, mars))
        lines = undisturbed.output.splitlines()
        if [json.loads(line)["id"] for line in lines] != list(range(args.rows)):
            raise AssertionError("the undisturbed run lacks rows")
        with run_store(args) as store:
            command = Command(folders[1], file, store, mars)
            figures = _killed(command, undisturbed, args.kills, random.Random(args.seed))
        same = command.out.read_bytes() == undisturbed.output
    model_chunks = undisturbed.model_chunks
    begun = [event.chunk for event in command.events if event.kind == "model"]
    repeated = len(begun) - len(set(begun))
    report(
        args,
        f"kills: chunks of the language model's work repeated, a kill, of {args.workers} workers",
        repeated / args.kills,
        float(args.workers),
        {
            "output_byte_identical": same,
            "rows": len(lines),
            "kills": args.kills,
            "model_chunks": len(model_chunks),
            "model_chunk_starts": len(begun),
            "model_chunks_are_those_of_the_undisturbed_run": set(begun) == model_chunks,
            "model_chunks_repeated_after_their_end": _after_end(command.events),
            "undisturbed_seconds": undisturbed.seconds,
            "seconds_a_model_chunk": undisturbed.chunk_seconds,
            **figures,
        },
    )
    if not same or set(begun) != model_chunks or repeated > args.kills * args.workers:
        sys.exit("the killed run differs")


def _undisturbed(command: Command) -> Undisturbed:
    seconds = []
    outputs, events = [], []
    for _ in range(2):
        start = time.perf_counter()
        process = command.start()
        if process.wait():
            raise AssertionError((command.folder / "stderr").read_text())
        seconds.append(time.perf_counter() - start)
        outputs.append(command.out.read_bytes())
        events.append(command.said())
    if outputs[0] != outputs[1]:
        raise AssertionError("a warm store changes the output")
    found = Undisturbed(outputs[0], events[0], *seconds)
    progress(
        f"undisturbed: {seconds[0]:.1f} s, {len(found.model_chunks)} chunks of {found.chunk_seconds:.2f} s; "
        f"again with the warm store: {seconds[1]:.1f} s"
    )
    return found


def _killed(command: Command, undisturbed: Undisturbed, kills: int, generator: random.Random) -> dict[str, object]:
    """Start, kill and start again until all kills were made and a run comes to its end."""
    kinds = _kinds(kills, generator)
    made: list[str] = []
    done_twice, lost, most_at_once, slowest = 0, 0, 0, 0.0
    begun_anew = 0  # runs that followed one that had come to its end
    while True:
        before = command.done()
        kind = kinds[len(made)] if len(made) < kills else ""
        process = command.start()
        if kind:
            _wait(command, process, kind, undisturbed, generator, complete=_all_done(before, undisturbed))
        helpers = _descendants(process.pid) if kind else []
        if kind:
            process.kill()
        code = process.wait()
        if code not in (0, -9):
            raise AssertionError((command.folder / "stderr").read_text())
        slowest = max(slowest, _seconds_until_gone(helpers))
        said = command.said()
        command.events += said
        done_twice += len({event.chunk for event in said if event.kind == "begin"} & before)
        in_place = command.out.exists()
        if in_place and command.out.read_bytes() != undisturbed.output:
            raise AssertionError("an output that is not whole stands in its place")
        after = command.done()
        lost += 0 if in_place else len(before - after)
        if code == -9:
            made.append(kind)
            ended = {event.chunk for event in said if event.kind == "end"}
            unfinished = {event.chunk for event in said if event.kind == "model"} - ended
            most_at_once = max(most_at_once, len(unfinished))
            progress(
                f"kill {len(made)} ({kind}): {len(after)} chunks recorded, before {len(before)}; "
                f"in the model's work: {sorted(unfinished)}; output in place: {in_place}"
            )
        elif len(made) == kills:
            break
        else:
            begun_anew += 1
    return {
        **{f"kills_in_{kind}": made.count(kind) for kind in dict.fromkeys(made)},
        "recorded_chunks_worked_on_again": done_twice,
        "recorded_chunks_lost": lost,
        "most_model_chunks_lost_by_a_kill": most_at_once,
        "runs_that_ended_before_their_kill": begun_anew,
        "seconds_until_workers_are_gone": slowest,
    }


def _kinds(kills: int, generator: random.Random) -> list[str]:
    """Where each kill is to fall: the last ones at the end."""
    counts = {kind: round(kills * share) for kind, share in KIND_SHARES.items()}
    first = ["start-up"] * counts["start-up"] + ["model"] * (kills - sum(counts.values()))
    generator.shuffle(first)
    return first + ["reading"] * counts["reading"] + ["end"] * counts["end"]


def _all_done(done: set[Chunk], undisturbed: Undisturbed) -> bool:
    return done >= {event.chunk for event in undisturbed.events}


def _wait(
    command: Command,
    process: subprocess.Popen[bytes],
    kind: str,
    undisturbed: Undisturbed,
    generator: random.Random,
    *,
    complete: bool,
) -> None:
    """Until the moment of a kill, or the end of the process."""
    delay = generator.random()
    reading = undisturbed.reading
    if kind == "start-up" or complete or command.out.exists():
        seconds = delay * undisturbed.warm_seconds
        wanted: set[tuple[str, Chunk]] = set()
    elif kind == "model":
        seconds = (0.5 + 1.5 * delay) * undisturbed.chunk_seconds
        wanted = {("model", chunk) for chunk in undisturbed.model_chunks} | {("begin", reading[0].chunk)}
    elif kind == "reading":
        seconds = delay * (reading[-1].when - reading[0].when)
        wanted = {("begin", event.chunk) for event in reading}
    else:
        seconds = delay * 0.1  # the end is short
        wanted = {("end", reading[-1].chunk)}
    while wanted and process.poll() is None and not wanted & {event[:2] for event in command.said()}:
        time.sleep(0.001)
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.001)


def _after_end(events: list[Event]) -> int:
    """How often the model began with a chunk whose work had ended before."""
    ended: set[Chunk] = set()
    count = 0
    for event in events:
        count += event.kind == "model" and event.chunk in ended
        if event.kind == "end":
            ended.add(event.chunk)
    return count


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


def _seconds_until_gone(pids: list[int]) -> float:
    start = time.monotonic()
    while any(_stat(pid)[:1] not in ([], ["Z"]) for pid in pids):
        if time.monotonic() - start > GONE_SECONDS:
            raise AssertionError(f"processes stay behind: {pids}")
        time.sleep(0.01)
    return time.monotonic() - start


if __name__ == "__main__":
    main()
