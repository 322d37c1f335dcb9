"""Files that hold the same rows but for their candidates: read, and checked row by row."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mars_score.cli.options import columns
from mars_score.data.files import RowFile, read_rows


def read(args: argparse.Namespace) -> list[RowFile]:
    """The files of ``args.files``, each compared with the first.

    Raises:
        OSError: a file cannot be read.
        ValueError, TypeError: a fault of a file, or the first line at which references or contexts differ.
    """
    first, *others = map(read_rows, args.files)
    names = columns(args)
    references, contexts = names.references(first), names.contexts(first) or ()
    for other in others:
        _check(first, other, args.reference_column, references, names.references(other))
        _check(first, other, args.context_column, contexts, names.contexts(other) or ())
        longer, shorter = sorted((first, other), key=lambda file: -len(file.rows))
        if len(longer.rows) > len(shorter.rows):
            number = len(shorter.rows)
            raise ValueError(
                f"{longer.path}:{number + 1}: {shorter.path} has only {number} lines; all files need the same rows"
            )
    return [first, *others]


def _check(first: RowFile, other: RowFile, name: str, ones: Sequence[Any], others: Sequence[Any]) -> None:
    """Raise ValueError at the first row in which a column differs; the files may differ in length."""
    for row, (one, two) in enumerate(zip(ones, others, strict=False)):
        if one != two:
            raise ValueError(
                f"{other.place(name)(row)} differs from {first.path}:{row + 1}; all files need the same "
                "references and contexts, line by line"
            )
