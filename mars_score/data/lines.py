"""A text as one line that a terminal shows and does not obey."""

from __future__ import annotations


def one_line(text: str, length: int | None = None) -> str:
    """``text`` without line breaks and control characters, cut to ``length`` characters with an ellipsis."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if length is None or len(line) <= length else line[: length - 1] + "…"
