"""Rows as columns, and as files of JSON lines."""

import json
from pathlib import Path


def columns(rows):
    """The candidates, references and contexts of rows that are tuples."""
    return tuple(list(column) for column in zip(*rows, strict=True))


def write(path, rows):
    """Write a row per line; returns the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
