"""``mars score`` and ``mars augment``: MARS of the candidates in a file, and its augmented references."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mars_score.cli.arguments import (
    OUT,
    Commands,
    add_input_options,
    add_run_options,
    add_scorer_options,
    count,
    input_columns,
    readable_again,
    scorer_arguments,
)
from mars_score.cli.baseline import Baseline, read_baseline
from mars_score.cli.gates import add_gate_options, failures, unchecked_notices
from mars_score.cli.printing import print_error, print_line, print_notices, scoring
from mars_score.findings import Finding, brief_findings, findings_of
from mars_score.progress import progress_bars
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.explanation import Explanation
    from mars_score.rows import RowScore
    from mars_score.runs import Action, Run, Summary

_COLUMNS = (
    'its score as "mars", its "aspects", the sentences that are "contradicted" (with probability, premise and '
    'source), how far a summary is "supported", its "unsupported" sentences, and the "mars_signature"'
)
_HEADING = "line  score   candidate"
# Settings that an augmentation does not depend on.
_NOT_AUGMENTING = ("task", "clean", "learned", "encoder", "entailment_model", "q", "reference_aggregation")


def add_parser(commands: Commands) -> None:
    """Add both commands to argparse's subparsers."""
    _add_score(commands)
    _add_augment(commands)


def _add_score(commands: Commands) -> None:
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
    add_gate_options(parser)
    add_run_options(parser)
    add_scorer_options(parser)
    parser.set_defaults(run=_score)


def _add_augment(commands: Commands) -> None:
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

    baseline = _baseline(args)
    with _complete_run(args, "score", baseline) as (run, folder):
        summary = run.summary(args.explain)
        explanations = run.explain([row.row for row in summary.lowest[: args.explain]])
        failed = list(failures(run, summary, args, baseline))
        notices = [*summary.notices.sentences(lines=True), *unchecked_notices(run, summary, args)]
        shown, encoding = folder / "shown", sys.stdout.encoding or "utf-8"
        with naming(shown), shown.open("w", encoding=encoding, newline="") as file, redirect_stdout(file):
            if args.json:
                _show_json(run, summary, explanations, notices, args.detailed)
            elif args.out != "-":
                _show_text(run, summary, explanations, notices, args.detailed)
        if args.out == "-":
            print_notices([*run.readings.lines(), *notices])
        if args.out is not None:
            write(run.output(), folder, args.out)  # It may replace the input, which is not read again.
        with shown.open(encoding=encoding, newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    for line in failed:
        print_error(line)
    return 3 if failed else 0


def _baseline(args: argparse.Namespace) -> Baseline | None:
    if not args.fail_under_baseline:
        return None
    return read_baseline(args.fail_under_baseline, input_columns(args), getattr(args, "task", None))


def _show_json(
    run: Run, summary: Summary, explanations: Sequence[Explanation], notices: Sequence[str], detailed: bool
) -> None:
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
        "notices": notices,
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


def _show_text(
    run: Run, summary: Summary, explanations: Sequence[Explanation], notices: Sequence[str], detailed: bool
) -> None:
    """Print score, signature and notices, then all rows in detail, or what was found, the lowest and highest."""
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
    for notice in notices:
        print_line(f"notice: {notice}")
    if detailed:
        print_line(_HEADING)
        _print_details(run)
    else:
        _print_shown(summary)
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


def _print_shown(summary: Summary) -> None:
    """Print the rows in which something was found, then the lowest and highest others."""
    shown, by_label = summary.shown, summary.by_label
    is_partial = sum(map(len, shown.values())) < len(summary.scores)
    has_findings = any(listed.count for label, listed in by_label.items() if label)
    order = "findings first, then lowest and highest" if has_findings else "lowest and highest"
    print_line(f"{_HEADING} ({order})" if is_partial else _HEADING)
    for label, rows in shown.items():
        for row in rows:
            text = one_line(row.row.candidate, 80)
            print_line(f"{row.number + 1:>4}  {row.score:.4f}  {_mark(row.findings)}{text}")
            if row.findings:
                print_line(f"{'':14}{brief_findings(row.findings)}")
        more = by_label[label].count - len(rows)
        if label and more:
            print_line(f"{'':6}and {more} more {label} row{'s' if more > 1 else ''}")


def _mark(findings: Sequence[Finding]) -> str:
    return f"[{findings[0].label}] " if findings else ""


def _print_details(run: Run) -> None:
    """Print the score, the candidate, what was found in it, the terms and the compared texts of every row."""
    for chunk, scored in run.scores():
        for number, row, score in zip(chunk.file.numbers, chunk.rows, scored, strict=True):
            findings = findings_of(row, score)
            print_line(f"{number + 1:>4}  {score.score:.4f}  {_mark(findings)}{one_line(row.candidate)}")
            for finding in findings:
                print_line(f"      {one_line(finding.with_number(None))}")
            for value, text in _details(score):
                print_line(f"      {value:.4f}  {one_line(text)}")


def _details(score: RowScore) -> Iterator[tuple[float, str]]:
    """Yield the value and the name of each term and of each compared text."""
    terms = [term for term in score.terms if term.value]
    if len(terms) > 1:
        yield from ((term.value, f"{term.name}, weight {term.weight:.3f}") for term in terms)
    for reference in score.references:
        yield from ((similarity, f"{kind}: {text}") for kind, similarity, text in reference.compared)
    yield from ((sample.similarity, f"sample: {sample.text}") for sample in score.samples)


def _augment(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    from mars_score.data.writing import write

    with _complete_run(args, "augment") as (run, folder):
        notices = run.notices()
        write(run.output(), folder, args.out)  # It may replace the input.
    print_notices([*notices.sentences(lines=True), *run.readings.warnings()])
    if not args.quiet:
        print_error(f"{notices.rows} rows with augmented references written to {args.out}")
