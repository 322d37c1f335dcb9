"""``mars score`` and ``mars augment``: MARS of the candidates in a file, and its augmented references."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.cli.arguments import (
    OUT,
    add_input_options,
    add_run_options,
    add_scorer_options,
    count,
    input_columns,
    readable_again,
    scorer_arguments,
)
from mars_score.cli.baseline import LEAST_FALL, Baseline, fallen, read_baseline
from mars_score.cli.printing import print_error, print_line, print_notices, scoring
from mars_score.progress import progress_bars
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.explanation import Explanation
    from mars_score.runs import Action, Run, Summary

_LISTED = 20  # rows that fail
_COLUMNS = (
    'its score as "mars", its "aspects", the sentences that are "contradicted" (with probability, premise and '
    'source), how far a summary is "supported", its "unsupported" sentences, and the "mars_signature"'
)
_UNCHECKED = (
    "dialogues, data, blank candidates, texts without references, texts that are not English, or summaries with "
    "another preset than medium (mini checks those that are close to a reference)"
)
# Settings that an augmentation does not depend on.
_NOT_AUGMENTING = ("task", "clean", "learned", "encoder", "entailment_model", "q", "reference_aggregation")


def add_parser(commands: Any) -> None:
    """Add both commands to argparse's subparsers."""
    _add_score(commands)
    _add_augment(commands)


def _add_score(commands: Any) -> None:
    text = "Score the candidates of a file by their references and contexts, or by their contexts alone."
    example = "example: mars score rows.csv --out scores.csv"
    parser = commands.add_parser("score", help=text, description=text, epilog=example)
    add_input_options(parser, ("prediction", "reference", "context"))
    add = parser.add_argument
    add("--out", metavar="SCORES.jsonl", help=OUT.format(_COLUMNS))
    add("--json", action="store_true", help="print one JSON object")
    text = "also show the terms of every row, and what it was compared with"
    add("--detailed", action="store_true", help=text)
    text = "also explain the N lowest rows (without a number: 3): matches by word, nearest texts"
    add("--explain", type=count, nargs="?", const=3, default=0, metavar="N", help=text)
    gate = parser.add_argument_group("gates", "Exit status 3, with the rows on standard error, if")
    gate.add_argument("--fail-under", type=_threshold, metavar="X", help="the mean score is below X")
    gate.add_argument("--fail-rows-under", type=_threshold, metavar="Y", help="the score of any row is below Y")
    text = "the context or a reference contradicts more than this share of the rows (without a number: any row)"
    gate.add_argument("--fail-contradicted", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = "the mean score is below that of an earlier --out of the same rows, by more than chance"
    gate.add_argument("--fail-under-baseline", metavar="SCORES.jsonl", help=text)
    text = "a mean that is lower by X at most has not fallen below the baseline (default: %(default)s)"
    gate.add_argument("--least-fall", type=_fall, default=LEAST_FALL, metavar="X", help=text)
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=_score)


def _add_augment(commands: Any) -> None:
    text = "Augment the references of a file in the light of their contexts, as variant paper does."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    text = OUT.format(
        '"augmented_references" (references and infills, as plain strings) and "augmentations" (infills with '
        "templates and mask ratios)"
    )
    parser.add_argument("--out", required=True, metavar="AUGMENTED.jsonl", help=text)
    add_run_options(parser)
    add_scorer_options(parser, ("settings", "models", "paper"), without=_NOT_AUGMENTING)
    parser.set_defaults(run=_augment, variant="paper")


@contextmanager
def _complete_run(
    args: argparse.Namespace, action: Action, baseline: Baseline | None = None
) -> Iterator[tuple[Run, Path]]:
    """Yield a run that has computed everything, and its folder, which the end of the block removes.

    Before anything is computed its rows and settings are compared with those of ``baseline``.
    """
    from mars_score.data.writing import run_folder
    from mars_score.runs import Run

    with readable_again(args) as rename, run_folder(args.out) as folder:
        with progress_bars(quiet=args.quiet) as progress, scoring() as notices:
            arguments = scorer_arguments(args)
            run = Run(args.file, input_columns(args), action, arguments, folder, args.chunk_size, progress)
            run.check(args.out, baseline.see if baseline else None)
            notices += baseline.check(run.signature) if baseline else ()
            run.compute(args.workers)
        print_notices(map(rename, notices))
        yield run, folder


