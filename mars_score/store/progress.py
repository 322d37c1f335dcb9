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

    If ``quiet`` it is None, and the libraries, here and in worker processes, show no progress either.
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
    rates = _Rates()
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as drawn:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = drawn.add_task(stage, total=total or None, rate="")
            rate = rates.rate(stage, done)
            drawn.update(tasks[stage], completed=done, total=total or None, rate=f"{rate:,.1f}/s" if rate else "")

        yield report


class _Rates:
    """The rate of each stage since its first report, without what an earlier process has done of it."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[int, float]] = {}

    def rate(self, stage: str, done: int) -> float:
        """Per second."""
        first, began = self._begun.setdefault(stage, (done, time.monotonic()))
        return (done - first) / max(time.monotonic() - began, 1e-9)


class _Lines(_Rates):
    """Progress as lines, for logs; none for what takes less than ``_LINE_SECONDS``."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        rate, now = self.rate(stage, done), time.monotonic()
        if now - self._printed < _LINE_SECONDS:
            return
        self._printed = now
        of_total = f" of {total:,}" if total else ""
        left = f", {timedelta(seconds=round((total - done) / rate))} left" if total and rate > 0 else ""
        speed = f" ({rate:,.1f}/s{left})" if rate > 0 else ""
        print(f"mars: {stage}: {done:,}{of_total}{speed}", file=sys.stderr, flush=True)
