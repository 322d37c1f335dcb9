"""``mars score``: MARS of the candidates in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.runs import OUT, add_run_options, done_run


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Score the candidates of a file against their references and contexts."
    parser = commands.add_parser("score", help=text, description=text)
    add_input_options(parser, ("prediction", "reference", "context"))
    parser.add_argument("--out", metavar="SCORES.jsonl", help=OUT.format('its score as "mars"'))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--detailed", action="store_true", help="also show the augmented references of every row")
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Score, write and print; see :func:`mars_score.cli.main` for errors."""
    if args.out == "-" and args.json:
        raise ValueError("--json and --out - both write to standard output; give one of them")
    from mars_score.cli.results import show_json, show_text
    from mars_score.runs.writing import write_scores

    def work(a_run: Any, workers: Any) -> None:
        a_run.augment(workers)
        a_run.sample(workers)
        a_run.score(workers)

    def write(a_run: Any, folder: Path) -> Any:
        return write_scores(a_run, folder, rows=args.out is not None)

    with done_run(args, work, write) as (a_run, _):
        if args.out != "-":
            show = show_json if args.json else show_text
            show(a_run, detailed=args.detailed)