def _score(args: argparse.Namespace) -> int:
    """Score, write and print; see :func:`mars_score.cli.main` for errors.

    Returns:
        The exit code: 3 if scores are below their thresholds, else 0.
    """
    for option in ("json", "detailed", "explain"):
        if args.out == "-" and getattr(args, option):
            raise ValueError(f"--{option} and --out - both write to standard output; give one of them")
    from mars_score.atomic import naming
    from mars_score.data.writing import write

    baseline = None
    if args.fail_under_baseline:
        baseline = read_baseline(args.fail_under_baseline, input_columns(args), getattr(args, "task", None))
    with _complete_run(args, "score", baseline) as (run, folder):
        summary = run.summary(args.explain)
        explanations = run.explain([row.row for row in summary.lowest[: args.explain]])
        failures = [
            *_failures(run, summary.mean, args.fail_under, args.fail_rows_under),
            *_contradictions(run, args.fail_contradicted),
            *(fallen(run.scores(), baseline, args.least_fall) if baseline else ()),
        ]
        shown, encoding = folder / "shown", sys.stdout.encoding or "utf-8"
        with naming(shown), shown.open("w", encoding=encoding, newline="") as file, redirect_stdout(file):
            if args.json:
                _show_json(run, summary, explanations, args.detailed)
            elif args.out != "-":
                _show_text(run, summary, explanations, args.detailed)
            else:
                print_notices(run.readings.lines())
        if args.out is not None:
            write(run.output(), folder, args.out)  # It may replace the input, which is not read again.
        with shown.open(encoding=encoding, newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    for line in failures:
        print_error(line)
    return 3 if failures else 0


def _threshold(text: str) -> float:
    """Convert an option's text to a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return number


def _fall(text: str) -> float:
    """Convert an option's text to a number of at least 0."""
    number = _threshold(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return number


def _share(text: str) -> float:
    """Convert an option's text to a share of the rows."""
    number = _threshold(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to below 1, got {text!r}")
    return number


def _failures(run: Run, mean: float, fail_under: float | None, fail_rows_under: float | None) -> Iterator[str]:
    """Yield lines on the scores below a threshold: the mean, then rows with line and candidate, lowest first."""
    if fail_under is not None and not mean >= fail_under:  # NaN fails as well.
        yield f"the mean score {mean:.4f} is below {fail_under:g}"
    if fail_rows_under is None:
        return
    below = sorted(
        (result.score, number + 1, row.candidate)
        for chunk, scored in run.scores()
        for number, result, row in zip(chunk.file.numbers, scored, chunk.rows, strict=True)
        if not result.score >= fail_rows_under
    )
    if below:
        more = f"; the {_LISTED} lowest are" if len(below) > _LISTED else ""
        yield f"{len(below)} scores are below {fail_rows_under:g}{more}:"
    for score, line, text in below[:_LISTED]:
        yield f"  line {line}: {score:.4f}  {one_line(text, 100)}"


def _contradictions(run: Run, most: float | None) -> Iterator[str]:
    """Yield lines on the rows with a contradicted sentence, if these are more than a share of the rows.

    A line on standard error counts the rows that cannot be checked; they fail nothing.
    """
    if most is None:
        return
    rows, unchecked, found = 0, 0, []
    for chunk, scored in run.scores():
        rows += len(scored)
        unchecked += sum("contradiction" not in {term.name for term in result.terms} for result in scored)
        found += [
            (number + 1, verdict)
            for number, result in zip(chunk.file.numbers, scored, strict=True)
            for verdict in result.verdicts[:1]
        ]
    if unchecked:
        print_error(f"{unchecked} of {rows} rows cannot be checked for contradictions: {_UNCHECKED}")
    if len(found) <= most * rows:
        return
    more = f"; the first {_LISTED} are" if len(found) > _LISTED else ""
    yield f"{len(found)} of {rows} rows are contradicted{more}:"
    for line, verdict in found[:_LISTED]:
        yield f"  line {line}: {one_line(verdict.sentence, 80)}"
        yield f"    by: {one_line(verdict.premise, 100)}"


def _show_json(run: Run, summary: Summary, explanations: Sequence[Explanation], detailed: bool) -> None:
    """Print one JSON object in ASCII, which is safe on any terminal; details are written row by row."""
    from mars_score.percentiles import find_percentiles

    signature = run.signature
    result: dict[str, Any] = {
        "mars": summary.mean,
        "interval": summary.interval,
        "faithfulness": summary.faithfulness,
        "scores": list(summary.scores),
        "signature": str(signature),
        "settings": signature.to_dict(),
        "notices": list(summary.notices.sentences(lines=True)),
        "read": list(run.readings.lines()),
    }
    if explanations:
        lowest = zip(summary.lowest, explanations, strict=False)
        result["explanations"] = [{"line": row.number + 1, **reasons.to_dict()} for row, reasons in lowest]
    if not detailed:
        print(json.dumps(result))
        return
    opening = json.dumps(result).removesuffix("}") + ', "rows": ['
    for chunk, scored in run.scores():
        for row, percentile in zip(scored, find_percentiles(chunk.rows, scored, signature), strict=True):
            details = row.to_dict() | {"percentile": percentile and percentile._asdict()}
            sys.stdout.write(opening + json.dumps(details))
            opening = ", "
    print("]}")


def _show_text(run: Run, summary: Summary, explanations: Sequence[Explanation], detailed: bool) -> None:
    """Print score, signature and notices, then all rows in detail, or the lowest and highest ones."""
    interval = "no interval: fewer than 10 contexts"
    if ends := summary.interval:
        interval = f"95 % interval {ends[0]:.4f} to {ends[1]:.4f}"
    print_line(f"MARS {summary.mean:.4f}   {interval}   rows {len(summary.scores)}")
    print_line(f"signature {run.signature}")
    for line in run.readings.lines():
        print_line(line)
    if standing := _standing(run):
        print_line(standing)
    if (faithfulness := summary.faithfulness) is not None:
        summaries = f"{len(summary.supported)} of " if len(summary.supported) < len(summary.scores) else ""
        rows = f"{summaries}{len(summary.scores)} rows"
        print_line(f"faithfulness {faithfulness:.4f}: mean probability that the context says a sentence ({rows})")
    for notice in summary.notices.sentences(lines=True):
        print_line(f"notice: {notice}")
    partial = not detailed and len(summary.shown) < len(summary.scores)
    print_line("line  score   candidate" + (" (lowest and highest)" if partial else ""))
    if detailed:
        _print_details(run)
    else:
        for row in summary.shown:
            mark = "[contradicted] " if row.is_contradicted else ""
            print_line(f"{row.number + 1:>4}  {row.score:.4f}  {mark}{one_line(row.row.candidate, 80)}")
    for row, explanation in zip(summary.lowest, explanations, strict=False):
        print_line(f"\nline {row.number + 1}")
        for line in str(explanation).split("\n"):
            indent = len(line) - len(line.lstrip(" "))
            print_line(" " * indent + one_line(line))


def _standing(run: Run) -> str:
    """Return a line on the mean percentile of the rows among rated candidates; "" if none is known."""
    from mars_score.percentiles import Percentile, find_percentiles, tables_for

    signature, sums, known, rows = run.signature, [0.0] * len(Percentile._fields), 0, 0
    for chunk, scored in run.scores() if tables_for(signature) else ():
        for percentile in find_percentiles(chunk.rows, scored, signature):
            rows += 1
            if percentile is not None:
                known += 1
                sums = [total + value for total, value in zip(sums, percentile, strict=True)]
    of_rows = "" if known == rows else f" ({known} of {rows} rows)"
    # The interval is wide, as if the ratings of all rows erred in one direction.
    return f"on average{of_rows} {Percentile(*(value / known for value in sums))}" if known else ""


def _print_details(run: Run) -> None:
    """Print the score, the candidate, the terms and the compared texts of every row."""
    for chunk, scored in run.scores():
        for number, row, score in zip(chunk.file.numbers, chunk.rows, scored, strict=True):
            print_line(f"{number + 1:>4}  {score.score:.4f}  {one_line(row.candidate)}")
            terms = [term for term in score.terms if term.value]
            details = [(term.value, f"{term.name}, weight {term.weight:.3f}") for term in terms if len(terms) > 1]
            details += [
                (similarity, f"{kind}: {text}")
                for reference in score.references
                for kind, similarity, text in reference.compared
            ]
            details += [(sample.similarity, f"sample: {sample.text}") for sample in score.samples]
            for value, text in details:
                print_line(f"      {value:.4f}  {one_line(text)}")


def _augment(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    from mars_score.data.writing import write

    with _complete_run(args, "augment") as (run, folder):
        notices = run.notices()
        write(run.output(), folder, args.out)  # It may replace the input.
    print_notices([*notices.sentences(lines=True), *run.readings.warnings()])
    if not args.quiet:
        print_error(f"{notices.rows} rows with augmented references written to {args.out}")
