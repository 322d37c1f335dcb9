"""``mars compare``: rank two or more systems over the same references and contexts."""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mars_score.cli.arguments import (
    Commands,
    add_column_options,
    add_scorer_options,
    input_columns,
    scorer_arguments,
)
from mars_score.cli.printing import TableFormat, print_line, print_notices, scoring, show_table
from mars_score.data.columns import RawRows
from mars_score.data.forms import Readings
from mars_score.data.reading import read_rows
from mars_score.data.writing import row_line
from mars_score.errors import Place
from mars_score.progress import progress_bars
from mars_score.rows import Row
from mars_score.tables import MISSING, Table
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.compare import SystemRanking
    from mars_score.stats.resampling import Interval

_EXAMPLE = "mars-example"  # the folder of --example


def add_parser(commands: Commands) -> None:
    """Add the command to argparse's subparsers."""
    text = "Compare the candidates of two or more systems for the same references and contexts."
    example = "example: mars compare ours.jsonl theirs.jsonl --table latex"
    parser = commands.add_parser("compare", help=text, description=text, epilog=example)
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="the candidates of a system; all other columns are the same")
    text = f"write two small files to the folder {_EXAMPLE} and compare these"
    add("--example", action="store_true", help=text)
    add_column_options(parser, ("prediction", "reference", "context"))
    text = "column of the first file; rows with one value are drawn together (default: rows of one context)"
    add("--group-column", metavar="NAME", help=text)
    text = "each candidate's samples are the other systems' texts; scores then depend on who takes part"
    add("--samples-from-others", action="store_true", help=text)
    add("--rows", type=int, metavar="N", help="show the N rows that differ most (3; none below tables for papers)")
    add("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    add("--resamples", type=int, default=10_000, metavar="N", help="of the tests (10000)")
    add("--table", choices=get_args(TableFormat), default="text", help="format of the tables (default: text)")
    add("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Compare and print. :func:`mars_score.cli.main` reports errors."""
    _check(args)
    if args.example:
        args.files = _write_example(Path(_EXAMPLE))
    with scoring() as notices:
        files, rows = _read(args)
    print_notices(notices)
    by_system = dict(zip(_names(args.files), files, strict=True))
    ranking = _rank(args, by_system, rows)
    shown = 3 if args.rows is None else args.rows
    if not args.json:
        _show(ranking, shown, args.table, by_system)
        return
    result = ranking.to_dict(shown)
    for row in result["most_different"]:
        row["lines"] = {name: file.line(row["row"]) for name, file in by_system.items()}
    print(json.dumps(result))  # ASCII is safe on any terminal.


@dataclass(frozen=True, kw_only=True)
class _PlaceInFiles(Place):
    """Names a row of a system by file and line."""

    files: Mapping[str, RawRows]

    def of(self, column: str, row: int) -> str:
        return self.files[column].line(row)


def _rank(args: argparse.Namespace, files: Mapping[str, RawRows], rows: Sequence[Sequence[Row]]) -> SystemRanking:
    """Rank the systems by their checked rows. ``files`` has the unchecked rows by system."""
    from mars_score.compare import rank_rows
    from mars_score.scorer import MarsScorer

    groups = None
    if args.group_column:
        first = next(iter(files.values()))
        groups = first.labels(args.group_column, "group")
    has_samples = bool(args.samples_column or args.samples_from_others)
    with progress_bars(quiet=args.quiet) as progress, scoring():  # The ranking holds the notices.
        scorer = MarsScorer(**scorer_arguments(args), progress=progress)
        scorer.check_inputs(has_references=bool(input_columns(args).reference), has_samples=has_samples)
        return rank_rows(
            scorer,
            dict(zip(files, rows, strict=True)),
            samples_from_others=args.samples_from_others,
            groups=groups,
            confidence=args.confidence,
            resamples=args.resamples,
            place=_PlaceInFiles(files=files),
        )


def _check(args: argparse.Namespace) -> None:
    """Raise ValueError for options that exclude each other."""
    if args.example and args.files:
        raise ValueError(f"--example brings files of its own; leave out {args.files[0]}, or --example")
    if len(args.files) < 2 and not args.example:
        got = f"{args.files[0]} alone" if args.files else "none"
        raise ValueError(f"a comparison needs at least two files, got {got}; add another, or try --example")
    if args.rows is not None and args.rows < 0:
        raise ValueError(f"--rows must be at least 0, got {args.rows}")
    if args.json and args.table != "text":
        raise ValueError(f"--json prints no tables; leave out --table {args.table}, or --json")
    if args.rows and args.table != "text":
        raise ValueError(f"--table {args.table} shows no rows; leave out --rows, or --table")
    if args.samples_column and args.samples_from_others:
        raise ValueError("--samples-column and --samples-from-others exclude each other; give one of them")


def _write_example(folder: Path) -> list[str]:
    """Write example files of two systems, print their names, and return their paths.

    Raises:
        ValueError: a file of this name exists with another content.
        OSError: a file cannot be written.
    """
    rows = [json.loads(line) for line in (files(__package__) / "example.jsonl").read_text("utf-8").splitlines()]
    folder.mkdir(exist_ok=True)
    paths = []
    for system in ("other_words", "same_words"):
        path = folder / f"{system}.jsonl"
        columns = (
            {"prediction": row[system], "reference": row["reference"], "context": row["context"]} for row in rows
        )
        text = "".join(map(row_line, columns))
        if path.exists() and path.read_text("utf-8") != text:
            raise ValueError(f"{path} is not the example's file; move it, or compare it without --example")
        path.write_text(text, "utf-8")
        paths.append(str(path))
    print_notices([f"wrote {' and '.join(paths)}"])
    return paths


def _read(args: argparse.Namespace) -> tuple[list[RawRows], list[list[Row]]]:
    """Read ``args.files`` and check their rows.

    Raises:
        OSError: a file cannot be read.
        ValueError, TypeError: a file is bad, or the references or context of a line differ from the first file's.
    """
    files = list(map(read_rows, args.files))
    first, *others = files
    columns, task = input_columns(args), getattr(args, "task", None)
    readings = Readings()
    first_rows = columns.rows(first, task=task, readings=readings)
    rows = [first_rows]
    for other in others:
        with_tasks = _with_tasks(other, columns.task, first_rows) if columns.task else other
        other_rows = replace(columns, samples=None).rows(with_tasks, task=task, readings=Readings())
        _check_same(first, first_rows, other, other_rows, columns.found_in(other).names)
        rows.append(
            [replace(row, samples=expected.samples) for expected, row in zip(first_rows, other_rows, strict=True)]
        )
    print_notices(readings.lines())
    return files, rows


def _check_same(
    first: RawRows, first_rows: Sequence[Row], other: RawRows, rows: Sequence[Row], names: Mapping[str, str]
) -> None:
    """Raise ValueError for the first row of another file that differs from the first file.

    ``names`` are the columns of the other file, by what they hold.
    """
    for number, (expected, row) in enumerate(zip(first_rows, rows, strict=False)):
        if (row.references, row.prompt) != (expected.references, expected.prompt):
            column = names["context" if row.references == expected.references else "reference"]
            fault = f"{other.cell(column, number)} differs from {first.line(number)}"
            raise ValueError(f"{fault}; all files need the same references and contexts, row by row")
    shorter, longer = sorted((first, other), key=lambda file: len(file.rows))
    count = len(shorter.rows)
    if len(longer.rows) > count:
        fault = f"{longer.line(count)}: {shorter.path} has only {count} rows"
        raise ValueError(f"{fault}; all files need the same rows")


def _with_tasks(file: RawRows, column: str, rows: Sequence[Row]) -> RawRows:
    """Replace a file's tasks by those of ``rows``, because the task decides how a context is read."""
    tasks = chain((row.task for row in rows), repeat(""))
    return replace(file, rows=[{**row, column: task} for row, task in zip(file.rows, tasks, strict=False)])


def _names(files: Sequence[str]) -> list[str]:
    """Return the stems of file names, or the paths if two stems are equal."""
    names = [Path(file).stem for file in files]
    if len(set(names)) == len(names):
        return names
    return [f"{file} ({number})" if files.count(file) > 1 else file for number, file in enumerate(files, 1)]


def _show(ranking: SystemRanking, rows: int, form: TableFormat, files: Mapping[str, RawRows]) -> None:
    """Print tables, verdict, signature, notices and the ``rows`` rows that differ most.

    In "markdown" and "latex", the note of the first table has verdict, signature and notices, and no rows follow.
    """
    scores, pairs = _tables(ranking)
    notices = [f"notice: {notice}" for notice in ranking.notices]
    lines = [*map(one_line, (f"verdict: {ranking.verdict}", f"signature {ranking.signature}", *notices))]
    if form != "text":
        scores = replace(scores, note="\n".join(f"{line}." for line in (scores.note, *lines)))
        lines, rows = [], 0
    show_table(scores, form)
    show_table(pairs, form)
    for line in (*lines, *_row_lines(ranking, rows, files)):
        print_line(line)


def _tables(ranking: SystemRanking) -> tuple[Table, Table]:
    """Make a table of the systems' scores, and one of the differences of all pairs with p-values."""
    groups = f"{ranking.groups} {'rows' if ranking.groups == len(ranking.rows) else 'groups of rows'}"
    interval = f"{ranking.confidence:.0%} interval"
    title, note = f"{len(ranking.rows)} rows, {len(ranking.systems)} systems", f"bootstrap intervals over {groups}"
    header: tuple[str, ...] = ("system", "MARS", interval)
    scores = [[one_line(row.name), f"{row.score:.4f}", _ends(row.interval)] for row in ranking.systems]
    if any(row.contradicted for row in ranking.systems):
        header += ("contradicted",)
        for cells, row in zip(scores, ranking.systems, strict=True):
            cells.append(str(len(row.contradicted)))
    count = len(ranking.pairs)
    pairs_note = f"approximate randomisation, {ranking.resamples} resamples of {groups}"
    pairs_note += f", p adjusted for {count} tests (Holm)" if count > 1 else ""
    pairs = tuple(
        (
            one_line(f"{pair.first} - {pair.second}"),
            f"{pair.difference:+.4f}",
            _ends(pair.interval),
            MISSING if math.isnan(pair.p) else f"{pair.p:.2g}",
            f"{pair.wins}, {pair.ties}, {pair.losses}",
        )
        for pair in ranking.pairs
    )
    return (
        Table(title, note, header, tuple(map(tuple, scores))),
        Table("differences", pairs_note, ("systems", "difference", interval, "p", "wins, ties, losses"), pairs),
    )


def _ends(interval: Interval) -> str:
    return MISSING if interval.reason else f"{interval.low:.4f} .. {interval.high:.4f}"


def _row_lines(ranking: SystemRanking, count: int, files: Mapping[str, RawRows]) -> Iterator[str]:
    """Yield lines on the rows that differ most: their lines in every file, scores and texts."""
    rows = ranking.most_different(count)
    if rows:
        yield from ("", "rows that differ most")
    for row in rows:
        yield one_line(f"{', '.join(file.line(row.row) for file in files.values())}: {row.spread:.4f} apart")
        texts = [("answers", row.asked)] if row.asked else [("context", row.context)] if row.context else []
        texts += [("reference", reference) for reference in row.references]
        for system, score, text in zip(ranking.systems, row.scores, row.candidates, strict=True):
            texts.append((f"{one_line(system.name)} {score:.4f}", text))
        for name, text in texts:
            yield "  " + one_line(f"{name}: {text}", shutil.get_terminal_size().columns - 2)
