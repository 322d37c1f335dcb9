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


def write_rated(folder, names, *, groups, systems=("sleep", "play", "fish", "read")):
    """Write rated candidates of some systems to a file for each name of a data set; returns the paths."""
    files = []
    for name in names:
        rows = [
            {
                "group": str(group),
                "system": system,
                "human": (group * 3 + number * 2) % 5 + 1,
                "context": f"The {group} sailors stay on board. It rains.",
                "references": [f"They stay on ship number {group} until the evening."],
                "candidate": f"They {system} on ship {group + number} until the {name if number else 'end'}.",
            }
            for group in range(groups)
            for number, system in enumerate(systems)
        ]
        files.append(str(write(folder / f"{name}.jsonl", rows)))
    return files
