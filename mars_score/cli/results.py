"""What ``mars score`` prints of a run: lines, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mars_score.cli.running import print_line
from mars_score.data.values import one_line
from mars_score.scoring.result import row_to_dict

if TYPE_CHECKING:
    from mars_score.runs.run import Run, Tally
    from mars_score.scoring.explain.explanation import Explanation


@dataclass(frozen=True)
class Shown:
    """What is shown of a run.

    Attributes:
        run: its work is done.
        tally: the summary of its scores.
        explanations: of the lowest rows.
        detailed: whether all rows are shown with what they were compared with.
    """

    run: Run
    tally: Tally
    explanations: Sequence[Explanation] = field(default=())
    detailed: bool = False


def show_json(shown: Shown) -> None:
    """One JSON object, in ASCII and so safe on any terminal; written piece by piece, however long it is."""
    run, tally, signature = shown.run, shown.tally, shown.run.signature
    pieces: dict[str, Any] = {
        "mars": tally.mean,
        "interval": tally.interval,
        "scores": (row.score.score for _, scored in run.scored() for row in scored),
        "signature": str(signature),
        "settings": signature.to_dict(),
        "notices": list(tally.notices.sentences(lines=True)),
    }
    if shown.explanations:
        lowest = zip(tally.lowest, shown.explanations, strict=False)
        pieces["explanations"] = [{"line": row.number + 1, **one.to_dict()} for row, one in lowest]
    if shown.detailed:
        pieces["rows"] = (row_to_dict(row.score) for _, scored in run.scored() for row in scored)
    opening = "{"
    for name, piece in pieces.items():
        sys.stdout.write(f"{opening}{json.dumps(name)}: ")
        opening = ", "
        if isinstance(piece, Iterator):
            _write_list(piece)
        else:
            sys.stdout.write(json.dumps(piece))
    print("}")


def show_text(shown: Shown) -> None:
    """Score, signature, notices and some rows, or all of them."""
    run, tally = shown.run, shown.tally
    partial = not shown.detailed and len(tally.shown) < tally.rows
    interval = tally.interval
    told = (
        f"95 % interval {interval[0]:.4f} to {interval[1]:.4f}"
        if interval
        else "no interval: fewer than 10 contexts"
    )
    print_line(f"MARS {tally.mean:.4f}   {told}   rows {tally.rows}")
    print_line(f"signature {run.signature}")
    for notice in tally.notices.sentences(lines=True):
        print_line(f"notice: {notice}")
    print_line("line  score   candidate" + (" (lowest and highest)" if partial else ""))
    rows = ((row.score, row.number, row.row[0]) for row in tally.shown)
    width = None if shown.detailed else 80
    for score, number, text in _detailed_lines(run) if shown.detailed else rows:
        print_line(f"{'' if number is None else number + 1:>4}  {score:.4f}  {one_line(text, width)}")
    for row, explanation in zip(tally.lowest, shown.explanations, strict=False):
        print_line(f"\nline {row.number + 1}")
        for line in str(explanation).split("\n"):
            indent = len(line) - len(line.lstrip(" "))
            print_line(" " * indent + one_line(line))


def _detailed_lines(run: Run) -> Iterator[tuple[float, int | None, str]]:
    """Of every row its score and candidate, then the terms that add something and what it was compared with."""
    for part, scored in run.scored():
        for number, texts, result in zip(part.file.numbers, part.rows, scored, strict=True):
            row = result.score
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


def _write_list(items: Iterator[Any]) -> None:
    opening = "["
    for item in items:
        sys.stdout.write(opening + json.dumps(item))
        opening = ", "
    sys.stdout.write("[]" if opening == "[" else "]")
