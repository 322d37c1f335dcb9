"""``mars score``: MARS of the candidates in a file."""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from mars_score.cli.options import add_input_options, add_scorer_options
from mars_score.cli.runs import OUT, add_run_options, complete_run, count
from mars_score.data.values import one_line

SHOWN = 20  # scores below the threshold that are listed


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
    gate.add_argument("--fail-under", type=_threshold, metavar="X", help="the mean score is below X")
    gate.add_argument("--fail-rows-under", type=_threshold, metavar="Y", help="the score of any row is below Y")
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
        failed = list(_failures(tally.mean, rows, args.fail_under, args.fail_rows_under))
    for line in failed:
        print(f"mars: {line}", file=sys.stderr)
    return 3 if failed else 0


def _threshold(text: str) -> float:
    """A finite number from an option's text."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return number


def _failures(
    mean: float, rows: Iterable[tuple[int, float, str]], fail_under: float | None, fail_rows_under: float | None
) -> Iterator[str]:
    """What does not reach its threshold, one line each; of rows line, score and candidate, the lowest first."""
    if fail_under is not None and mean < fail_under:
        yield f"the mean score {mean:.4f} is below {fail_under:g}"
    if fail_rows_under is None:
        return
    below = sorted((score, line, text) for line, score, text in rows if score < fail_rows_under)
    if below:
        more = f"; the {SHOWN} lowest are" if len(below) > SHOWN else ""
        yield f"{len(below)} scores are below {fail_rows_under:g}{more}:"
    for score, line, text in below[:SHOWN]:
        yield f"  line {line}: {score:.4f}  {one_line(text, 100)}"
