"""The gates of ``mars score``: conditions that end it with exit status 3."""

from __future__ import annotations

import argparse
import math
import statistics
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from mars_score.cli.baseline import LEAST_FALL, Baseline
from mars_score.cli.run_summary import Lowest, describe_unchecked, why_unsupported_unchecked
from mars_score.findings import brief_findings, findings_of
from mars_score.stats.resampling import ContextLabels, mean_interval
from mars_score.text import one_line

if TYPE_CHECKING:
    from mars_score.runs import ResultRow

_LISTED = 20  # failing rows that are printed
_LISTED_FALLS = 10  # printed rows of those that fell most


def add_gate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the gates."""
    add = parser.add_argument_group("gates", "Exit status 3, with the rows on standard error, if").add_argument
    add("--fail-under", type=_number, metavar="X", help="the mean score is below X")
    add("--fail-rows-under", type=_number, metavar="Y", help="the score of any row is below Y")
    text = "the context or a reference contradicts more than this share of the rows (without a number: any row)"
    add("--fail-contradicted", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = (
        "more than this share of the rows have a sentence that the context does not support, or a number or name "
        "that it does not have (without a number: any row)"
    )
    add("--fail-unsupported", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = "more than this share of the rows cannot be checked for contradictions (without a number: any row)"
    add("--fail-unchecked", type=_share, nargs="?", const=0.0, metavar="SHARE", help=text)
    text = "the mean score is below that of an earlier --out of the same rows, by more than chance"
    add("--fail-under-baseline", metavar="SCORES.jsonl", help=text)
    text = "ignore a fall of the mean by at most X below the baseline (default: %(default)s)"
    add("--least-fall", type=_fall, default=LEAST_FALL, metavar="X", help=text)


def _number(
    text: str, *, least: float = -math.inf, below: float = math.inf, meaning: str = "a finite number"
) -> float:
    """Convert an option's text to a finite number in [least, below)."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and least <= number < below):
        raise argparse.ArgumentTypeError(f"must be {meaning}, got {text!r}")
    return number


_fall = partial(_number, least=0, meaning="a number of at least 0")
_share = partial(_number, least=0, below=1, meaning="a share from 0 to below 1")


def make_gates(args: argparse.Namespace, baseline: Baseline | None) -> list[RunGate]:
    """Make the gates that the options ask for. ``baseline`` is the run of ``--fail-under-baseline``."""
    gates: list[RunGate] = []
    if args.fail_under is not None:
        gates.append(_MeanGate(args.fail_under))
    if args.fail_rows_under is not None:
        gates.append(_RowsGate(args.fail_rows_under))
    if args.fail_contradicted is not None:
        gates.append(_FoundGate("contradicted", args.fail_contradicted))
    if args.fail_unsupported is not None:
        gates.append(_FoundGate("unsupported", args.fail_unsupported))
    if args.fail_unchecked is not None:
        gates.append(_UncheckedGate(args.fail_unchecked))
    if baseline:
        gates.append(_BaselineGate(baseline, args.least_fall))
    return gates


class RunGate(Protocol):
    """A condition on all rows of a run."""

    def add(self, row: ResultRow) -> None:
        """Add the next row."""

    def failures(self) -> Iterator[str]:
        """Yield lines on why the gate fails and on the failing rows. Yield nothing if it passes."""

    def unchecked(self) -> str:
        """Describe the rows that the gate cannot check, "" for none."""
        return ""


class _MeanGate(RunGate):
    """Fails if the mean score is below a threshold."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._scores = array("d")

    def add(self, row: ResultRow) -> None:
        self._scores.append(row.score.score)

    def failures(self) -> Iterator[str]:
        mean = statistics.mean(self._scores)
        if not mean >= self._least:  # NaN fails as well.
            yield f"the mean score {mean:.4f} is below {self._least:g}"


class _RowsGate(RunGate):
    """Fails if the score of any row is below a threshold."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._count = 0
        self._lowest = Lowest(_LISTED)

    def add(self, row: ResultRow) -> None:
        if not row.score.score >= self._least:  # NaN fails as well.
            self._count += 1
            self._lowest.add(row.score.score, row)

    def failures(self) -> Iterator[str]:
        if self._count:
            more = f"; the {_LISTED} lowest are" if self._count > _LISTED else ""
            scores = "score is" if self._count == 1 else "scores are"
            yield f"{self._count} {scores} below {self._least:g}{more}:"
        for row in self._lowest.rows:
            yield f"  line {row.number + 1}: {row.score.score:.4f}  {one_line(row.row.candidate, 100)}"


