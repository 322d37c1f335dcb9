"""Two files that hold the same rows but for their candidates: read, and checked row by row."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mars_score.cli.options import columns
from mars_score.data.files import RowFile, read_rows


def read(args: argparse.Namespace) -> tuple[RowFile, RowFile]:
    """The files of ``args.first`` and ``args.second``.

    Raises:
        OSError: a file cannot be read.
        ValueError, TypeError: a fault of a file, or the first line at which references or contexts differ.
    """
    first, second, names = read_rows(args.first), read_rows(args.second), columns(args)
    _check(first, second, args.reference_column, names.references(first), names.references(second))
    ones, others = names.contexts(first), names.contexts(second)
    _check(first, second, args.context_column, ones or (), others or ())
    longer, shorter = sorted((first, second), key=lambda file: -len(file.rows))
    if len(longer.rows) > len(shorter.rows):
        number = len(shorter.rows)
        raise ValueError(
            f"{longer.path}:{number + 1}: {shorter.path} has only {number} lines; both files need the same rows"
        )
    return first, second


def _check(first: RowFile, second: RowFile, name: str, ones: Sequence[Any], others: Sequence[Any]) -> None:
    """Raise ValueError at the first row in which a column differs; the files may differ in length."""
    for row, (one, other) in enumerate(zip(ones, others, strict=False)):
        if one != other:
            raise ValueError(
                f"{second.place(name)(row)} differs from {first.path}:{row + 1}; both files need the same "
                "references and contexts, line by line"
            )
