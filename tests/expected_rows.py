"""What the readers of files of rows may do: the rule that random files are held against."""

import json
import os

from mars_score.data.readers import stream_rows


def read_or_refused(path: str | os.PathLike[str]) -> list[dict] | None:
    """The rows of a file, or None if they are refused with a ValueError of one line that names it."""
    try:
        rows = list(stream_rows(path))
    except ValueError as error:
        fault = str(error)
    else:
        assert rows
        assert all(type(row) is dict for row in rows)
        return rows
    assert fault.startswith(str(path)), fault
    assert "\n" not in fault, fault
    return None


def by_the_line(content: bytes) -> list[dict] | None:
    """The rows of lines of JSON, or of a list, according to json.loads, or None if they must be refused."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    try:
        if content.lstrip().startswith(b"["):
            rows = json.loads(content.decode())
        else:
            rows = [json.loads(line.decode()) for line in lines]
    except (ValueError, RecursionError):
        return None
    return rows if rows and all(isinstance(row, dict) for row in rows) else None