class _FoundGate(RunGate):
    """Fails if more than a share of the rows have a contradicted, or an unsupported, sentence."""

    def __init__(self, label: Literal["contradicted", "unsupported"], most: float) -> None:
        self._label, self._most = label, most
        self._rows = self._count = 0
        self._first: list[ResultRow] = []
        self._unchecked = Counter[str]()

    def add(self, row: ResultRow) -> None:
        self._rows += 1
        score = row.score
        if getattr(score, self._label):
            self._count += 1
            if len(self._first) < _LISTED:
                self._first.append(row)
            return
        reason = score.unchecked if self._label == "contradicted" else why_unsupported_unchecked(row.row, score)
        if reason:
            self._unchecked[reason] += 1

    def failures(self) -> Iterator[str]:
        if self._count <= self._most * self._rows:
            return
        more = f"; the first {_LISTED} are" if self._count > _LISTED else ""
        are = "is" if self._count == 1 else "are"
        yield f"{self._count} of {self._rows} rows {are} {self._label}{more}:"
        for row in self._first:
            # A sentence that is both contradicted and unsupported is shown with the label of this gate.
            score = row.score if self._label == "contradicted" else replace(row.score, contradicted=())
            findings = findings_of(row.row, score)
            yield f"  line {row.number + 1}: {one_line(findings[0].verdict.sentence, 80)}"
            yield f"    {brief_findings(findings)}"

    def unchecked(self) -> str:
        sought = "contradictions" if self._label == "contradicted" else "unsupported sentences"
        return describe_unchecked(self._unchecked, self._rows, sought) if self._unchecked else ""


class _UncheckedGate(RunGate):
    """Fails if more than a share of the rows cannot be checked for contradictions."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._rows = 0
        self._unchecked = Counter[str]()

    def add(self, row: ResultRow) -> None:
        self._rows += 1
        if not row.score.checked:
            self._unchecked[row.score.unchecked] += 1

    def failures(self) -> Iterator[str]:
        if self._unchecked.total() > self._most * self._rows:
            yield self.unchecked()

    def unchecked(self) -> str:
        return describe_unchecked(self._unchecked, self._rows) if self._unchecked else ""


class _BaselineGate(RunGate):
    """Fails if the mean score fell below that of an earlier run.

    It fell if it is lower by more than ``least_fall``, and the 95 % interval of the rows' differences, from a
    bootstrap over contexts, is below 0. Fewer than ten contexts have no interval.
    """

    def __init__(self, baseline: Baseline, least_fall: float = LEAST_FALL) -> None:
        self._baseline, self._least_fall = baseline, least_fall
        self._differences = array("d")
        self._labels, self._contexts = ContextLabels(), array("q")
        self._fallen = Lowest(_LISTED_FALLS)

    def add(self, row: ResultRow) -> None:
        difference = row.score.score - self._baseline.scores[len(self._differences)]
        if difference < 0:
            self._fallen.add(difference, row)
        self._differences.append(difference)
        self._contexts.extend(self._labels.of([row.row.prompt]))

    def failures(self) -> Iterator[str]:
        mean = sum(self._differences) / len(self._differences)
        ends = mean_interval(self._differences, self._contexts).ends
        if mean >= -self._least_fall or (ends and ends[1] >= 0):
            return
        interval = f", 95 % interval {ends[0]:+.4f} to {ends[1]:+.4f}" if ends else ""
        yield f"the mean score fell by {-mean:.4f} from {self._baseline.path}{interval}; most in"
        for difference, row in self._fallen.pairs:
            score = row.score.score
            before = score - difference
            yield f"  line {row.number + 1}: {before:.4f} -> {score:.4f}  {one_line(row.row.candidate, 90)}"
