"""The gates of ``mars score``: what ends it with status 3, and what it says of rows that cannot be checked."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mars_score.cli.baseline import LEAST_FALL, Baseline, fallen
from mars_score.cli.printing import print_error
from mars_score.cli.unchecked import describe_unchecked, why_untold
from mars_score.findings import brief_findings, findings_of
from mars_score.rows import Unchecked
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.runs import Run, Summary

_LISTED = 20  # rows that fail


def add_gate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the gates."""
    add = parser.add_argument_group("gates", "Exit status 3, with the rows on standard error, if").add_argument
    add("--fail-under", type=_number, metavar="X", help="the mean score is below X")
    add("--fail-rows-under", type=_number, metavar="Y", help="the score of any row is below Y")
    text = "the context or a reference contradicts more than this share of the rows (without a number: any row)"
    add("--fail-contradicted", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = (
        "more than this share of the rows have a sentence that the context does not say, or a number or name that "
        "it does not have (without a number: any row)"
    )
    add("--fail-unsupported", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = "more than this share of the rows cannot be checked for contradictions (without a number: any row)"
    add("--fail-unchecked", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = "the mean score is below that of an earlier --out of the same rows, by more than chance"
    add("--fail-under-baseline", metavar="SCORES.jsonl", help=text)
    text = "a mean that is lower by X at most has not fallen below the baseline (default: %(default)s)"
    add("--least-fall", type=_fall, default=LEAST_FALL, metavar="X", help=text)


def _number(text: str) -> float:
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
    number = _number(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return number


def _share(text: str) -> float:
    """Convert an option's text to a share of the rows."""
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to below 1, got {text!r}")
    return number


def failures(run: Run, summary: Summary, args: argparse.Namespace, baseline: Baseline | None) -> Iterator[str]:
    """Yield lines on each gate that fails; none if the build passes."""
    yield from _low_scores(run, summary.mean, args.fail_under, args.fail_rows_under)
    for label, share in (("contradicted", args.fail_contradicted), ("unsupported", args.fail_unsupported)):
        yield from _found(run, label, share)
    if _has_too_many_unchecked(summary, args):
        yield describe_unchecked(summary.unchecked, len(summary.scores))
    if baseline:
        yield from fallen(run.scores(), baseline, args.least_fall)


def _low_scores(run: Run, mean: float, fail_under: float | None, fail_rows_under: float | None) -> Iterator[str]:
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
        scores = "score is" if len(below) == 1 else "scores are"
        yield f"{len(below)} {scores} below {fail_rows_under:g}{more}:"
    for score, line, text in below[:_LISTED]:
        yield f"  line {line}: {score:.4f}  {one_line(text, 100)}"


def _found(run: Run, label: str, most: float | None) -> Iterator[str]:
    """Yield lines on the rows with a sentence of this label, if these are more than a share of the rows."""
    if most is None:
        return
    rows, found = 0, []
    for chunk, scored in run.scores():
        rows += len(scored)
        found += [
            (number + 1, findings_of(row, result if label == "contradicted" else replace(result, contradicted=())))
            for number, row, result in zip(chunk.file.numbers, chunk.rows, scored, strict=True)
            if getattr(result, label)
        ]
    if len(found) <= most * rows:
        return
    more = f"; the first {_LISTED} are" if len(found) > _LISTED else ""
    yield f"{len(found)} of {rows} rows {'is' if len(found) == 1 else 'are'} {label}{more}:"
    for line, findings in found[:_LISTED]:
        yield f"  line {line}: {one_line(findings[0].verdict.sentence, 80)}"
        yield f"    {brief_findings(findings)}"


# Rows that cannot be checked


def _has_too_many_unchecked(summary: Summary, args: argparse.Namespace) -> bool:
    most = args.fail_unchecked
    return most is not None and summary.unchecked.total() > most * len(summary.scores)


def count_untold(run: Run) -> Counter[str]:
    """Return the number of rows of which no unsupported sentence can be told, by the reason."""
    reasons = Counter[str]()
    for chunk, scored in run.scores():
        reasons.update(filter(None, map(why_untold, chunk.rows, scored)))
    return reasons


def unchecked_notices(run: Run, summary: Summary, args: argparse.Namespace) -> Iterator[str]:
    """Yield a line if no row can be checked though the settings would check some.

    With ``--fail-contradicted`` or ``--fail-unchecked`` a line on standard error tells of any such rows instead,
    unless the gate fails by them; with ``--fail-unsupported`` another of those that it cannot check.
    """
    unchecked, rows = summary.unchecked, len(summary.scores)
    if args.fail_unsupported is not None and (untold := count_untold(run)):
        print_error(describe_unchecked(untold, rows, "unsupported sentences"))
    if _has_too_many_unchecked(summary, args):
        return
    if args.fail_contradicted is not None or args.fail_unchecked is not None:
        if unchecked:
            print_error(describe_unchecked(unchecked, rows))
    elif unchecked.total() == rows > 0 and Unchecked.BY_SETTINGS not in unchecked:
        yield describe_unchecked(unchecked, rows)
