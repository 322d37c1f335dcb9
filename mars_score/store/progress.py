"""Progress on standard error: bars on a terminal, else a line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from mars_score.store.runtime import Progress

_LINE_SECONDS = 10.0  # between lines of progress where there is no terminal
_LIBRARIES_QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress | None]:
    """A progress callback: bars on a terminal, else a line on standard error every ten seconds.

    The callback takes a stage, how much of it is done, and how much there is (0: not known). If ``quiet`` it is
    None, and the libraries, here and in worker processes, show no progress either.
    """
    if quiet:
        os.environ.update({name: value for name, value in _LIBRARIES_QUIET.items() if name not in os.environ})
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    tasks: dict[str, Any] = {}
    paces: dict[str, _Pace] = {}
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = shown.add_task(stage, total=total or None, rate="")
                paces[stage] = _Pace(done)
            rate = paces[stage].rate(done)
            shown.update(tasks[stage], completed=done, total=total or None, rate=f"{rate:,.1f}/s" if rate else "")

        yield report


class _Pace:
    """The rate of a stage since its first report, without what an earlier process has done of it."""

    def __init__(self, done: int) -> None:
        self._first = done
        self._began = time.monotonic()

    def rate(self, done: int) -> float:
        """Per second."""
        return (done - self._first) / max(time.monotonic() - self._began, 1e-9)


class _Lines:
    """Progress as lines, for logs; none for what takes less than ``_LINE_SECONDS``."""

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}
        self._told = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        pace = self._paces.setdefault(stage, _Pace(done))
        now = time.monotonic()
        if now - self._told < _LINE_SECONDS:
            return
        self._told = now
        rate = pace.rate(done)
        of_total = f" of {total:,}" if total else ""
        left = f", {timedelta(seconds=round((total - done) / rate))} left" if total and rate > 0 else ""
        speed = f" ({rate:,.1f}/s{left})" if rate > 0 else ""
        print(f"mars: {stage}: {done:,}{of_total}{speed}", file=sys.stderr, flush=True)
