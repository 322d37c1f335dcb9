"""Progress on standard error: bars on a terminal, else lines for logs."""

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

    columns = (*bars.Progress.get_default_columns(), bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
    tasks: dict[str, Any] = {}
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as drawn:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = drawn.add_task(stage, total=None)
            drawn.update(tasks[stage], completed=done, total=total or None)

        yield report


class _Lines:
    """Progress as lines, for logs; none for what takes less than ``_LINE_SECONDS``."""

    def __init__(self) -> None:
        self._printed = time.monotonic()
        self._begun: dict[str, tuple[int, float]] = {}  # of each stage: an earlier process may have done a part

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        first, began = self._begun.setdefault(stage, (done, now))
        if now - self._printed < _LINE_SECONDS:
            return
        self._printed = now
        rate = (done - first) / max(now - began, 1e-9)
        of_total = f" of {total:,}" if total else ""
        left = f", {timedelta(seconds=round((total - done) / rate))} left" if total and rate > 0 else ""
        speed = f" ({rate:,.1f}/s{left})" if rate > 0 else ""
        print(f"mars: {stage}: {done:,}{of_total}{speed}", file=sys.stderr, flush=True)
