"""From a file's columns to checked texts: faults name file, line and column."""

from __future__ import annotations

import argparse

from mars_score.rowfiles import RowFile
from mars_score.rows import check_candidates, check_contexts, check_references


def candidates(file: RowFile, args: argparse.Namespace) -> list[str]:
    """The candidates of a file."""
    name = args.prediction_column
    return check_candidates(
        file.column(name, remedy="add it or name another with --prediction-column"), where=file.place(name)
    )


def references(file: RowFile, args: argparse.Namespace) -> list[tuple[str, ...]]:
    """The references of a file, one or more a row."""
    name = args.reference_column
    return check_references(
        file.column(name, remedy="add it or name another with --reference-column"), where=file.place(name)
    )


def contexts(file: RowFile, args: argparse.Namespace) -> list[str] | None:
    """The contexts of a file; None with ``--no-use-context``."""
    if not getattr(args, "use_context", True):
        return None
    name = args.context_column
    column = file.column(name, remedy="add it, name another with --context-column, or pass --no-use-context")
    return check_contexts(column, len(column), use_context=True, where=file.place(name))
