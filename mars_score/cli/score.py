"""``mars score``: MARS of the candidates in a file."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from typing import Any

from mars_score.cli import inputs
from mars_score.cli.options import add_input_options, add_scorer_options, scorer_arguments
from mars_score.cli.running import progress_bars, scoring
from mars_score.rowfiles import read_rows, whole_file, write_row


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Score the candidates of a file against their references and contexts."
    parser = commands.add_parser("score", help=text, description=text)
    add_input_options(parser, ("prediction", "reference", "context"))
    parser.add_argument("--out", metavar="SCORES.jsonl", help='write each row with its score as "mars"')
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--detailed", action="store_true", help="also show the augmented references of every row")
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Score, write and print; see :func:`mars_score.cli.main` for errors."""
    file = read_rows(args.file)
    texts = inputs.candidates(file, args), inputs.references(file, args), inputs.contexts(file, args)
    from mars_score.scorer import MarsScorer

    with progress_bars(quiet=args.quiet) as progress:
        scorer = MarsScorer(**scorer_arguments(args), progress=progress)
        with whole_file(args.out) if args.out else nullcontext() as out:
            with scoring():  # the result repeats the notices
                result = scorer.score(*texts)
            if out is not None:
                for row, score in zip(file.rows, result.scores, strict=True):
                    write_row(out, {**row, "mars": score})
    if args.json:
        shown = result.to_dict()
        if not args.detailed:
            del shown["rows"]
        print(json.dumps(shown))  # in ASCII: safe on any terminal
    else:
        from mars_score.cli.tables import show_result

        show_result(result, texts[0], detailed=args.detailed)
