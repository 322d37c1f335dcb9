"""Around a scorer at work: progress bars, notices, and a standard output that stays clean."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from mars_score.errors import MarsWarning

Progress = Callable[[str, int, int], None]


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress | None]:
    """A progress callback that draws bars on standard error; None where nobody would see them."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    tasks: dict[str, Any] = {}
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = shown.add_task(stage, total=total)
            shown.update(tasks[stage], completed=done, total=total)

        yield report


@contextmanager
def scoring() -> Iterator[list[str]]:
    """Send what libraries print to standard error, and collect MARS's warnings instead of showing them."""
    notices: list[str] = []
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(sys.stderr):
        warnings.simplefilter("always", MarsWarning)
        yield notices
    for warning in caught:
        if issubclass(warning.category, MarsWarning):
            notices.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_line(line: str) -> None:
    """Print to standard output, whatever characters its encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding))
