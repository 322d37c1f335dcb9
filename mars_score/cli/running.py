"""What the commands share while they compute: notices, and a standard output of their own."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout

from mars_score.errors import MarsWarning


@contextmanager
def scoring() -> Iterator[list[str]]:
    """Send the libraries' output to standard error, and collect MARS's warnings instead of showing them."""
    notices: list[str] = []
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(sys.stderr):
        warnings.simplefilter("always", MarsWarning)
        yield notices
    for warning in caught:
        if issubclass(warning.category, MarsWarning):
            notices.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_notices(notices: Iterable[str]) -> None:
    """Print to standard error."""
    for notice in dict.fromkeys(notices):
        print(f"mars: notice: {notice}", file=sys.stderr)


def print_line(line: str) -> None:
    """Print to standard output; characters that its encoding lacks become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding))
