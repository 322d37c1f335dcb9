"""Score the texts beside this file by MARS plus, the paper's MARS, BLEU and ROUGE-L.

Usage: python examples/demo.py [--preset NAME] [--limit N] [--paper N] [FILES...]
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mars_score import MarsScorer
from mars_score.data.reading import read_rows
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.settings import VariantName

BAD = ("wrong", "nonsense", "off topic", "shuffled")


@dataclass(frozen=True)
class Example:
    """A context with references and candidates, best first."""

    name: str
    task: str  # what the context is: "text", "dialogue" or "data"
    context: str
    references: list[str]
    candidates: list[str]
    kinds: list[str]  # of the candidates, such as "weak"
    scores: dict[str, list[float]]  # of the candidates, by metric

    def best_is_first(self, metric: str) -> bool:
        """Tell whether the best candidate has the highest score."""
        best, *others = self.scores[metric]
        return best > max(others)

    def misleads(self, metric: str) -> bool:
        """Tell whether a bad candidate scores higher than every good one."""
        graded = list(zip(self.scores[metric], self.kinds, strict=True))
        good = max(score for score, kind in graded if kind.startswith("good"))
        return any(score > good for score, kind in graded if kind in BAD)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = sorted(Path(__file__).parent.glob("*.jsonl"), key=lambda path: path.name != "dialogues.jsonl")
    parser.add_argument("files", nargs="*", metavar="FILES", default=default, help="default: those beside demo.py")
    parser.add_argument("--preset", metavar="NAME", default="mini", help="which models (mini)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    parser.add_argument("--paper", type=int, metavar="N", default=3, help="the paper's MARS of the first N (3)")
    args = parser.parse_args(argv)
    if (args.limit is not None and args.limit < 1) or args.paper < 0:
        parser.error("--limit must be at least 1 and --paper at least 0")
    try:
        examples = [example for file in args.files for example in read(file)][: args.limit]
        signatures = [score(examples, "MARS plus", args.preset, "plus")]
        if args.paper > 0:
            print("MARS paper: it writes new versions of each reference, which takes a while ...", file=sys.stderr)
            signatures.append(score(examples[: args.paper], "MARS paper", args.preset, "paper"))
    except (ModelUnavailableError, ImportError, OSError, ValueError) as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 1
    console = Console()
    for example in examples:
        show(console, example)
    summarise(console, examples)
    for signature in signatures:
        console.print(Text(f"signature {signature}", "dim"), soft_wrap=True)
    return 0


def read(path: str | Path) -> list[Example]:
    """Read the examples of a file, with BLEU (0 to 100) and ROUGE-L (0 to 1). README.md describes the columns."""
    file = read_rows(path)
    for column in ("id", "context", "references", "candidates"):
        file.column(column, column)  # raises for a missing column
    return [_example(row) for row in file.rows]


def _example(row: Mapping[str, Any]) -> Example:
    references, candidates = row["references"], row["candidates"]
    texts = [candidate["text"] for candidate in candidates]
    kinds = [candidate["kind"] for candidate in candidates]
    scores = {
        "BLEU": [sentence_bleu(text, references) for text in texts],
        "ROUGE-L": [rouge_l(text, references) for text in texts],
    }
    return Example(row["id"], row.get("task", "text"), row["context"], references, texts, kinds, scores)


def score(examples: list[Example], metric: str, preset: str, variant: VariantName) -> str:
    """Add a variant's scores to the examples, and return its signature."""
    result = MarsScorer(preset=preset, variant=variant, progress=True).score(
        [example.candidates for example in examples],
        [example.references for example in examples],
        [example.context for example in examples],
        tasks=[example.task for example in examples],
    )
    scores = iter(result.scores)
    for example in examples:
        example.scores[metric] = [next(scores) for _ in example.candidates]
    return str(result.signature)


def show(console: Console, example: Example) -> None:
    """Print an example with the scores and ranks of its candidates."""
    console.rule(Text(example.name, "bold"))
    context = example.context if len(example.context) <= 300 else f"{example.context[:300].rsplit(' ', 1)[0]} ..."
    console.print(Text.assemble(("Context    ", "bold"), context))
    for reference in example.references:
        console.print(Text.assemble(("Reference  ", "bold"), reference))
    metrics = sorted(example.scores, key=["MARS plus", "MARS paper", "BLEU", "ROUGE-L"].index)
    table = Table("candidate, best first", "kind", *metrics)
    for index, (text, kind) in enumerate(zip(example.candidates, example.kinds, strict=True)):
        cells = []
        for metric in metrics:
            scores = example.scores[metric]
            cells.append(f"{scores[index]:.3g} (#{1 + sum(other > scores[index] for other in scores)})")
        table.add_row(Text(text), Text(kind, "red" if kind in BAD else ""), *cells)
    console.print(table)


def summarise(console: Console, examples: list[Example]) -> None:
    """Print how often each metric ranks the best candidate first, and how often a bad one above all good ones."""
    table = Table("metric", "examples", "best candidate first", "bad one above every good one")
    for metric in ("MARS plus", "MARS paper", "BLEU", "ROUGE-L"):
        scored = [example for example in examples if metric in example.scores]
        if scored:
            first = sum(example.best_is_first(metric) for example in scored)
            misled = sum(example.misleads(metric) for example in scored)
            table.add_row(metric, str(len(scored)), str(first), str(misled))
    console.print(table)
    console.print(Text(f"Bad: {', '.join(BAD)}."))
    console.print(Text("These examples were written to show the difference; they are no benchmark.", "italic"))


if __name__ == "__main__":
    sys.exit(main())
