"""``mars compare``: two or more systems over the same references and contexts."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mars_score.cli.options import add_column_options, add_scorer_options, columns, scorer_arguments
from mars_score.cli.running import scoring
from mars_score.data.files import RowFile, read_rows
from mars_score.store.progress import progress_bars

TABLES = ("text", "markdown", "latex")


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Compare the candidates of two or more systems for the same references and contexts."
    example = "example: mars compare ours.jsonl theirs.jsonl --preset mini --table latex"
    parser = commands.add_parser("compare", help=text, description=text, epilog=example)
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="of each system its candidates, the other columns being the same"
    )
    add_column_options(parser, ("prediction", "reference", "context"))
    parser.add_argument(
        "--group-column",
        metavar="NAME",
        help="column of the first file; rows with one value are drawn together (default: rows of one context)",
    )
    parser.add_argument(
        "--samples-from-others",
        action="store_true",
        help="each candidate's samples are the other systems' texts; scores then depend on who takes part",
    )
    parser.add_argument("--rows", type=int, default=3, metavar="N", help="show the N rows that differ most (3)")
    parser.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    parser.add_argument("--resamples", type=int, default=10_000, metavar="N", help="of the tests (10000)")
    parser.add_argument("--table", choices=TABLES, default="text", help="form of the tables (default: text)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Compare and print; see :func:`mars_score.cli.main` for errors."""
    if len(args.files) < 2:
        raise ValueError(f"a comparison needs at least two files, got {args.files[0]} alone; add another")
    if args.rows < 0:
        raise ValueError(f"--rows must be at least 0, got {args.rows}")
    if args.samples_column and args.samples_from_others:
        raise ValueError("--samples-column and --samples-from-others exclude each other; give one of them")
    files = _read(args)
    names = columns(args)
    samples: Any = "others" if args.samples_from_others else None
    if args.samples_column:
        samples = names.samples(files[0])
    remedy = "add it or name another with --group-column"
    groups = files[0].labels(args.group_column, remedy=remedy) if args.group_column else None
    from mars_score.cli.compared import show_ranking
    from mars_score.compare import rank_systems
    from mars_score.scorer import MarsScorer

    with progress_bars(quiet=args.quiet) as progress, scoring():  # the result repeats the notices
        ranking = rank_systems(
            MarsScorer(**scorer_arguments(args), progress=progress),
            dict(zip(_names(args.files), map(names.candidates, files), strict=True)),
            names.references(files[0]) if names.reference else None,
            names.contexts(files[0]),
            samples=samples,
            groups=groups,
            confidence=args.confidence,
            resamples=args.resamples,
        )
    if args.json:
        print(json.dumps(ranking.to_dict(args.rows)))  # in ASCII: safe on any terminal
        return
    show_ranking(ranking, args.rows, args.table)


def _read(args: argparse.Namespace) -> list[RowFile]:
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


def _check(first: RowFile, other: RowFile, name: str, first_values: Sequence[Any], values: Sequence[Any]) -> None:
    """Raise ValueError at the first row in which a column differs; the files may differ in length."""
    for row, (first_value, value) in enumerate(zip(first_values, values, strict=False)):
        if first_value != value:
            raise ValueError(
                f"{other.place(name)(row)} differs from {first.path}:{row + 1}; all files need the same "
                "references and contexts, line by line"
            )


def _names(files: Sequence[str]) -> list[str]:
    """The files' names without their endings, or their paths where two of these are equal."""
    names = [Path(file).stem for file in files]
    if len(set(names)) == len(names):
        return names
    return [f"{file} ({number})" if files.count(file) > 1 else file for number, file in enumerate(files, 1)]
