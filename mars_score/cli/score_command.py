"""``mars score``: MARS of the candidates in a file."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mars_score.cli.arguments import OUT, add_input_options, add_run_options, add_scorer_options, count
from mars_score.cli.printing import complete_run, print_line
from mars_score.data.values import one_line

if TYPE_CHECKING:
    from mars_score.metrics.explanation import Explanation
    from mars_score.runs import Run, Tally

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
        default=0,
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
    from mars_score.data.writers import write

    with complete_run(args, "score") as (a_run, folder):
        tally = a_run.tally(args.explain)
        explanations = a_run.explain([row.row for row in tally.lowest[: args.explain]])
        if args.out is not None:
            write(a_run.output(), folder, args.out)
        if args.out != "-":
            show = _show_json if args.json else _show_text
            show(a_run, tally, explanations, args.detailed)
        failed = list(_failures(a_run, tally.mean, args.fail_under, args.fail_rows_under))
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


def _failures(run: Run, mean: float, fail_under: float | None, fail_rows_under: float | None) -> Iterator[str]:
    """What does not reach its threshold, one line each; of rows line, score and candidate, the lowest first."""
    if fail_under is not None and mean < fail_under:
        yield f"the mean score {mean:.4f} is below {fail_under:g}"
    if fail_rows_under is None:
        return
    below = sorted(
        (result.score, number + 1, row.candidate)
        for part, scored in run.results()
        for number, result, row in zip(part.file.numbers, scored, part.rows, strict=True)
        if result.score < fail_rows_under
    )
    if below:
        more = f"; the {SHOWN} lowest are" if len(below) > SHOWN else ""
        yield f"{len(below)} scores are below {fail_rows_under:g}{more}:"
    for score, line, text in below[:SHOWN]:
        yield f"  line {line}: {score:.4f}  {one_line(text, 100)}"


def _show_json(run: Run, tally: Tally, explanations: Sequence[Explanation], detailed: bool) -> None:
    """One JSON object, in ASCII and so safe on any terminal; details are written row by row, however many."""
    from mars_score.scoring.result import row_to_dict

    shown: dict[str, Any] = {
        "mars": tally.mean,
        "interval": tally.interval,
        "scores": list(tally.scores),
        "signature": str(run.signature),
        "settings": run.signature.to_dict(),
        "notices": list(tally.notices.sentences(lines=True)),
    }
    if explanations:
        lowest = zip(tally.lowest, explanations, strict=False)
        shown["explanations"] = [{"line": row.number + 1, **reasons.to_dict()} for row, reasons in lowest]
    if not detailed:
        print(json.dumps(shown))
        return
    opening = json.dumps(shown).removesuffix("}") + ', "rows": ['
    for _, scored in run.results():
        for row in scored:
            sys.stdout.write(opening + json.dumps(row_to_dict(row)))
            opening = ", "
    print("]}")


def _show_text(run: Run, tally: Tally, explanations: Sequence[Explanation], detailed: bool) -> None:
    """Score, signature, notices and some rows, or all of them."""
    interval = "no interval: fewer than 10 contexts"
    if tally.interval:
        interval = f"95 % interval {tally.interval[0]:.4f} to {tally.interval[1]:.4f}"
    print_line(f"MARS {tally.mean:.4f}   {interval}   rows {len(tally.scores)}")
    print_line(f"signature {run.signature}")
    for notice in tally.notices.sentences(lines=True):
        print_line(f"notice: {notice}")
    partial = not detailed and len(tally.shown) < len(tally.scores)
    print_line("line  score   candidate" + (" (lowest and highest)" if partial else ""))
    rows = ((row.score, row.number, row.row.candidate) for row in tally.shown)
    width = None if detailed else 80
    for score, number, text in _detailed_lines(run) if detailed else rows:
        print_line(f"{'' if number is None else number + 1:>4}  {score:.4f}  {one_line(text, width)}")
    for row, explanation in zip(tally.lowest, explanations, strict=False):
        print_line(f"\nline {row.number + 1}")
        for line in str(explanation).split("\n"):
            indent = len(line) - len(line.lstrip(" "))
            print_line(" " * indent + one_line(line))


def _detailed_lines(run: Run) -> Iterator[tuple[float, int | None, str]]:
    """Of every row its score and candidate, then the terms that add something and what it was compared with."""
    for part, scored in run.results():
        for number, texts, row in zip(part.file.numbers, part.rows, scored, strict=True):
            yield row.score, number, texts.candidate
            terms = [term for term in row.terms if term.value]
            if len(terms) > 1:
                for term in terms:
                    yield term.value, None, f"{term.name}, weight {term.weight:.3f}"
            for reference in row.references:
                for kind, similarity, text in reference.compared:
                    yield similarity, None, f"{kind}: {text}"
            for sample in row.samples:
                yield sample.similarity, None, f"sample: {sample.text}"
