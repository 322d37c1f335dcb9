"""``mars compare``: two systems over the same references and contexts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mars_score.cli import pairs
from mars_score.cli.options import add_column_options, add_scorer_options, columns, scorer_arguments
from mars_score.cli.running import print_line, progress_bars, scoring


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Compare the candidates of two systems for the same references and contexts."
    parser = commands.add_parser("compare", help=text, description=text)
    parser.add_argument("first", metavar="A.jsonl", help="rows of the first system, one JSON object per line")
    parser.add_argument("second", metavar="B.jsonl", help="the same rows with the candidates of the second system")
    add_column_options(parser, ("prediction", "reference", "context"))
    parser.add_argument(
        "--group-column",
        metavar="NAME",
        help="column of A.jsonl; rows that share its value are drawn together (default: each row alone)",
    )
    parser.add_argument("--rows", type=int, default=3, metavar="N", help="show the N rows that differ most (3)")
    parser.add_argument(
        "--tie-margin", type=float, default=0.0, metavar="X", help="scores that differ by no more are a tie (0)"
    )
    parser.add_argument("--confidence", type=float, default=0.95, metavar="X", help="of the intervals (0.95)")
    parser.add_argument(
        "--resamples", type=int, default=10_000, metavar="N", help="of intervals and tests (10000)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of intervals and tests (0)")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw scores and differences; .svg or .png")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Compare, draw and print; see :func:`mars_score.cli.main` for errors."""
    first, second = pairs.read(args)
    names = columns(args)
    remedy = "add it or name another with --group-column"
    groups = first.labels(args.group_column, remedy=remedy) if args.group_column else None
    if args.rows < 0:
        raise ValueError(f"--rows must be at least 0, got {args.rows}")
    if args.plot:
        from mars_score.compare.plot import check_plot

        check_plot(args.plot)
    from mars_score.compare import compare_systems
    from mars_score.scorer import MarsScorer

    with progress_bars(quiet=args.quiet) as progress, scoring():  # the result repeats the notices
        found = compare_systems(
            MarsScorer(**scorer_arguments(args), progress=progress),
            names.candidates(first),
            names.candidates(second),
            names.references(first),
            names.contexts(first),
            names=_names(args.first, args.second),
            groups=groups,
            tie_margin=args.tie_margin,
            confidence=args.confidence,
            resamples=args.resamples,
            seed=args.seed,
        )
    if args.plot:
        from mars_score.compare.plot import write_plot

        write_plot(found, args.plot)
    if args.json:
        print(json.dumps(found.to_dict(args.rows)))  # in ASCII: safe on any terminal
        return
    from mars_score.cli.compared import show_comparison

    show_comparison(found, args.rows)
    if args.plot:
        print_line(f"plot: {args.plot}")


def _names(first: str, second: str) -> tuple[str, str]:
    """The files' names without their endings, or their paths where these are equal."""
    names = Path(first).stem, Path(second).stem
    return names if names[0] != names[1] else (first, second)
