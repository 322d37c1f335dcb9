"""``mars score``: MARS of the candidates in a file."""

import argparse
import sys
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.runs import OUT, add_run_options, complete_run, count


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Score the candidates of a file by their references and contexts, or by their contexts alone."
    example = "example: mars score rows.csv --preset mini --out scores.csv"
    parser = commands.add_parser("score", help=text, description=text, epilog=example)
    add_input_options(parser, ("prediction", "reference", "context"))
    parser.add_argument("--out", metavar="SCORES.jsonl", help=OUT.format('its score as "mars"'))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--detailed", action="store_true", help="also show the augmented references of every row")
    parser.add_argument(
        "--explain",
        type=count,
        nargs="?",
        const=3,
        metavar="N",
        help="also explain the N lowest rows (without a number: 3): matches by word, nearest texts",
    )
    gate = parser.add_argument_group("gates", "Exit status 3, with the rows on standard error, if")
    gate.add_argument("--fail-under", type=float, metavar="X", help="the mean score is below X")
    gate.add_argument("--fail-rows-under", type=float, metavar="Y", help="the score of any row is below Y")
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score, write and print; see :func:`mars_score.cli.main` for errors.

    Returns:
        The exit code: 3 if scores are below their thresholds, else 0.
    """
    if args.out == "-" and args.json:
        raise ValueError("--json and --out - both write to standard output; give one of them")
    from mars_score.compare.gates import check_threshold, failures

    check_threshold("--fail-under", args.fail_under)
    check_threshold("--fail-rows-under", args.fail_rows_under)
    from mars_score.cli.results import Shown, show_json, show_text
    from mars_score.runs.output import write

    with complete_run(args, "score") as (a_run, folder):
        tally = a_run.tally(args.explain or 0)
        lowest = tally.lowest[: args.explain or 0]
        shown = Shown(a_run, tally, a_run.explain([row.row for row in lowest]), args.detailed)
        if args.out is not None:
            write(a_run.output(), folder, args.out)
        if args.out != "-":
            if args.json:
                show_json(shown)
            else:
                show_text(shown)
        rows = (
            (number + 1, result.score.score, row.candidate)
            for part, scored in a_run.scored()
            for number, result, row in zip(part.file.numbers, scored, part.rows, strict=True)
        )
        failed = list(failures(tally.mean, rows, args.fail_under, args.fail_rows_under, row_word="line"))
    for line in failed:
        print(f"mars: {line}", file=sys.stderr)
    return 3 if failed else 0
