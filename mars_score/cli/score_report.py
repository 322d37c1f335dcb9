"""What ``mars score`` prints of a run, as text or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mars_score.cli.printing import print_line
from mars_score.findings import Finding, brief_findings, findings_of
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.explanation import Explanation
    from mars_score.rows import RowScore
    from mars_score.runs import Run, Summary

_HEADING = "line  score   candidate"


def show_json(
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


def show_text(
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
