"""Show progress: bars on a terminal, lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

Progress = Callable[[str, int, int], None]
_LINE_SECONDS = 10.0  # between lines of progress
_LIBRARIES_QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}


def hide_library_output() -> None:
    """Hide progress bars and loading reports of libraries, here and in worker processes."""
    for name, value in _LIBRARIES_QUIET.items():
        os.environ.setdefault(name, value)


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress | None]:
    """Yield a callback that draws bars on a terminal or prints lines elsewhere, or None if ``quiet``."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _ProgressLines()
        return
    from rich import progress as bars
    from rich.console import Console

    speed = _Speed()
    tasks: dict[str, bars.TaskID] = {}
    columns = (
        *(bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn()),
        *(bars.TimeElapsedColumn(), bars.TextColumn("{task.fields[speed]}")),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as drawn:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = drawn.add_task(stage, total=None, speed="")
            drawn.update(tasks[stage], completed=done, total=total or None, speed=speed.of(stage, done, total))

        yield report


class _Speed:
    """The rate of each stage since its start, as work is reported in bursts, and the time left."""

    def __init__(self) -> None:
        self._starts: dict[str, tuple[int, float]] = {}  # by stage; an earlier process may have done a part

    def of(self, stage: str, done: int, total: int) -> str:
        """Return the rate and, after a tenth of the work, the time left. A stage that reports 0 starts again."""
        now = time.monotonic()
        first, started = self._starts.setdefault(stage, (done, now))
        if done <= first:
            self._starts[stage] = done, now
            return ""
        rate = (done - first) / max(now - started, 1e-9)
        if not total or 10 * (done - first) < total - first:
            return f"{rate:,.1f}/s"
        return f"{rate:,.1f}/s, {timedelta(seconds=round((total - done) / rate))} left"


class _ProgressLines:
    """Prints progress to standard error, at most every ``_LINE_SECONDS``."""

    def __init__(self) -> None:
        self._printed = time.monotonic()
        self._speed = _Speed()

    def __call__(self, stage: str, done: int, total: int) -> None:
        speed, now = self._speed.of(stage, done, total), time.monotonic()
        if now - self._printed < _LINE_SECONDS:
            return
        self._printed = now
        of_total = f" of {total:,}" if total else ""
        shown = f" ({speed})" if speed else ""
        print(f"mars: {stage}: {done:,}{of_total}{shown}", file=sys.stderr, flush=True)


class Reports:
    """Reports progress to a function or to bars.

    Args:
        progress: a function to call, True for bars within :meth:`bars`, or None or False for no reports.

    Raises:
        ValueError: it is none of these.
    """

    def __init__(self, progress: Progress | bool | None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise ValueError(f"progress must be True, False or a function, got {progress!r}")
        self._has_bars = progress is True
        self._report = None if isinstance(progress, bool) else progress

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report how much of a stage is done. A total of 0 means that it is unknown."""
        if self._report:
            self._report(stage, done, total)

    @contextmanager
    def bars(self) -> Iterator[None]:
        """Show progress bars within the block if ``progress`` is True."""
        before = self._report
        try:
            with progress_bars(quiet=False) if self._has_bars else nullcontext(before) as self._report:
                yield
        finally:
            self._report = before  # The callback of bars cannot be pickled.
