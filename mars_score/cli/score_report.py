"""Print the results of ``mars score`` as text or as JSON."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.cli.printing import print_line
from mars_score.cli.run_summary import Lowest, Summary, unchecked_notice
from mars_score.data.writing import LineFile
from mars_score.findings import brief_findings
from mars_score.percentiles import Percentile, find_percentile, tables_for
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.explanation import Explanation
    from mars_score.rows import RowScore
    from mars_score.runs import ResultRow, Results
    from mars_score.signature import Signature

_HEADING = "line  score   candidate"
_FEWEST = 10  # fewer rows with a percentile get no mean percentile


class ScoreReport(ABC):
    """Collects the rows of a run and prints a report.

    Args:
        results: of the run.
        folder: of the run. It keeps details until the summary is printed.
        detailed: whether to print every row in detail.
        explained: number of lowest rows to explain.
    """

    def __init__(self, results: Results, folder: Path, *, detailed: bool, explained: int) -> None:
        self.summary = Summary(Lowest(explained))
        self._results = results
        self._details = LineFile(folder / "details") if detailed else None

    def add(self, row: ResultRow) -> None:
        """Add the next row."""
        self.summary.add(row)
        if self._details is not None:
            for line in self._details_of(row):
                self._details.add(f"{line}\n")

    def notices(self, told: Sequence[str]) -> list[str]:
        """Return the notices, and a sentence on unchecked rows unless it is in ``told``."""
        unchecked = unchecked_notice(self.summary.unchecked, len(self.summary.scores))
        new = [unchecked] if unchecked and unchecked not in told else []
        return [*self.summary.notices.sentences(lines=True).values(), *new]

    @abstractmethod
    def _details_of(self, row: ResultRow) -> Iterator[str]:
        """Yield lines with the details of a row."""

    @abstractmethod
    def print(self, notices: Sequence[str], explanations: Sequence[Explanation]) -> None:
        """Print the report to standard output, with notices and with explanations of the lowest rows."""


class JsonReport(ScoreReport):
    """Prints one JSON object in ASCII, which is safe on any terminal."""

    def __init__(self, results: Results, folder: Path, *, detailed: bool, explained: int) -> None:
        super().__init__(results, folder, detailed=detailed, explained=explained)
        self._tables = tables_for(results.signature)

    def _details_of(self, row: ResultRow) -> Iterator[str]:
        percentile = find_percentile(row.row, row.score, self._tables)
        yield json.dumps(row.score.to_dict() | {"percentile": percentile and percentile._asdict()})

    def print(self, notices: Sequence[str], explanations: Sequence[Explanation]) -> None:
        """Print the report, with details row by row; see :meth:`ScoreReport.print`."""
        summary, signature = self.summary, self._results.signature
        result: dict[str, object] = {
            "mars": summary.mean,
            "interval": summary.interval,
            "faithfulness": summary.faithfulness,
            "scores": list(summary.scores),
            "signature": str(signature),
            "settings": signature.to_dict(),
            "notices": notices,
            "read": list(self._results.readings.lines()),
        }
        if explanations:
            lowest = zip(summary.lowest.rows, explanations, strict=True)
            result["explanations"] = [{"line": row.number + 1, **reasons.to_dict()} for row, reasons in lowest]
        if self._details is None:
            print(json.dumps(result))
            return
        opening = json.dumps(result).removesuffix("}") + ', "rows": ['
        for line in self._details:
            sys.stdout.write(opening + line.removesuffix("\n"))
            opening = ", "
        print("]}")


class TextReport(ScoreReport):
    """Prints score, signature and notices, then all rows in detail, or those with findings and extreme scores."""

    def __init__(self, results: Results, folder: Path, *, detailed: bool, explained: int) -> None:
        super().__init__(results, folder, detailed=detailed, explained=explained)
        self._percentile = _MeanPercentile(results.signature)

    def add(self, row: ResultRow) -> None:
        """Add the next row."""
        super().add(row)
        self._percentile.add(row)

    def _details_of(self, row: ResultRow) -> Iterator[str]:
        """Yield the score, the candidate, its findings, the terms and the compared texts."""
        yield _row_line(row)
        for finding in row.findings:
            yield f"      {one_line(finding.with_number(None))}"
        for value, text in _details(row.score):
            yield f"      {value:.4f}  {one_line(text)}"

    def print(self, notices: Sequence[str], explanations: Sequence[Explanation]) -> None:
        """Print the report; see :meth:`ScoreReport.print`."""
        self._print_summary()
        for notice in notices:
            print_line(f"notice: {notice}")
        if self._details is None:
            _print_shown(self.summary)
        else:
            print_line(_HEADING)
            for line in self._details:
                print_line(line.removesuffix("\n"))
        for row, explanation in zip(self.summary.lowest.rows, explanations, strict=True):
            print_line(f"\nline {row.number + 1}")
            for line in str(explanation).split("\n"):
                indent = len(line) - len(line.lstrip(" "))
                print_line(" " * indent + one_line(line))

    def _print_summary(self) -> None:
        summary, rows = self.summary, len(self.summary.scores)
        interval = "no interval: fewer than 10 contexts"
        if ends := summary.interval:
            interval = f"95 % interval {ends[0]:.4f} to {ends[1]:.4f}"
        print_line(f"MARS {summary.mean:.4f}   {interval}   rows {rows}")
        print_line(f"signature {self._results.signature}")
        for line in self._results.readings.lines():
            print_line(line)
        if percentile := str(self._percentile):
            print_line(percentile)
        if (faithfulness := summary.faithfulness) is not None:
            of = f"{len(summary.supported)} of " if len(summary.supported) < rows else ""
            meaning = f"mean probability that the context entails a sentence ({of}{rows} rows)"
            print_line(f"faithfulness {faithfulness:.4f}: {meaning}")


class _MeanPercentile:
    """The mean percentile of the rows among rated candidates."""

    def __init__(self, signature: Signature) -> None:
        self._tables = tables_for(signature)
        self._rows = self._known = 0
        self._sums = [0.0] * len(Percentile._fields)

    def add(self, row: ResultRow) -> None:
        self._rows += 1
        if percentile := find_percentile(row.row, row.score, self._tables):
            self._known += 1
            self._sums = [total + value for total, value in zip(self._sums, percentile, strict=True)]

    def __str__(self) -> str:
        """Return a line on the mean percentile, or "" if fewer than ten rows have one."""
        if self._known < _FEWEST:
            return ""
        of_rows = "" if self._known == self._rows else f" ({self._known} of {self._rows} rows)"
        # The interval is wide, as if the ratings of all rows erred in one direction.
        return f"on average{of_rows} {Percentile(*(total / self._known for total in self._sums))}"


def _print_shown(summary: Summary) -> None:
    """Print the rows with findings, then the lowest and highest of the others."""
    shown, by_label = summary.shown, summary.by_label
    is_partial = sum(map(len, shown.values())) < len(summary.scores)
    has_findings = any(listed.count for label, listed in by_label.items() if label)
    order = "findings first, then lowest and highest" if has_findings else "lowest and highest"
    print_line(f"{_HEADING} ({order})" if is_partial else _HEADING)
    for label, rows in shown.items():
        for row in rows:
            print_line(_row_line(row, 80))
            if row.findings:
                print_line(f"{'':14}{brief_findings(row.findings)}")
        more = by_label[label].count - len(rows)
        if label and more:
            print_line(f"{'':6}and {more} more {label} row{'s' if more > 1 else ''}")


def _row_line(row: ResultRow, length: int | None = None) -> str:
    """Write line, score, label of the first finding, and candidate, cut to a length."""
    mark = f"[{row.findings[0].label}] " if row.findings else ""
    return f"{row.number + 1:>4}  {row.score.score:.4f}  {mark}{one_line(row.row.candidate, length)}"


def _details(score: RowScore) -> Iterator[tuple[float, str]]:
    """Yield value and name of each term, then similarity and text of each compared text."""
    terms = [term for term in score.terms if term.value]
    if len(terms) > 1:
        yield from ((term.value, f"{term.name}, weight {term.weight:.3f}") for term in terms)
    for reference in score.references:
        yield from ((similarity, f"{kind}: {text}") for kind, similarity, text in reference.compared)
    yield from ((sample.similarity, f"sample: {sample.text}") for sample in score.samples)
