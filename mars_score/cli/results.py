"""What ``mars score`` prints of a complete run: lines, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from mars_score.cli.running import print_line
from mars_score.cli.scale import SCALE
from mars_score.data.lines import one_line
from mars_score.runs.explaining import EXPLANATIONS
from mars_score.runs.interval import INTERVAL
from mars_score.runs.run import Run
from mars_score.runs.tally import Tally
from mars_score.scoring.result import row_to_dict


def show_json(run: Run, *, detailed: bool) -> None:
    """One JSON object, in ASCII and so safe on any terminal; written piece by piece, however long it is."""
    tally = Tally.from_dict(run.records.fact("complete"))
    signature = run.signature
    pieces: dict[str, Any] = {
        "mars": tally.mean,
        INTERVAL: run.records.fact(INTERVAL),
        "scores": (row.score.score for _, scored in run.scored() for row in scored),
        "signature": str(signature),
        "settings": signature.to_dict(),
        "notices": list(tally.notices.sentences(lines=True)),
    }
    if scale := run.records.fact(SCALE):
        pieces[SCALE] = scale
    if explanations := run.records.fact(EXPLANATIONS):
        pieces[EXPLANATIONS] = [{name: one[name] for name in one if name != "text"} for one in explanations]
    if detailed:
        pieces["rows"] = (row_to_dict(row) for _, row in run.detailed())
    opening = "{"
    for name, piece in pieces.items():
        sys.stdout.write(f"{opening}{json.dumps(name)}: ")
        opening = ", "
        if isinstance(piece, Iterator):
            _write_list(piece)
        else:
            sys.stdout.write(json.dumps(piece))
    print("}")


def show_text(run: Run, *, detailed: bool, short: bool = False) -> None:
    """Score, signature (``short`` or in full), notices and some rows (all of them if ``detailed``)."""
    signature = run.signature.short if short else str(run.signature)
    tally = Tally.from_dict(run.records.fact("complete"))
    partial = not detailed and len(tally.shown) < tally.rows
    print_line(f"MARS {tally.mean:.4f}   {_interval(run)}   rows {tally.rows}")
    _show_scale(run)
    print_line(f"signature {signature}")
    for notice in tally.notices.sentences(lines=True):
        print_line(f"notice: {notice}")
    print_line("line  score   candidate" + (" (lowest and highest)" if partial else ""))
    lines = _detailed_lines(run) if detailed else ((score, row, text) for score, row, text in tally.shown)
    for score, row, text in lines:
        number = "" if row is None else row + 1
        print_line(f"{number:>4}  {score:.4f}  {one_line(text, None if detailed else 80)}")
    _show_explanations(run)


def _interval(run: Run) -> str:
    """The 95 % interval of the mean, or that there is none."""
    ends = run.records.fact(INTERVAL)
    return f"95 % interval {ends[0]:.4f} to {ends[1]:.4f}" if ends else "no interval: fewer than 10 contexts"


def _show_scale(run: Run) -> None:
    """The mean between its anchors, if that was asked for."""
    if found := run.records.fact(SCALE):
        ends = (
            f"an unrelated reference ({found['unrelated']:.4f}) to the reference itself ({found['identical']:.4f})"
        )
        print_line(f"scale: {found['percent']:.1f} % of the way from {ends}")


def _show_explanations(run: Run) -> None:
    """Why the lowest rows have their scores, if that was asked for."""
    for one in run.records.fact(EXPLANATIONS) or []:
        print_line(f"\nline {one['line']}")
        for line in one["text"].split("\n"):
            indent = len(line) - len(line.lstrip(" "))
            print_line(" " * indent + one_line(line))


def _detailed_lines(run: Run) -> Iterator[tuple[float, int | None, str]]:
    """Of every row its score and candidate, then the terms that add something and what it was compared with."""
    for number, (candidate, row) in enumerate(run.detailed()):
        yield row.score, number, candidate
        terms = [term for term in row.terms if term.value]
        if len(terms) > 1:
            for term in terms:
                yield term.value, None, f"{term.name}, weight {term.weight:.3f}"
        for reference in row.references:
            for kind, similarity, text in reference.compared:
                yield similarity, None, f"{kind}: {text}"
        for sample in row.samples:
            yield sample.similarity, None, f"sample: {sample.text}"


def _write_list(items: Iterator[Any]) -> None:
    opening = "["
    for item in items:
        sys.stdout.write(opening + json.dumps(item))
        opening = ", "
    sys.stdout.write("[]" if opening == "[" else "]")
