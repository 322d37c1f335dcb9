"""Scores the texts beside this file with preset "mini" and shows where MARS, BLEU and ROUGE-L disagree.

Usage: python examples/demo.py [--limit N] [FILES...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mars_score import MarsResult, MarsScorer
from mars_score.cli.running import scoring
from mars_score.data.files import read_rows
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.bleu import sentence_bleu
from mars_score.meta.metrics.rouge import rouge_l
from mars_score.store.progress import progress_bars

BAD = ("wrong", "nonsense", "off topic", "shuffled")
REFERENCE_ONLY = "the reference only"
RIVALS = ("BLEU", "ROUGE-L")


@dataclass(frozen=True)
class Example:
    """A context with references and candidates, best first, and the kind of each candidate."""

    name: str
    context: str
    references: list[str]
    candidates: list[str]
    kinds: list[str]


@dataclass(frozen=True)
class Outcome:
    """The scores of an example's candidates under each metric.

    Attributes:
        samples: texts that the language model wrote given the context, with which MARS compares the candidates.
    """

    example: Example
    samples: list[str]
    scores: Mapping[str, list[float]]

    def first_is_first(self, metric: str) -> bool:
        """Whether the best candidate stands above all others."""
        best, *others = self.scores[metric]
        return best > max(others)

    def lead(self, metric: str) -> float:
        """Score of the highest good candidate minus that of the highest bad one; infinite without bad ones."""
        graded = list(zip(self.scores[metric], self.example.kinds, strict=True))
        good = max(score for score, kind in graded if kind.startswith("good"))
        return good - max((score for score, kind in graded if kind in BAD), default=float("-inf"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    args = _arguments(argv)
    console = Console()
    try:
        examples = [example for file in args.files for example in _read(file)][: args.limit]
        rivals = [_bleu_and_rouge(example) for example in examples]
        outcomes, result = _score(examples, rivals)
    except (ModelUnavailableError, ImportError, OSError, ValueError) as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 1
    for outcome in outcomes:
        _show_example(console, outcome)
    _show_summary(console, outcomes)
    console.print(Text(f"signature {result.signature}", "dim"), soft_wrap=True)
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = sorted(Path(__file__).parent.glob("*.jsonl"), key=lambda path: path.name != "dialogues.jsonl")
    parser.add_argument("files", nargs="*", metavar="FILES", default=own, help="default: those beside demo.py")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    args = parser.parse_args(argv)
    if args.limit is not None and args.limit < 1:
        parser.error("--limit must be at least 1")
    return args


def _read(path: str | Path) -> list[Example]:
    """The examples of a file; see README.md beside it for the columns."""
    file = read_rows(path)
    columns = [file.column(name, remedy="see README.md") for name in ("id", "context", "references", "candidates")]
    return [
        Example(
            name, context, references, [one["text"] for one in candidates], [one["kind"] for one in candidates]
        )
        for name, context, references, candidates in zip(*columns, strict=True)
    ]


def _bleu_and_rouge(example: Example) -> dict[str, list[float]]:
    """Sentence BLEU (0 to 100) over all references, and F-measure of ROUGE-L with the best of them (0 to 1)."""
    return {
        "BLEU": [sentence_bleu(candidate, example.references) for candidate in example.candidates],
        "ROUGE-L": [rouge_l(candidate, example.references) for candidate in example.candidates],
    }


def _score(examples: list[Example], rivals: list[dict[str, list[float]]]) -> tuple[list[Outcome], MarsResult]:
    """All candidates in one call, so that IDF is counted over the references of all examples."""
    rows = [(text, one.references, one.context) for one in examples for text in one.candidates]
    candidates, references, contexts = (list(column) for column in zip(*rows, strict=True))
    print(f"MARS: {len(rows)} candidates of {len(examples)} examples, preset mini ...", file=sys.stderr)
    with progress_bars(quiet=False) as progress, scoring() as notices:
        result = MarsScorer(preset="mini", variant="plus", progress=progress).score(
            candidates, references, contexts
        )
    for notice in notices:
        print(f"demo: notice: {notice}", file=sys.stderr)
    remaining = iter(result.rows)
    outcomes = []
    for example, others in zip(examples, rivals, strict=True):
        own = [next(remaining) for _ in example.candidates]
        # Token recall of the human reference (index 0), without context and samples.
        plain = [max(reference.similarities[0] for reference in row.references) for row in own]
        scores = {"MARS": [row.score for row in own], **others, REFERENCE_ONLY: plain}
        outcomes.append(Outcome(example, [sample.text for sample in own[0].samples], scores))
    return outcomes, result


def _show_example(console: Console, outcome: Outcome) -> None:
    example, metrics = outcome.example, ("MARS", *RIVALS)
    console.rule(Text(example.name, "bold"))
    context = example.context if len(example.context) <= 300 else f"{example.context[:300].rsplit(' ', 1)[0]} ..."
    console.print(Text.assemble(("Context    ", "bold"), context))
    for reference in example.references:
        console.print(Text.assemble(("Reference  ", "bold"), reference))
    for sample in outcome.samples:
        console.print(Text.assemble(("Sample     ", "bold"), (sample, "dim")))
    table = Table("candidate, best first", "kind", *metrics)
    ranks = {name: _ranks(outcome.scores[name]) for name in metrics}
    for index, (text, kind) in enumerate(zip(example.candidates, example.kinds, strict=True)):
        numbers = [f"{outcome.scores[name][index]:.3g} (#{ranks[name][index]})" for name in metrics]
        table.add_row(Text(text), Text(kind, "red" if kind in BAD else ""), *numbers)
    console.print(table)


def _ranks(scores: Sequence[float]) -> list[int]:
    """1 for the highest; equal scores share a rank."""
    return [1 + sum(other > score for other in scores) for score in scores]


def _show_summary(console: Console, outcomes: list[Outcome]) -> None:
    total = len(outcomes)
    table = Table("metric", "best candidate first", "bad one above every good one", title=f"{total} examples")
    for name in outcomes[0].scores:
        first = sum(outcome.first_is_first(name) for outcome in outcomes)
        misled = sum(outcome.lead(name) < 0 for outcome in outcomes)
        table.add_row(name, f"{first} of {total}", f"{misled} of {total}")
    console.print(table)
    console.print(Text("Bad: " + ", ".join(BAD) + ". Sample: written by the language model given the context."))
    disagreeing = [
        outcome.example.name
        for outcome in outcomes
        if outcome.lead("MARS") > 0 and all(outcome.lead(name) < 0 for name in RIVALS)
    ]
    console.print(
        Text(
            "A good candidate above every bad one with MARS, a bad one above every good one with BLEU and with "
            f"ROUGE-L, in {len(disagreeing)} of {total}: {', '.join(disagreeing) or 'none'}."
        )
    )
    console.print(Text("These examples were written to show the difference; they are no benchmark.", "italic"))


if __name__ == "__main__":
    sys.exit(main())
