"""``mars estimate``: how long ``mars score`` will take, and what it needs."""

import argparse
import json
from datetime import timedelta
from typing import Any

from mars_score.cli.arguments import input_columns, scorer_arguments
from mars_score.cli.printing import print_line, scoring, show_table


def add_parser(commands: Any) -> None:
    """Add the command, which takes the options of ``mars score``, to argparse's subparsers."""
    text = (
        "Say about how long mars score takes in one process with the same options, and what it needs. The models "
        "score some rows for that, whose results are kept in the store; no score is printed or written."
    )
    example = "example: mars estimate rows.csv --preset mini --variant plus"
    same = commands.choices["score"]
    parser = commands.add_parser(
        "estimate", help=text, description=text, epilog=example, parents=[same], add_help=False
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Estimate and print; see :func:`mars_score.cli.main` for errors."""
    from mars_score.estimate import estimate
    from mars_score.tables import Table

    if args.file == "-":
        raise ValueError("standard input is gone when it has been read once; save it to a file, and name that")
    with scoring():
        found = estimate(args.file, input_columns(args), scorer_arguments(args), args.chunk_size)
    if args.json:
        print(json.dumps(found.to_dict()))
        return
    rows = [
        (kind.replace("_", " "), f"{call.items:,}", f"{call.missing:,}", f"{call.seconds:,.1f}")
        for kind, call in found.calls.items()
    ]
    rows += [("loading of models", "", "", f"{found.loading:,.1f}"), ("all else", "", "", f"{found.rest:,.1f}")]
    show_table(
        Table(f"{found.rows:,} rows", "", ("model calls", "different", "to compute", "seconds"), tuple(rows))
    )
    print_line(
        f"about {timedelta(seconds=round(found.seconds))} h; {found.memory / 2**30:.1f} GiB of memory; "
        f"the store grows by {found.disk / 1e6:,.1f} MB"
    )
